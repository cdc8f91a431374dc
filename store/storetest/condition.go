package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// when makes a draft wait for an outcome of other members.
func when(on holdfast.Outcome, upstream ...holdfast.ID) func(*holdfast.Draft) {
	return func(d *holdfast.Draft) {
		for _, id := range upstream {
			d.When = append(d.When, holdfast.Condition{Job: id, On: on})
		}
	}
}

// expectSkipped expects that jobs were not needed, because of another.
func (s *scene) expectSkipped(cause holdfast.ID, jobs ...holdfast.ID) {
	s.Helper()
	for _, id := range jobs {
		job := s.expectState(id, holdfast.Cancelled)
		if !job.Skipped || job.Upstream != cause || !job.StartedAt.IsZero() || job.Discarded {
			s.Fatalf("job %v: skipped %v because of %v, want because of %v: %+v", id, job.Skipped, job.Upstream, cause, job)
		}
		events := s.history(id).Events
		if last := events[len(events)-1]; last.Name != "cancel" || last.Actor != "holdfast" || !strings.HasPrefix(last.Reason, "it is not needed: member "+cause.String()) {
			s.Fatalf("the last event of a skipped job: %+v", last)
		}
	}
}

// expectCancelledBecause expects that jobs were cancelled because of another, and not skipped.
func (s *scene) expectCancelledBecause(cause holdfast.ID, jobs ...holdfast.ID) {
	s.Helper()
	for _, id := range jobs {
		if job := s.expectState(id, holdfast.Cancelled); job.Skipped || job.Upstream != cause {
			s.Fatalf("job %v: skipped %v because of %v, want cancelled because of %v", id, job.Skipped, job.Upstream, cause)
		}
	}
}

