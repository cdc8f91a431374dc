package storetest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var afterLaws = []law{
	{"a member that waits for others becomes claimable when the last of them is complete, and not before", func(s *scene) {
		group := s.gather()
		first := s.enqueueMany(2, in(group))
		next := s.enqueue(in(group), after(first...))
		s.advanceGroups()
		s.expectWaiting(next)
		sorted := slices.Clone(s.job(next).After)
		slices.SortFunc(sorted, func(a, b holdfast.ID) int { return slices.Compare(a[:], b[:]) })
		same(s, "after", sorted, first)
		same(s, "members", s.group(group).Members, holdfast.Members{Total: 3, Waiting: 1, Queued: 2})
		leases := s.claim(10)
		same(s, "claimed", ids(leases), first)
		s.settle(completes(leases[0]), retries(leases[1], 0))
		s.advanceGroups()
		s.expectWaiting(next)
		s.settle(completes(s.claimOne()))
		s.advanceGroups()
		job := s.expectState(next, holdfast.Queued)
		same(s, "waiting, due", []any{job.Waiting, job.DueAt}, []any{false, job.AsOf})
		same(s, "claimed", s.claimOne().ID, next)
	}},
	{"when a member fails, a member that waits for it is cancelled without running, and names the failed member", func(s *scene) {
		group := s.gather()
		first := s.enqueueMany(2, in(group))
		next := s.enqueue(in(group), after(first...), unique("k"), expiresIn(time.Hour))
		s.seal(group)
		same(s, "ran", s.run(first[1]), first)
		job := s.expectCounts(next, [5]int{0, 0, 0, 0, 1})
		same(s, "job", []any{job.State, job.Upstream, job.StartedAt.IsZero(), job.FinishedAt}, []any{holdfast.Cancelled, first[1], true, job.AsOf})
		events := s.history(next).Events
		same(s, "events", []any{len(events), events[0].Name, events[0].Actor}, []any{1, "cancel", "holdfast"})
		if !strings.Contains(events[0].Reason, first[1].String()) || !strings.Contains(events[0].Reason, "failed") {
			s.Fatalf("the event does not name the failed member: %q", events[0].Reason)
		}
		same(s, "its unique key is free", s.enqueueAll(holdfast.Draft{Kind: "mail", UniqueKey: "k", Delay: time.Hour})[0].Existing, false)
		same(s, "members", s.expectGroup(group, holdfast.GroupPartial, 1).Members, holdfast.Members{Total: 3, Complete: 1, Failed: 1, Cancelled: 1})
	}},
	{"a waiting member is cancelled as soon as one of the members it waits for has failed", func(s *scene) {
		group := s.gather()
		first := s.enqueueMany(2, in(group))
		next := s.enqueue(in(group), after(first...))
		s.settle(fails(s.claimOne(), "BROKEN"))
		s.advanceGroups()
		s.expectState(next, holdfast.Cancelled)
	}},
	{"when a member is cancelled, the members that wait for it are cancelled", func(s *scene) {
		group := s.gather()
		first := s.enqueue(in(group))
		second := s.enqueue(in(group), after(first))
		third := s.enqueue(in(group), after(second))
		same(s, "cancelled at once", s.cancel(second), holdfast.Cancelled)
		s.advanceGroups()
		same(s, "upstream", s.expectState(third, holdfast.Cancelled).Upstream, second)
		same(s, "upstream of one that a person cancelled", s.job(second).Upstream, holdfast.ID{})
		s.expectState(first, holdfast.Queued)
	}},
	{"a member that waits for others whatever their outcome becomes claimable when the last has ended", func(s *scene) {
		group := s.gather()
		first := s.enqueueMany(3, in(group))
		next := s.enqueue(in(group), after(first...), afterAll)
		s.seal(group)
		s.cancel(first[0])
		s.advanceGroups()
		s.expectWaiting(next)
		s.run(first[1])
		same(s, "ran", s.run(), []holdfast.ID{next})
		same(s, "members", s.expectGroup(group, holdfast.GroupPartial, 1).Members, holdfast.Members{Total: 4, Complete: 2, Failed: 1, Cancelled: 1})
	}},
	{"a chain of three members runs one after the other; when the first fails, the others never run", func(s *scene) {
		for _, broken := range []bool{false, true} {
			group := s.gather()
			chain := s.chain(group, 3)
			s.seal(group)
			if broken {
				same(s, "ran", s.run(chain[0]), chain[:1])
				same(s, "upstream of the third", s.expectState(chain[2], holdfast.Cancelled).Upstream, chain[1])
				same(s, "upstream of the second", s.job(chain[1]).Upstream, chain[0])
				s.expectGroup(group, holdfast.GroupFailed, 1)
				continue
			}
			for _, link := range chain {
				same(s, "ran", s.run(), []holdfast.ID{link})
			}
			s.expectGroup(group, holdfast.GroupReady, 1)
		}
	}},
	{"in a diamond both sides become claimable together, and the last member after both", func(s *scene) {
		group := s.gather()
		drafts := make([]holdfast.Draft, 4)
		for i := range drafts {
			drafts[i] = draft()
			drafts[i].ID, drafts[i].Group = holdfast.NewID(), group
		}
		a, b, c, d := drafts[0].ID, drafts[1].ID, drafts[2].ID, drafts[3].ID
		drafts[1].After, drafts[2].After, drafts[3].After = []holdfast.ID{a}, []holdfast.ID{a}, []holdfast.ID{b, c}
		s.enqueueAll(drafts...)
		s.seal(group)
		same(s, "first", s.run(), []holdfast.ID{a})
		leases := s.claim(10)
		same(s, "then", ids(leases), []holdfast.ID{b, c})
		s.settle(completes(leases[0]))
		s.advanceGroups()
		s.expectWaiting(d)
		s.settle(completes(leases[1]))
		s.advanceGroups()
		same(s, "at last", s.run(), []holdfast.ID{d})
		s.expectGroup(group, holdfast.GroupReady, 1)
	}},
	{"a member that waits for a member that has already ended is treated by its outcome", func(s *scene) {
		group := s.gather()
		first := s.enqueueMany(3, in(group))
		s.cancel(first[2])
		s.run(first[1])
		good, bad, worse := s.enqueue(in(group), after(first[0])), s.enqueue(in(group), after(first[0], first[1])), s.enqueue(in(group), after(first[2]))
		whatever := s.enqueue(in(group), after(first...), afterAll)
		s.advanceGroups()
		same(s, "upstream", []holdfast.ID{s.expectState(bad, holdfast.Cancelled).Upstream, s.expectState(worse, holdfast.Cancelled).Upstream}, []holdfast.ID{first[1], first[2]})
		same(s, "ran", s.run(), []holdfast.ID{good, whatever})
	}},
	{"a draft that waits for a job that does not exist, is not in its group or comes later in the call is refused; the error names the job, and nothing is written", func(s *scene) {
		group, other := s.gather(), s.gather()
		outsider, foreign, mine := s.enqueue(), s.enqueue(in(other)), s.enqueue(in(group))
		later := holdfast.NewID()
		for name, upstream := range map[string]holdfast.ID{"unknown": holdfast.NewID(), "in no group": outsider, "in another group": foreign, "later in the call": later} {
			drafts := []holdfast.Draft{{Kind: "mail", Group: group}, {Kind: "mail", Group: group, After: []holdfast.ID{mine, upstream}}, {Kind: "mail", ID: later, Group: group}}
			for way, enqueue := range s.insertPaths(drafts) {
				if err := enqueue(); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), upstream.String()) {
					s.Errorf("%s, %s: got %v, want a refusal that names %v", name, way, err, upstream)
				}
			}
		}
		s.expectJobs(3)
		_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{{Kind: "mail", After: []holdfast.ID{outsider}}})
		s.expectError(err, holdfast.ErrInvalid)
	}},
}

