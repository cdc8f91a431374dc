package storetest

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// What follows an outcome: another generation, continuations; and how a group ends early.
var generationLaws = []law{
	{"a manual retry of a member reopens a settled group, and a later success ends ready (good_job#1450, sidekiq#6852)", func(s *scene) {
		group, members := s.sealedGroup(3)
		s.run(members[1])
		s.expectGroup(group, holdfast.GroupPartial, 1)
		s.retry(members[1])
		same(s, "members", s.expectGroup(group, holdfast.GroupProcessing, 2).Members, holdfast.Members{Total: 3, Queued: 1, Complete: 2})
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupProcessing, 2)
		s.run()
		s.expectGroup(group, holdfast.GroupReady, 2)
		same(s, "story", s.groupStory(group), []groupEvent{{"holdfast", "partial", 1}, {"ada", "reopened", 2}, {"holdfast", "ready", 2}})
	}},
	{"a redrive of members reopens their group, once", func(s *scene) {
		group, members := s.sealedGroup(4)
		s.run(members[:3]...)
		s.redrive(step(holdfast.NewID(), members[:3]...))
		s.expectGroup(group, holdfast.GroupProcessing, 2)
		s.run(members[0])
		s.expectGroup(group, holdfast.GroupPartial, 2)
		same(s, "story", s.groupStory(group), []groupEvent{{"holdfast", "partial", 1}, {"ada", "reopened", 2}, {"holdfast", "partial", 2}})
	}},
	{"a member that is retried before its group has settled starts no new generation of the group, which waits for it", func(s *scene) {
		group, members := s.sealedGroup(2)
		leases := s.claim(2)
		s.settle(fails(leases[0], "BROKEN"))
		s.advanceGroups()
		s.retry(members[0])
		s.settle(completes(leases[1]))
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupProcessing, 1)
		s.run()
		s.expectGroup(group, holdfast.GroupReady, 1)
		same(s, "story", s.groupStory(group), []groupEvent{{"holdfast", "ready", 1}})
	}},
	{"every retry of a member that fails again is a new generation of its group", func(s *scene) {
		group, members := s.sealedGroup(1, thenEnqueue("", "report"))
		for generation := range 4 {
			s.run(members[0])
			s.expectGroup(group, holdfast.GroupFailed, generation+1)
			same(s, "continuations", len(s.jobs(store.Filter{Kind: "report"})), generation+1)
			s.retry(members[0])
		}
		s.run()
		s.expectGroup(group, holdfast.GroupReady, 5)
		same(s, "lines", len(s.groupStory(group)), 9)
	}},
	{"a manual retry of a group retries all failed members, with events of the group and of each", func(s *scene) {
		group, members := s.sealedGroup(5)
		s.run(members[0], members[3], members[4])
		s.must(s.Store.Discard(s.ctx, by(members[4])))
		same(s, "retried", s.retryGroup(group), 2)
		s.expectGroup(group, holdfast.GroupProcessing, 2)
		s.expectCounts(members[0], [5]int{1, 0, 0, 0, 2})
		s.expectState(members[4], holdfast.Failed)
		last := s.history(members[3]).Events
		same(s, "story of a member", []any{last[len(last)-1].Name, last[len(last)-1].Actor, last[len(last)-1].Request}, []any{"manual retry", "ada", "req-1"})
		said := slices.IndexFunc(s.events("group/"+group.String()), func(e store.Event) bool {
			return e.Name == "manual retry" && e.Actor == "ada" && e.Reason == "because" && e.Request == "req-1"
		})
		if said < 0 {
			s.Fatalf("the group's events do not name the actor of the retry: %+v", s.events("group/"+group.String()))
		}
		same(s, "ran", len(s.run()), 2)
		s.expectGroup(group, holdfast.GroupPartial, 2)
	}},
	{"retrying a group without failed members is a conflict, another owner's or no group is not found, no actor is invalid", func(s *scene) {
		group, members := s.sealedGroup(2, func(g *holdfast.Group) { g.Owner = "acme" })
		_, err := s.Store.RetryGroup(s.ctx, byGroup(group))
		s.expectError(err, holdfast.ErrConflict)
		s.run(members[0])
		foreign, nobody := byGroup(group), byGroup(group)
		foreign.Owner, nobody.Actor = "zeta", ""
		for _, c := range []struct {
			i    store.Intervention
			want error
		}{{foreign, holdfast.ErrNotFound}, {nobody, holdfast.ErrInvalid}, {byGroup(holdfast.NewID()), holdfast.ErrNotFound}} {
			_, err := s.Store.RetryGroup(s.ctx, c.i)
			s.expectError(err, c.want)
			s.expectError(s.Store.CancelGroup(s.ctx, c.i), c.want)
		}
		s.expectGroup(group, holdfast.GroupPartial, 1)
		own := byGroup(group)
		own.Owner = "acme"
		n, err := s.Store.RetryGroup(s.ctx, own)
		s.must(err)
		same(s, "retried", n, 1)
	}},
	{"twenty concurrent retries of one group start one generation", func(s *scene) {
		group, members := s.sealedGroup(10)
		s.run(members...)
		stores, sent := s.handles(), &lockedCounts{}
		together(20, func(i int) {
			n, err := stores[i%3].RetryGroup(s.ctx, byGroup(group))
			for range n {
				sent.add("sent")
			}
			if err != nil && n != 0 {
				s.Errorf("retry: %v", err)
			}
		})
		same(s, "retried", sent.n["sent"], 10)
		s.expectGroup(group, holdfast.GroupProcessing, 2)
		same(s, "ran", len(s.run()), 10)
		s.expectGroup(group, holdfast.GroupReady, 2)
	}},
	{"continuations are enqueued with the outcome: once, for this outcome, with the group's data and owner", func(s *scene) {
		group, members := s.sealedGroup(2, thenEnqueue("", "any"), thenEnqueue(holdfast.GroupReady, "ready"), thenEnqueue(holdfast.GroupPartial, "partial"),
			thenEnqueue(holdfast.GroupCancelled, "cancelled"), func(g *holdfast.Group) { g.Owner = "acme" })
		s.run(members[0])
		next := s.claimAs(store.Claim{Worker: "w", Limit: 10, Queues: []string{"next"}})
		same(s, "continuations", kinds(next), []string{"any", "partial"})
		for _, l := range next {
			var args struct {
				Group      holdfast.ID
				State      holdfast.GroupState
				Generation int
			}
			s.must(json.Unmarshal(l.Args, &args))
			same(s, "continuation", []any{args.Group, args.State, args.Generation, l.Owner, l.Group.IsZero()}, []any{group, holdfast.GroupPartial, 1, "acme", true})
			s.settle(completes(l))
		}
		s.retryGroup(group)
		s.run()
		next = s.claimAs(store.Claim{Worker: "w", Limit: 10, Queues: []string{"next"}})
		same(s, "continuations of the next generation", kinds(next), []string{"any", "ready"})
	}},
}

