package storetest

import (
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var holdLaws = []law{
	{"a held queue or kind is not claimed from, costs its jobs nothing, and is claimed from again when resumed", func(s *scene) {
		for _, hold := range []store.Hold{{Queue: "default"}, {Kind: "mail"}} {
			hold.Actor, hold.Reason = "ada", "maintenance"
			id := s.enqueue()
			s.must(s.Store.Pause(s.ctx, hold))
			s.Advance(longAgo)
			same(s, "claimed", len(s.claim(10)), 0)
			s.expectCounts(id, [5]int{0, 0, 0, 0, 1})
			s.must(s.Store.Resume(s.ctx, hold))
			s.settle(completes(s.claimOne()))
		}
	}},
	{"a hold closes its own queue or kind and no other", func(s *scene) {
		s.must(s.Store.Pause(s.ctx, store.Hold{Kind: "pdf", Actor: "ada"}))
		s.must(s.Store.Pause(s.ctx, store.Hold{Queue: "mail", Actor: "ada"}))
		s.enqueue(func(d *holdfast.Draft) { d.Kind = "pdf" })
		free := s.enqueue()
		same(s, "claimed", ids(s.claim(10)), []holdfast.ID{free})
	}},
	{"a hold with a duration ends by itself", func(s *scene) {
		s.enqueue()
		s.must(s.Store.Pause(s.ctx, store.Hold{Queue: "default", Actor: "ada", For: time.Minute}))
		s.Advance(time.Minute - time.Microsecond)
		same(s, "claimed", len(s.claim(1)), 0)
		s.Advance(time.Microsecond)
		holds, err := s.Store.Holds(s.ctx)
		s.must(err)
		same(s, "holds", len(holds), 0)
		s.claimOne()
	}},
	{"holds are listed with actor and reason, and pausing again replaces one", func(s *scene) {
		s.must(s.Store.Pause(s.ctx, store.Hold{Queue: "default", Actor: "ada", For: time.Minute}))
		s.Advance(time.Second)
		s.must(s.Store.Pause(s.ctx, store.Hold{Queue: "default", Actor: "bob", Reason: "longer"}))
		holds, err := s.Store.Holds(s.ctx)
		s.must(err)
		now := s.job(s.enqueue()).AsOf
		same(s, "holds", holds, []store.Hold{{Queue: "default", Source: store.SourceOperator, Actor: "bob", Reason: "longer", Since: now}})
	}},
	{"a hold applies to every handle and outlives them (oban#318)", func(s *scene) {
		other := s.Reopen()
		s.must(other.Pause(s.ctx, store.Hold{Queue: "default", Actor: "ada"}))
		s.must(other.Close())
		s.enqueue()
		same(s, "claimed", len(s.claim(1)), 0)
	}},
	{"a hold does not affect jobs that are processing", func(s *scene) {
		lease := s.start()
		s.must(s.Store.Pause(s.ctx, store.Hold{Queue: "default", Actor: "ada"}))
		s.settle(completes(lease))
	}},
	{"a hold can be placed before the first job of its queue", func(s *scene) {
		s.must(s.Store.Pause(s.ctx, store.Hold{Queue: "unborn", Actor: "ada"}))
		s.enqueue(func(d *holdfast.Draft) { d.Queue = "unborn" })
		same(s, "claimed", len(s.claimAs(store.Claim{Worker: "w", Limit: 1, Queues: []string{"unborn"}})), 0)
	}},
	{"lifting a hold that does not exist is no error", func(s *scene) {
		s.must(s.Store.Resume(s.ctx, store.Hold{Kind: "mail", Actor: "ada"}))
	}},
	{"an invalid hold is refused", func(s *scene) {
		for _, bad := range []store.Hold{
			{Actor: "ada"}, {Queue: "a", Kind: "b", Actor: "ada"}, {Queue: "a"}, {Queue: "no blanks", Actor: "ada"}, {Queue: "a", Actor: "ada", For: -1},
			{Tag: "red", Actor: "ada", AtMost: 1}, {Tag: "r*", Actor: "ada"}, {Queue: "a*", Actor: "ada", Rate: &store.Rate{PerSecond: 1, Burst: 1}},
			{Queue: "a", Actor: "ada", AtMost: -1}, {Queue: "a", Actor: "ada", Rate: &store.Rate{PerSecond: 1}},
		} {
			s.expectError(s.Store.Pause(s.ctx, bad), holdfast.ErrInvalid)
			s.expectError(s.Store.Apply(s.ctx, store.Change{Place: []store.Hold{bad}}), holdfast.ErrInvalid)
		}
		s.expectError(s.Store.Resume(s.ctx, store.Hold{Queue: "a"}), holdfast.ErrInvalid)
		holds, err := s.Store.Holds(s.ctx)
		s.must(err)
		same(s, "holds", len(holds), 0)
	}},
	{"each scope holds its own jobs and no others", func(s *scene) {
		for _, hold := range []store.Hold{{Queue: "default"}, {Kind: "mail"}, {Owner: "acme"}, {Dependency: "gateway"}, {Tag: "red"}} {
			s.Wipe()
			free := s.enqueue(func(d *holdfast.Draft) {
				d.Queue, d.Kind, d.Owner, d.Dependency, d.Tags = "slow", "pdf", "zeta", "printer", []string{"reddish"}
			})
			id := s.enqueue(func(d *holdfast.Draft) { d.Owner, d.Dependency, d.Tags = "acme", "gateway", []string{"blue", "red"} })
			s.pause(hold)
			same(s, "claimed", ids(s.claimAll()), []holdfast.ID{free})
			s.expectCounts(id, [5]int{0, 0, 0, 0, 1})
			same(s, "attempts", len(s.history(id).Attempts), 0)
			s.resume(hold)
			s.promote(10)
			same(s, "claimed when resumed", ids(s.claimAll()), []holdfast.ID{id})
		}
	}},
	{"a name that ends in a star holds every name with that prefix", func(s *scene) {
		for _, hold := range []store.Hold{{Queue: "eu.*"}, {Kind: "eu.*"}, {Owner: "eu.*"}, {Dependency: "eu.*"}} {
			s.Wipe()
			put := func(name string) holdfast.ID {
				return s.enqueue(func(d *holdfast.Draft) { d.Queue, d.Kind, d.Owner, d.Dependency = name, name, name, name })
			}
			queues := []string{"default", "eu.", "eu.west", "eu", "us", "us.eu.west"}
			free := []holdfast.ID{s.enqueue(), put("eu"), put("us"), put("us.eu.west")}
			put("eu.")
			put("eu.west")
			s.pause(hold)
			same(s, "claimed", sortedIDs(s.claimAs(store.Claim{Worker: "w", Limit: 20, Queues: queues})), free)
			s.resume(hold)
			same(s, "claimed when resumed", len(s.claimAs(store.Claim{Worker: "w", Limit: 20, Queues: queues})), 2)
		}
	}},
	{"a star alone holds every name that is not empty", func(s *scene) {
		s.pause(store.Hold{Owner: "*"})
		nobody := s.enqueue()
		s.enqueue(owned("acme"))
		same(s, "claimed", ids(s.claim(10)), []holdfast.ID{nobody})
	}},
	{"names in holds are literal: SQL wildcards and quotes have no meaning", func(s *scene) {
		for _, name := range []string{"a%", "a_", "a'*", `a\*`, "a%*"} {
			s.pause(store.Hold{Owner: name})
		}
		id := s.enqueue(owned("abc"))
		same(s, "claimed", ids(s.claim(10)), []holdfast.ID{id})
	}},
	{"a hold on retries holds jobs with failures, and no others", func(s *scene) {
		failed := s.start()
		s.settle(retries(failed, 0))
		crashed := s.startFirst()
		s.settle(releases(crashed, store.ChargeCrash, 0))
		fresh := s.enqueue()
		s.pause(store.Hold{Queue: "default", Retries: true})
		same(s, "claimed", sortedIDs(s.claim(10)), sorted(crashed.ID, fresh))
		same(s, "counts", s.expectCounts(failed.ID, [5]int{1, 1, 0, 0, 1}).State, holdfast.Queued)
		s.resume(store.Hold{Queue: "default"})
		same(s, "claimed when resumed", ids(s.claim(10)), []holdfast.ID{failed.ID})
	}},
	{"a retry that was promoted, released, or claimed and released is still a retry for a hold", func(s *scene) {
		lease := s.start()
		s.settle(retries(lease, time.Minute))
		s.Advance(time.Minute)
		s.promote(10)
		s.pause(store.Hold{Kind: "mail", Retries: true})
		same(s, "promoted", len(s.claim(1)), 0)
		s.resume(store.Hold{Kind: "mail"})
		s.settle(releases(s.claimOne(), store.ChargeRelease, 0))
		s.pause(store.Hold{Kind: "mail", Retries: true})
		same(s, "released", len(s.claim(1)), 0)
		s.resume(store.Hold{Kind: "mail"})
		s.claimAs(store.Claim{Worker: "w", Limit: 1})
		s.Advance(longAgo)
		for _, l := range s.reclaim() {
			s.settle(releases(l, store.ChargeCrash, 0))
		}
		s.pause(store.Hold{Kind: "mail", Retries: true})
		same(s, "released", len(s.claim(1)), 0)
	}},
	{"a manual retry is a first attempt for a hold on retries", func(s *scene) {
		lease := s.fail()
		s.pause(store.Hold{Queue: "default", Retries: true})
		s.retry(lease.ID)
		same(s, "claimed", s.claimOne().ID, lease.ID)
	}},
	{"a hold on a dependency applies to kinds that were declared to call it, unless the job names another", func(s *scene) {
		declared, other := s.enqueue(), s.enqueue(func(d *holdfast.Draft) { d.Dependency = "printer" })
		s.depends("mail", "gateway")
		s.pause(store.Hold{Dependency: "gateway"})
		same(s, "shown", []string{s.job(declared).Dependency, s.job(other).Dependency}, []string{"gateway", "printer"})
		lease := s.claim(10)
		same(s, "claimed", ids(lease), []holdfast.ID{other})
		same(s, "the lease has the job's own dependency", lease[0].Dependency, "printer")
		s.depends("mail", "smtp")
		lease = s.claim(10)
		same(s, "claimed when the kind depends on something else", ids(lease), []holdfast.ID{declared})
		same(s, "and not the declared one", lease[0].Dependency, "")
		same(s, "shown with the job", s.job(declared).Dependency, "smtp")
	}},
	{"a dependency declared through one handle applies to claims of every handle", func(s *scene) {
		other := s.Reopen()
		s.enqueue()
		s.pause(store.Hold{Dependency: "gateway"})
		s.must(other.ReportWorker(s.ctx, store.WorkerInfo{Worker: "w2", Kinds: []string{"mail"}, Depends: map[string]string{"mail": "gateway"}, For: time.Hour}))
		same(s, "claimed", len(s.claim(1)), 0)
		s.depends("mail", "smtp")
		leases, err := other.Claim(s.ctx, store.Claim{Worker: "w2", Queues: []string{"default"}, Limit: 1, Lease: shortLease})
		s.must(err)
		same(s, "claimed by the other", len(leases), 1)
	}},
	{"holds of different sources do not replace each other: all must let a job through", func(s *scene) {
		s.enqueue()
		s.pause(store.Hold{Queue: "default"})
		s.pause(store.Hold{Queue: "default", Source: store.SourceBreaker})
		same(s, "holds", len(s.holds()), 2)
		s.resume(store.Hold{Queue: "default"})
		same(s, "claimed", len(s.claim(1)), 0)
		s.resume(store.Hold{Queue: "default", Source: store.SourceBreaker})
		s.claimOne()
	}},
	{"pausing, limiting and resuming are recorded as events, once each", func(s *scene) {
		s.resume(store.Hold{Queue: "default"})
		s.pause(store.Hold{Queue: "default", Reason: "the printer is on fire"})
		s.pause(store.Hold{Queue: "default", AtMost: 3})
		s.resume(store.Hold{Queue: "default"})
		s.resume(store.Hold{Queue: "default"})
		events, err := s.Store.Events(s.ctx, "hold/queue/default", 10)
		s.must(err)
		var story []string
		for _, e := range events {
			story = append(story, e.Actor+" "+e.Name)
		}
		same(s, "story, newest first", story, []string{"ada resumed", "ada limited", "ada paused"})
		same(s, "reason", events[2].Reason, "the printer is on fire")
		last, err := s.Store.Events(s.ctx, "hold/queue/default", 1)
		s.must(err)
		same(s, "the last one", last, events[:1])
		none, err := s.Store.Events(s.ctx, "hold/queue/slow", 10)
		s.must(err)
		same(s, "another's", len(none), 0)
	}},
	{"the number of jobs behind a hold is known, for each scope", func(s *scene) {
		failed := s.start(owned("acme"))
		s.settle(retries(failed, 0))
		s.enqueue(owned("acme"))
		s.enqueue(owned("zeta"), func(d *holdfast.Draft) { d.Kind, d.Tags = "pdf", []string{"red"} })
		s.enqueue(at(time.Hour))
		s.depends("mail", "gateway")
		for _, c := range []struct {
			hold store.Hold
			want int
		}{
			{store.Hold{Queue: "default"}, 3}, {store.Hold{Queue: "slow"}, 0}, {store.Hold{Kind: "p*"}, 1}, {store.Hold{Owner: "acme"}, 2},
			{store.Hold{Owner: "acme", Retries: true}, 1}, {store.Hold{Dependency: "gateway"}, 2}, {store.Hold{Tag: "red"}, 0},
		} {
			same(s, "behind a hold", s.behind(c.hold), c.want)
		}
		s.pause(store.Hold{Tag: "red"})
		same(s, "claimed", len(s.claimAs(store.Claim{Worker: "w", Limit: 10})), 2)
		same(s, "behind the tag, set aside", s.behind(store.Hold{Tag: "red"}), 1)
	}},
}

// Helpers for laws about holds. The actor is ada.

func (s *scene) pause(h store.Hold) {
	s.Helper()
	h.Actor = "ada"
	s.must(s.Store.Pause(s.ctx, h))
}

func (s *scene) resume(h store.Hold) {
	s.Helper()
	h.Actor = "ada"
	s.must(s.Store.Resume(s.ctx, h))
}

func (s *scene) holds() []store.Hold {
	s.Helper()
	holds, err := s.Store.Holds(s.ctx)
	s.must(err)
	return holds
}

func (s *scene) behind(h store.Hold) int {
	s.Helper()
	h.Actor = "ada"
	n, err := s.Store.CountHeld(s.ctx, h)
	s.must(err)
	return n
}

// depends declares the dependency of a kind.
func (s *scene) depends(kind, dependency string) {
	s.Helper()
	s.must(s.Store.ReportWorker(s.ctx, store.WorkerInfo{Worker: "w1", Kinds: []string{kind}, Depends: map[string]string{kind: dependency}, For: time.Hour}))
}

// claimAll claims all jobs of two queues.
func (s *scene) claimAll() []store.Lease {
	s.Helper()
	return s.claimAs(store.Claim{Worker: "w", Limit: 20, Start: 20, Queues: []string{"default", "slow"}})
}

func owned(owner string) func(*holdfast.Draft) {
	return func(d *holdfast.Draft) { d.Owner = owner }
}

func sorted(all ...holdfast.ID) []holdfast.ID {
	slices.SortFunc(all, func(a, b holdfast.ID) int { return slices.Compare(a[:], b[:]) })
	return all
}

func sortedIDs(leases []store.Lease) []holdfast.ID { return sorted(ids(leases)...) }