var conditionLaws = []law{
	{"each condition starts its member when the other has ended as it says, and otherwise the member never runs", func(s *scene) {
		for end, holds := range map[holdfast.State][]holdfast.Outcome{
			holdfast.Complete: {holdfast.OnComplete, "", holdfast.OnEnded}, holdfast.Failed: {holdfast.OnFailed, holdfast.OnEnded}, holdfast.Cancelled: {holdfast.OnCancelled, holdfast.OnEnded},
		} {
			group := s.gather()
			first := s.enqueue(in(group))
			of := map[holdfast.Outcome]holdfast.ID{}
			for _, on := range []holdfast.Outcome{"", holdfast.OnComplete, holdfast.OnFailed, holdfast.OnCancelled, holdfast.OnEnded} {
				of[on] = s.enqueue(in(group), when(on, first))
				s.expectWaiting(of[on])
			}
			s.seal(group)
			switch end {
			case holdfast.Complete:
				s.run()
			case holdfast.Failed:
				s.run(first)
			default:
				s.cancel(first)
				s.advanceGroups()
			}
			for on, id := range of {
				switch job := s.job(id); {
				case holds[0] == on || holds[1] == on || holds[len(holds)-1] == on:
					if job.State != holdfast.Queued || job.Waiting {
						s.Errorf("on %q of a member that is %s: %s", on, end, job.State)
					}
				case on == holdfast.OnComplete || on == "":
					s.expectCancelledBecause(first, id)
				default:
					s.expectSkipped(first, id)
				}
			}
			s.run()
			same(s, "live", s.group(group).Members.Live(), 0)
		}
	}},
	{"a compensation that did not have to run does not make its group partial", func(s *scene) {
		group := s.gather(thenEnqueue(holdfast.GroupPartial, "sorry"))
		charge := s.enqueue(in(group), stepNamed("charge"))
		refund := s.enqueue(in(group), when(holdfast.OnFailed, charge))
		tell := s.enqueue(in(group), after(refund))
		ship := s.enqueue(in(group), after(charge))
		s.seal(group)
		s.run()
		same(s, "ran", s.run(), []holdfast.ID{ship})
		s.expectSkipped(charge, refund)
		s.expectSkipped(refund, tell)
		g := s.expectGroup(group, holdfast.GroupReady, 1)
		same(s, "members", g.Members, holdfast.Members{Total: 4, Complete: 2, Skipped: 2})
		same(s, "reason", s.events("group/" + group.String())[0].Reason, "2 of 4 complete, 2 skipped")
		same(s, "continuations", len(s.jobs(store.Filter{Queue: "next"})), 0)
		same(s, "skipped in a list", s.jobs(store.Filter{Group: group, State: holdfast.Cancelled})[0].Skipped, true)
	}},
	{"a compensation runs after the failure, and the group shows the failure", func(s *scene) {
		group := s.gather()
		charge := s.enqueue(in(group))
		refund := s.enqueue(in(group), when(holdfast.OnFailed, charge))
		ship := s.enqueue(in(group), after(charge))
		s.seal(group)
		s.run(charge)
		s.expectCancelledBecause(charge, ship)
		lease := s.claimOne()
		same(s, "claimed", lease.ID, refund)
		same(s, "the failure that it handles", s.upstreams(lease, "")[0].Code, "BROKEN")
		s.settle(completes(lease))
		s.advanceGroups()
		same(s, "members", s.expectGroup(group, holdfast.GroupPartial, 1).Members, holdfast.Members{Total: 3, Complete: 1, Failed: 1, Cancelled: 1})
	}},
	{"all conditions of a member must hold; it waits until the last of them is decided", func(s *scene) {
		group := s.gather()
		a, b, c := s.enqueue(in(group)), s.enqueue(in(group)), s.enqueue(in(group))
		all := s.enqueue(in(group), after(a), when(holdfast.OnFailed, b), when(holdfast.OnEnded, c))
		leases := s.claim(3)
		s.settle(completes(leases[0]), fails(leases[1], "BROKEN"))
		s.advanceGroups()
		s.expectWaiting(all)
		s.settle(fails(leases[2], "BROKEN"))
		s.advanceGroups()
		same(s, "ran", s.run(), []holdfast.ID{all})
	}},
	{"a success that is missing counts before an outcome that did not come", func(s *scene) {
		group := s.gather()
		a, b := s.enqueue(in(group)), s.enqueue(in(group))
		never := s.enqueue(in(group), when(holdfast.OnFailed, a), after(b))
		leases := s.claim(2)
		s.settle(completes(leases[0]), fails(leases[1], "BROKEN"))
		s.advanceGroups()
		s.expectCancelledBecause(b, never)
	}},
	{"a skipped member satisfies only a condition on any end", func(s *scene) {
		group := s.gather()
		first := s.enqueue(in(group))
		skipped := s.enqueue(in(group), when(holdfast.OnFailed, first))
		after, cleanup := s.enqueue(in(group), when(holdfast.OnCancelled, skipped)), s.enqueue(in(group), when(holdfast.OnEnded, skipped))
		s.seal(group)
		s.run()
		s.expectSkipped(skipped, after)
		same(s, "ran", s.run(), []holdfast.ID{cleanup})
		s.expectGroup(group, holdfast.GroupReady, 1)
	}},
	{"a member is named by its step: an earlier draft of the call, or a stored member", func(s *scene) {
		group := s.gather()
		s.enqueue(in(group), stepNamed("load"))
		drafts := []holdfast.Draft{
			{Kind: "mail", Group: group, Step: "parse", When: []holdfast.Condition{{Step: "load"}}},
			{Kind: "mail", Group: group, Step: "send", When: []holdfast.Condition{{Step: "parse"}, {Step: "load", On: holdfast.OnEnded}}},
			{Kind: "mail", Group: group, Step: "undo", When: []holdfast.Condition{{Step: "send", On: holdfast.OnFailed}}},
		}
		receipts := s.enqueueAll(drafts...)
		s.seal(group)
		for _, step := range []int{0, 1} {
			s.run()
			s.expectState(receipts[step].ID, holdfast.Queued)
		}
		s.run()
		s.expectSkipped(receipts[1].ID, receipts[2].ID)
		s.expectGroup(group, holdfast.GroupReady, 1)
	}},
	{"a job shows for which outcomes it waits", func(s *scene) {
		group := s.gather()
		first := s.enqueue(in(group))
		next := s.enqueue(in(group), when(holdfast.OnFailed, first))
		job := s.job(next)
		same(s, "after", job.After, []holdfast.ID{first})
		same(s, "when", job.When, []holdfast.Condition{{Job: first, On: holdfast.OnFailed}})
		same(s, "plain", len(s.job(s.enqueue(in(group), after(first))).When), 0)
		same(s, "in history", s.history(next).Job.When, job.When)
	}},
	{"the graph of a group shows its members, how they ended, and what each waits for", func(s *scene) {
		group, other := s.gather(), s.gather()
		charge := s.enqueue(in(group), stepNamed("charge"))
		refund := s.enqueue(in(group), when(holdfast.OnFailed, charge))
		ship := s.enqueue(in(group), after(charge))
		tell := s.enqueue(in(group), func(d *holdfast.Draft) {
			d.Kind, d.When = "letter", []holdfast.Condition{{Job: refund, On: holdfast.OnEnded}, {Job: ship, On: holdfast.OnCancelled}}
		})
		s.enqueue(in(other))
		waits := []store.Member{
			{Job: charge, Kind: "mail", Step: "charge", State: holdfast.Queued},
			{Job: refund, Kind: "mail", State: holdfast.Queued, Waiting: true, When: []holdfast.Condition{{Job: charge, On: holdfast.OnFailed}}},
			{Job: ship, Kind: "mail", State: holdfast.Queued, Waiting: true, When: []holdfast.Condition{{Job: charge, On: holdfast.OnComplete}}},
			{Job: tell, Kind: "letter", State: holdfast.Queued, Waiting: true, When: []holdfast.Condition{{Job: refund, On: holdfast.OnEnded}, {Job: ship, On: holdfast.OnCancelled}}},
		}
		graph := func() store.GroupGraph {
			g, err := s.Store.GroupGraph(s.ctx, group)
			s.must(err)
			return g
		}
		same(s, "graph", graph(), store.GroupGraph{Members: waits})
		lease := s.claimOne()
		waits[0].State = holdfast.Processing
		same(s, "while one is processing", graph(), store.GroupGraph{Members: waits})
		s.settle(fails(lease, "BROKEN"))
		s.advanceGroups()
		waits[0].State, waits[0].Code = holdfast.Failed, "BROKEN"
		waits[1].Waiting = false
		waits[2].State, waits[2].Waiting, waits[2].Cause = holdfast.Cancelled, false, charge
		same(s, "after the failure", graph(), store.GroupGraph{Members: waits})
		_, err := s.Store.GroupGraph(s.ctx, holdfast.NewID())
		s.expectError(err, holdfast.ErrNotFound)
		g, err := s.Store.GroupGraph(s.ctx, s.gather())
		s.must(err)
		same(s, "of an empty group", len(g.Members), 0)
	}},
	{"the graph of a large group shows a thousand members, and that there are more", func(s *scene) {
		group := s.gather()
		drafts := make([]holdfast.Draft, 1001)
		for i := range drafts {
			drafts[i] = holdfast.Draft{Kind: "mail", Group: group}
		}
		s.enqueueAll(drafts...)
		g, err := s.Store.GroupGraph(s.ctx, group)
		s.must(err)
		same(s, "members", len(g.Members), 1000)
		same(s, "more", g.More, true)
	}},
	{"a condition that makes no sense is refused on every way to enqueue, and nothing is written", func(s *scene) {
		group, other := s.gather(), s.gather()
		first, foreign := s.enqueue(in(group), stepNamed("load")), s.enqueue(in(other), stepNamed("elsewhere"))
		for name, list := range map[string][]holdfast.Condition{
			"of no member": {{On: holdfast.OnFailed}}, "of two members": {{Job: first, Step: "load"}}, "unknown outcome": {{Job: first, On: "sometimes"}}, "twice": {{Job: first}, {Job: first, On: holdfast.OnFailed}},
			"twice by step": {{Job: first}, {Step: "load", On: holdfast.OnFailed}}, "unknown step": {{Step: "nowhere"}}, "step of another group": {{Step: "elsewhere"}}, "job of another group": {{Job: foreign}},
			"unknown job": {{Job: holdfast.NewID()}}, "its own step": {{Step: "self"}},
		} {
			for way, enqueue := range s.insertPaths([]holdfast.Draft{{Kind: "mail", Group: group}, {Kind: "mail", Group: group, Step: "self", When: list}}) {
				if err := enqueue(); !errors.Is(err, holdfast.ErrInvalid) {
					s.Errorf("%s, %s: got %v, want a refusal", name, way, err)
				}
			}
		}
		s.expectJobs(2)
		s.enqueue(in(group), func(d *holdfast.Draft) { d.When = []holdfast.Condition{{Job: first}, {Step: "load"}} })
	}},
	{"a condition on a member that has ended already is decided by its outcome", func(s *scene) {
		group := s.gather()
		good, bad := s.enqueue(in(group)), s.enqueue(in(group))
		s.run(bad)
		skipped, runs := s.enqueue(in(group), when(holdfast.OnFailed, good)), s.enqueue(in(group), when(holdfast.OnFailed, bad))
		s.advanceGroups()
		s.expectSkipped(good, skipped)
		same(s, "ran", s.run(), []holdfast.ID{runs})
	}},
	{"a retry of a single member leaves those that were decided as they are", func(s *scene) {
		group := s.gather()
		charge := s.enqueue(in(group))
		refund, ship := s.enqueue(in(group), when(holdfast.OnFailed, charge)), s.enqueue(in(group), after(charge))
		s.seal(group)
		s.run(charge)
		same(s, "ran", s.run(), []holdfast.ID{refund})
		s.retry(charge)
		s.run()
		s.expectState(refund, holdfast.Complete)
		s.expectCancelledBecause(charge, ship)
		s.expectGroup(group, holdfast.GroupPartial, 2)
	}},
	{"a manual retry of a group decides again: the failed, those cancelled or skipped because of them, and compensations that failed", func(s *scene) {
		group := s.gather()
		charge := s.enqueue(in(group))
		refund, ship := s.enqueue(in(group), when(holdfast.OnFailed, charge)), s.enqueue(in(group), after(charge))
		sorry := s.enqueue(in(group), when(holdfast.OnFailed, ship))
		never := s.enqueue(in(group), when(holdfast.OnCancelled, charge))
		fine := s.enqueue(in(group))
		aside := s.enqueue(in(group), when(holdfast.OnFailed, fine))
		s.seal(group)
		s.run(charge)
		s.run(refund)
		s.expectSkipped(ship, sorry)
		s.expectSkipped(charge, never)
		s.expectSkipped(fine, aside)
		same(s, "retried: all but what is complete and what was skipped because of it", s.retryGroup(group), 5)
		s.expectWaiting(refund, ship, sorry, never)
		s.expectSkipped(fine, aside)
		same(s, "ran", s.run(), []holdfast.ID{charge})
		s.expectSkipped(charge, refund, never)
		same(s, "ran", s.run(ship), []holdfast.ID{ship})
		same(s, "ran", s.run(), []holdfast.ID{sorry})
		g := s.expectGroup(group, holdfast.GroupPartial, 2)
		same(s, "members", g.Members, holdfast.Members{Total: 7, Complete: 3, Failed: 1, Skipped: 3})
	}},
	{"a member with conditions expires, and is cancelled by a person or with its group, like any other", func(s *scene) {
		group := s.gather()
		first := s.enqueue(in(group), at(time.Hour))
		a, b := s.enqueue(in(group), when(holdfast.OnFailed, first)), s.enqueue(in(group), when(holdfast.OnEnded, first))
		same(s, "cancelled", s.cancel(a), holdfast.Cancelled)
		same(s, "skipped", s.job(a).Skipped, false)
		s.cancelGroup(group)
		s.advanceGroups()
		same(s, "skipped", s.expectState(b, holdfast.Cancelled).Skipped, false)
		same(s, "members", s.expectGroup(group, holdfast.GroupCancelled, 1).Members, holdfast.Members{Total: 3, Cancelled: 3})
	}},
	{"the outcome of a group counts skipped members that retention has deleted", func(s *scene) {
		group := s.gather()
		charge, other := s.enqueue(in(group)), s.enqueue(in(group))
		s.enqueue(in(group), when(holdfast.OnFailed, charge))
		s.seal(group)
		s.run(other)
		s.expectGroup(group, holdfast.GroupPartial, 1)
		s.purge(rules(store.RetentionRule{Name: "cancelled", State: holdfast.Cancelled}))
		s.retry(other)
		same(s, "members while it is processing", s.group(group).Members, holdfast.Members{Total: 3, Queued: 1, Complete: 1, Skipped: 1})
		s.run()
		same(s, "members", s.expectGroup(group, holdfast.GroupReady, 2).Members, holdfast.Members{Total: 3, Complete: 2, Skipped: 1})
	}},
	{"a compensation whose cause was deleted by retention is skipped and does not start", func(s *scene) {
		group := s.gather()
		charge, stock := s.enqueue(in(group)), s.enqueue(in(group))
		refund := s.enqueue(in(group), when(holdfast.OnFailed, charge), after(stock))
		s.seal(group)
		s.settle(fails(s.claim(2)[1], "BROKEN"))
		s.advanceGroups()
		s.expectCancelledBecause(stock, refund)
		s.run()
		s.Advance(shortLease + time.Second)
		s.settle(completes(s.reclaim()[0]))
		s.advanceGroups()
		s.purge(rules(store.RetentionRule{Name: "complete", State: holdfast.Complete}))
		s.retryGroup(group)
		same(s, "ran", s.run(), []holdfast.ID{stock})
		job := s.expectState(refund, holdfast.Cancelled)
		same(s, "skipped, upstream", []any{job.Skipped, job.Upstream}, []any{true, holdfast.ID{}})
		s.expectGroup(group, holdfast.GroupReady, 2)
	}},
}