func kinds(leases []store.Lease) (all []string) {
	for _, l := range leases {
		all = append(all, l.Kind)
	}
	slices.Sort(all)
	return all
}

var endingLaws = []law{
	{"cancelling a group cancels its queued members, adds cancel requests for the processing ones, and the group is cancelled when they have ended", func(s *scene) {
		group := s.gather(thenEnqueue(holdfast.GroupCancelled, "regret"), thenEnqueue("", "report"))
		members := s.enqueueMany(5, in(group))
		leases := s.claim(2)
		s.settle(completes(leases[0]))
		s.cancelGroup(group)
		_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{{Kind: "mail", Group: group}})
		s.expectError(err, holdfast.ErrConflict)
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupProcessing, 1)
		same(s, "with a cancel request", s.job(leases[1].ID).Cancelling, true)
		same(s, "left to claim", len(s.claim(10)), 0)
		s.settle(completes(leases[1]))
		s.advanceGroups()
		same(s, "members", s.expectGroup(group, holdfast.GroupCancelled, 1).Members, holdfast.Members{Total: 5, Complete: 1, Cancelled: 4})
		s.expectState(members[4], holdfast.Cancelled)
		same(s, "story", s.groupStory(group), []groupEvent{{"ada", "cancel", 1}, {"holdfast", "cancelled", 1}})
		same(s, "continuations", kinds(s.claimAs(store.Claim{Worker: "w", Limit: 10, Queues: []string{"next"}})), []string{"regret"})
		s.expectError(s.Store.CancelGroup(s.ctx, byGroup(group)), holdfast.ErrConflict)
	}},
	{"a group that is cancelled without live members is cancelled, even if all its members are complete", func(s *scene) {
		group := s.gather()
		s.enqueueMany(2, in(group))
		s.run()
		s.cancelGroup(group)
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupCancelled, 1)
	}},
	{"two hundred members of a cancelled group are cancelled, including those that wait for others", func(s *scene) {
		group := s.gather()
		first := s.enqueue(in(group))
		s.enqueueMany(150, in(group))
		s.enqueueMany(50, in(group), after(first))
		s.cancelGroup(group)
		s.advanceGroups()
		same(s, "members", s.expectGroup(group, holdfast.GroupCancelled, 1).Members, holdfast.Members{Total: 201, Cancelled: 201})
		same(s, "left to claim", len(s.claim(10)), 0)
	}},
	{"a retried member reopens a cancelled group, whose new outcome follows from its members", func(s *scene) {
		group, members := s.sealedGroup(3)
		lease := s.claimOne()
		s.settle(fails(lease, "BROKEN"))
		s.cancelGroup(group)
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupCancelled, 1)
		s.retry(members[0])
		s.expectGroup(group, holdfast.GroupProcessing, 2)
		s.run()
		same(s, "members", s.expectGroup(group, holdfast.GroupPartial, 2).Members, holdfast.Members{Total: 3, Complete: 1, Cancelled: 2})
	}},
	{"a group whose time is up is sealed, its remaining members are cancelled, and it ends as expired", func(s *scene) {
		group := s.gather(func(g *holdfast.Group) { g.ExpireIn = time.Minute }, thenEnqueue(holdfast.GroupExpired, "late"))
		s.enqueueMany(3, in(group))
		lease := s.claimOne()
		s.Advance(time.Minute - time.Microsecond)
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupOpen, 1)
		s.Advance(time.Microsecond)
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupProcessing, 1)
		s.settle(completes(lease))
		s.advanceGroups()
		g := s.expectGroup(group, holdfast.GroupExpired, 1)
		same(s, "members", g.Members, holdfast.Members{Total: 3, Cancelled: 3})
		same(s, "sealed", g.SealedAt.IsZero(), false)
		same(s, "continuations", kinds(s.claimAs(store.Claim{Worker: "w", Limit: 10, Queues: []string{"next"}})), []string{"late"})
		s.advanceGroups()
		same(s, "last line", s.groupStory(group)[len(s.groupStory(group))-1], groupEvent{"holdfast", "expired", 1})
	}},
	{"a group that settled in time does not expire, and the outcome of a reopened one follows from its members", func(s *scene) {
		group, members := s.sealedGroup(1, func(g *holdfast.Group) { g.ExpireAt = s.now().Add(time.Minute) })
		s.run(members[0])
		s.Advance(time.Hour)
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupFailed, 1)
		s.retry(members[0])
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupProcessing, 2)
		s.run()
		s.expectGroup(group, holdfast.GroupReady, 2)
	}},
	{"when two hundred members end while their group is cancelled, it ends once and no member is live", func(s *scene) {
		group, _ := s.sealedGroup(200)
		together(2, func(i int) {
			if i == 0 {
				s.must(s.Store.CancelGroup(s.ctx, byGroup(group)))
				return
			}
			s.endTogether(10, 10)
		})
		s.advanceGroups()
		g := s.expectGroup(group, holdfast.GroupCancelled, 1)
		same(s, "live", g.Members.Live(), 0)
		same(s, "story", s.groupStory(group), []groupEvent{{"ada", "cancel", 1}, {"holdfast", "cancelled", 1}})
	}},
}

// now returns the store's time.
func (s *scene) now() time.Time {
	s.Helper()
	return s.job(s.enqueue(at(time.Hour * 1000))).AsOf
}