// chain enqueues jobs of which each waits for the one before it.
func (s *scene) chain(group holdfast.ID, n int) []holdfast.ID {
	s.Helper()
	links := []holdfast.ID{s.enqueue(in(group))}
	for range n - 1 {
		links = append(links, s.enqueue(in(group), after(links[len(links)-1])))
	}
	return links
}

// insertPaths are all ways to enqueue these drafts.
func (s *scene) insertPaths(drafts []holdfast.Draft) map[string]func() error {
	return map[string]func() error{
		"alone":       func() error { _, err := s.Store.Enqueue(s.ctx, slices.Clone(drafts)); return err },
		"in a change": func() error { return s.Store.Apply(s.ctx, store.Change{Enqueue: slices.Clone(drafts)}) },
		"in a transaction": func() error {
			tx, end := s.Begin()
			_, err := s.In(tx).Enqueue(s.ctx, slices.Clone(drafts))
			return errors.Join(err, end(err == nil))
		},
	}
}

// Further laws about members that wait for others.
var waitLaws = []law{
	{"a manual retry of a group retries the failed members and those that wait for them, in order, and the group ends ready", func(s *scene) {
		group := s.gather()
		chain := s.chain(group, 3)
		aside := s.enqueue(in(group))
		s.seal(group)
		s.run(chain[0])
		s.expectGroup(group, holdfast.GroupPartial, 1)
		same(s, "retried", s.retryGroup(group), 3)
		s.expectWaiting(chain[1], chain[2])
		job := s.expectCounts(chain[2], [5]int{0, 0, 0, 0, 2})
		same(s, "upstream", job.Upstream, holdfast.ID{})
		same(s, "aside", s.job(aside).Generation, 1)
		for _, link := range chain {
			same(s, "ran", s.run(), []holdfast.ID{link})
		}
		s.expectGroup(group, holdfast.GroupReady, 2)
		var actions []string
		for _, e := range s.history(chain[2]).Events {
			actions = append(actions, e.Actor+" "+e.Name)
		}
		same(s, "story of the last", actions, []string{"holdfast cancel", "ada manual retry"})
	}},
	{"a member that never ran and is retried with its group starts a new generation at that time", func(s *scene) {
		group := s.gather()
		chain := s.chain(group, 2)
		s.run(chain[0])
		s.Advance(time.Hour)
		s.retryGroup(group)
		began := s.job(chain[1]).AsOf
		s.Advance(time.Hour)
		s.run()
		lease := s.claimOne()
		same(s, "lease", []any{lease.ID, lease.Token, lease.Generation, lease.Since}, []any{chain[1], 1, 2, began})
	}},
	{"when the first member of a chain fails again, the others are cancelled again", func(s *scene) {
		group := s.gather()
		chain := s.chain(group, 3)
		s.seal(group)
		for generation := range 3 {
			s.run(chain[0])
			s.expectState(chain[2], holdfast.Cancelled)
			s.expectGroup(group, holdfast.GroupFailed, generation+1)
			same(s, "retried", s.retryGroup(group), 3)
		}
		same(s, "ran", s.run(), chain[:1])
		same(s, "ran", s.run(chain[1]), chain[1:2])
		s.expectGroup(group, holdfast.GroupPartial, 4)
		same(s, "retried", s.retryGroup(group), 2)
		s.run()
		s.run()
		s.expectGroup(group, holdfast.GroupReady, 5)
	}},
	{"a manual retry of a failed member leaves the members cancelled that waited for it; a waiting member, or one cancelled that way, cannot be retried on its own", func(s *scene) {
		group := s.gather()
		chain := s.chain(group, 2)
		waiting := s.enqueue(in(group), after(s.enqueue(in(group), at(time.Hour))))
		s.run(chain[0])
		s.expectRetryRefused(chain[1])
		s.expectRetryRefused(waiting)
		s.retry(chain[0])
		s.run()
		s.expectState(chain[1], holdfast.Cancelled)
		s.expectWaiting(waiting)
	}},
	{"a waiting member does not start before its own due time", func(s *scene) {
		group := s.gather()
		first := s.enqueue(in(group))
		late, soon := s.enqueue(in(group), after(first), at(time.Hour)), s.enqueue(in(group), after(first), at(time.Second))
		due := s.job(late).AsOf.Add(time.Hour)
		same(s, "due", s.job(late).DueAt, due)
		s.Advance(time.Minute)
		same(s, "promoted", s.promote(10), 0)
		s.run()
		same(s, "ran", s.run(), []holdfast.ID{soon})
		job := s.expectState(late, holdfast.Queued)
		same(s, "waiting, due", []any{job.Waiting, job.DueAt}, []any{false, due})
		s.Advance(time.Hour)
		same(s, "promoted", s.promote(10), 1)
		same(s, "ran", s.run(), []holdfast.ID{late})
	}},
	{"promotion and holds, and the end of holds, do not release a waiting member", func(s *scene) {
		group := s.gather()
		first := s.enqueue(in(group), at(100*time.Hour))
		next := s.enqueue(in(group), after(first), tagged("red"))
		s.pause(store.Hold{Tag: "red"})
		held := s.enqueue(tagged("red"))
		same(s, "claimed", len(s.claim(10)), 0)
		s.resume(store.Hold{Tag: "red"})
		for range 3 {
			s.promote(100)
			s.Advance(time.Hour)
		}
		same(s, "claimed", ids(s.claim(10)), []holdfast.ID{held})
		s.expectWaiting(next)
	}},
	{"a waiting member with a held tag stays held when its wait is over", func(s *scene) {
		group := s.gather()
		next := s.enqueue(in(group), after(s.enqueue(in(group))), tagged("red"))
		s.pause(store.Hold{Tag: "red"})
		s.run()
		same(s, "claimed", len(s.claim(10)), 0)
		s.resume(store.Hold{Tag: "red"})
		s.promote(10)
		same(s, "claimed", ids(s.claim(10)), []holdfast.ID{next})
	}},
	{"a waiting member expires like any other, and counts as failed in its group", func(s *scene) {
		group := s.gather()
		first := s.enqueue(in(group))
		next := s.enqueue(in(group), after(first), expiresIn(time.Minute))
		s.seal(group)
		s.Advance(time.Minute)
		leases := s.expire()
		same(s, "expired", ids(leases), []holdfast.ID{next})
		e := fails(leases[0], "JOB_EXPIRED")
		e.Charge = store.ChargeNone
		s.settle(e)
		s.run()
		same(s, "members", s.expectGroup(group, holdfast.GroupPartial, 1).Members, holdfast.Members{Total: 2, Complete: 1, Failed: 1})
	}},
	{"a hundred members can wait for one, and one can wait for a hundred", func(s *scene) {
		group := s.gather()
		first := s.enqueue(in(group))
		crowd := s.enqueueMany(100, in(group), after(first))
		last := s.enqueue(in(group), after(crowd...))
		s.seal(group)
		same(s, "ran", []int{len(s.run()), len(s.run())}, []int{1, 100})
		same(s, "ran", s.run(), []holdfast.ID{last})
		s.expectGroup(group, holdfast.GroupReady, 1)
	}},
	{"with concurrent settlements and concurrent AdvanceGroups calls, each waiting member becomes claimable once", func(s *scene) {
		group := s.gather()
		first := s.enqueueMany(40, in(group))
		var next []holdfast.ID
		for i := range 40 {
			next = append(next, s.enqueue(in(group), after(first[i], first[(i+1)%40]), afterAll))
		}
		s.seal(group)
		s.endTogether(10, 4)
		s.advanceGroups()
		same(s, "ran", len(s.run()), len(next))
		same(s, "live", s.group(group).Members.Live(), 0)
		same(s, "settled", s.group(group).State.Settled(), true)
	}},
}
