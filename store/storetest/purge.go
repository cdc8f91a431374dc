package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// purge calls Purge until it has read everything, and adds up the results.
func (s *scene) purge(p store.Purge) store.PurgeResult {
	s.Helper()
	sum := store.PurgeResult{Rules: map[string]int{}, Spared: map[string]int{}}
	if p.Scan == 0 {
		p.Scan = 7
	}
	for range 1000 {
		did, err := s.Store.Purge(s.ctx, p)
		s.must(err)
		sum.Jobs += did.Jobs
		add(sum.Rules, did.Rules)
		add(sum.Spared, did.Spared)
		if p.After = did.Next; p.After.IsZero() {
			return sum
		}
	}
	s.Fatal("Purge does not come to an end")
	return sum
}

func add(sum, more map[string]int) {
	for name, n := range more {
		sum[name] += n
	}
}

func rules(all ...store.RetentionRule) store.Purge { return store.Purge{Rules: all} }

// atOnce purges all ended jobs.
func atOnce() store.Purge { return rules(store.RetentionRule{Name: "all"}) }

// tombstones returns all tombstones, over all pages.
func (s *scene) tombstones(f store.TombstoneFilter) (all []store.Tombstone) {
	s.Helper()
	for range 1000 {
		page, cursor, err := s.Store.Tombstones(s.ctx, f)
		s.must(err)
		all = append(all, page...)
		if cursor == "" {
			return all
		}
		f.Cursor = cursor
	}
	s.Fatal("the list of tombstones has no end")
	return nil
}

func (s *scene) purgeCounts() map[string]int {
	s.Helper()
	counts, err := s.Store.PurgeCounts(s.ctx)
	s.must(err)
	all := map[string]int{}
	for _, c := range counts {
		all[strings.Join([]string{c.Rule, c.Kind, string(c.State), c.Code}, " ")] += c.Jobs
	}
	return all
}

func (s *scene) expectPurged(id holdfast.ID, rule string) {
	s.Helper()
	_, err := s.Store.Job(s.ctx, id)
	s.expectError(err, holdfast.ErrPurged)
	if !strings.Contains(err.Error(), rule) {
		s.Fatalf("the refusal does not say which rule purged the job: %v", err)
	}
	_, err = s.Store.History(s.ctx, id)
	s.expectError(err, holdfast.ErrPurged)
}

var purgeLaws = []law{
	{"a purged job leaves a tombstone and a count, and reading it says that it was purged", func(s *scene) {
		lease := s.fail(owned("acme"), func(d *holdfast.Draft) { d.Kind, d.Queue = "pdf", "default" })
		finished := s.job(lease.ID).FinishedAt
		s.Advance(time.Hour)
		got := s.purge(rules(store.RetentionRule{Name: "dead-letters", State: holdfast.Failed, For: time.Hour}))
		same(s, "purged", got, store.PurgeResult{Jobs: 1, Rules: map[string]int{"dead-letters": 1}})
		same(s, "tombstones", s.tombstones(store.TombstoneFilter{Job: lease.ID}), []store.Tombstone{{
			Job: lease.ID, Kind: "pdf", Queue: "default", Owner: "acme", State: holdfast.Failed, Code: "BROKEN", FinishedAt: finished, PurgedAt: finished.Add(time.Hour), Rule: "dead-letters",
		}})
		counts, err := s.Store.PurgeCounts(s.ctx)
		s.must(err)
		same(s, "counts", counts, []store.PurgeCount{{Rule: "dead-letters", Kind: "pdf", State: holdfast.Failed, Code: "BROKEN", Jobs: 1, Last: finished.Add(time.Hour)}})
		s.expectPurged(lease.ID, "dead-letters")
		s.expectJobs(0)
		_, err = s.Store.Ahead(s.ctx, lease.ID)
		s.expectError(err, holdfast.ErrPurged)
	}},
	{"a job that has not ended is never purged", func(s *scene) {
		waiting, queued := s.enqueue(at(time.Hour)), s.enqueue()
		lease := s.startFirst()
		s.settle(retries(lease, 2*time.Hour))
		s.claimOne()
		same(s, "purged", s.purge(atOnce()).Jobs, 0)
		s.expectState(waiting, holdfast.Queued)
		s.expectState(queued, holdfast.Processing)
	}},
	{"a job is purged when its retention time is over, and not before", func(s *scene) {
		s.settle(completes(s.start()))
		rule := rules(store.RetentionRule{Name: "an-hour", For: time.Hour})
		s.Advance(time.Hour - time.Microsecond)
		same(s, "purged early", s.purge(rule).Jobs, 0)
		s.Advance(time.Microsecond)
		same(s, "purged", s.purge(rule).Jobs, 1)
		same(s, "purged again", s.purge(rule).Jobs, 0)
	}},
	{"the first rule that matches decides, and a job that no rule matches is kept", func(s *scene) {
		pdf, mail := s.fail(func(d *holdfast.Draft) { d.Kind = "pdf" }), s.fail()
		done := s.start()
		s.settle(completes(done))
		got := s.purge(rules(store.RetentionRule{Name: "keep-pdf", Kind: "pdf", For: store.Forever}, store.RetentionRule{Name: "failed", State: holdfast.Failed}, store.RetentionRule{Name: "again", Kind: "mail", State: holdfast.Failed}))
		same(s, "purged", got, store.PurgeResult{Jobs: 1, Rules: map[string]int{"failed": 1}})
		s.expectPurged(mail.ID, "failed")
		s.expectState(pdf.ID, holdfast.Failed)
		s.expectState(done.ID, holdfast.Complete)
	}},
	{"minus one keeps for ever, whatever rules follow", func(s *scene) {
		s.fail()
		s.Advance(100 * 365 * 24 * time.Hour)
		same(s, "purged", s.purge(rules(store.RetentionRule{Name: "keep", For: store.Forever}, store.RetentionRule{Name: "all"})).Jobs, 0)
	}},
	{"spared dead letters are kept, and counted by the rule that would purge them; discarded ones are purged", func(s *scene) {
		dead := s.failAll(3)
		s.must(s.Store.Discard(s.ctx, by(dead[1])))
		s.settle(completes(s.start()))
		p := rules(store.RetentionRule{Name: "failed", State: holdfast.Failed}, store.RetentionRule{Name: "rest"})
		p.SpareDeadLetters = true
		same(s, "purged", s.purge(p), store.PurgeResult{Jobs: 2, Rules: map[string]int{"failed": 1, "rest": 1}, Spared: map[string]int{"failed": 2}})
		s.expectState(dead[0], holdfast.Failed)
		s.expectPurged(dead[1], "failed")
		p.SpareDeadLetters = false
		same(s, "purged", s.purge(p), store.PurgeResult{Jobs: 2, Rules: map[string]int{"failed": 2}})
	}},
	{"members of a group that has not settled are kept", func(s *scene) {
		open := s.gather()
		s.enqueueMany(2, in(open))
		group, members := s.sealedGroup(3)
		leases := s.claim(4)
		for _, l := range leases {
			s.settle(completes(l))
		}
		s.advanceGroups()
		same(s, "purged", s.purge(atOnce()).Jobs, 0)
		s.run()
		s.seal(open)
		s.advanceGroups()
		s.expectGroup(group, holdfast.GroupReady, 1)
		same(s, "purged", s.purge(atOnce()).Jobs, 5)
		stone := s.tombstones(store.TombstoneFilter{Job: members[0]})[0]
		same(s, "tombstone", []any{stone.Group, stone.GroupState}, []any{group, holdfast.GroupReady})
	}},
	{"purged members still count in their group, also when it settles again", func(s *scene) {
		group, members := s.sealedGroup(4)
		s.run(members[0])
		s.purge(rules(store.RetentionRule{Name: "complete", State: holdfast.Complete}))
		want := holdfast.Members{Total: 4, Complete: 3, Failed: 1}
		same(s, "members", s.expectGroup(group, holdfast.GroupPartial, 1).Members, want)
		same(s, "retried", s.retryGroup(group), 1)
		s.run()
		same(s, "members", s.expectGroup(group, holdfast.GroupReady, 2).Members, holdfast.Members{Total: 4, Complete: 4})
	}},
	{"a member that waits for a purged one does not wait forever", func(s *scene) {
		group := s.gather()
		chain := s.chain(group, 2)
		s.seal(group)
		s.run(chain[0])
		s.purge(rules(store.RetentionRule{Name: "failed", State: holdfast.Failed}))
		same(s, "retried", s.retryGroup(group), 1)
		s.run()
		s.run()
		same(s, "settled", s.group(group).State.Settled(), true)
	}},
	{"keys of a purged job are free", func(s *scene) {
		keyed := func(d *holdfast.Draft) { d.UniqueKey, d.UniqueDone, d.IdempotencyKey = "k", true, "once" }
		done := s.start(keyed)
		s.settle(completes(done))
		same(s, "existing job", s.enqueue(keyed), done.ID)
		s.purge(atOnce())
		if s.enqueue(keyed) == done.ID {
			s.Fatal("a purged job was returned as existing")
		}
	}},
	{"the outcomes of redriven jobs are known after they were purged", func(s *scene) {
		dead := s.failAll(3)
		id := holdfast.NewID()
		s.redrive(step(id, dead...))
		leases := s.claim(3)
		s.settle(completes(leases[0]), fails(leases[1], "AGAIN"))
		s.purge(atOnce())
		s.expectRedriveCounts(id, store.RedriveCounts{Taken: 3, InFlight: 1, Complete: 1, Failed: 1})
	}},
	{"events of a purged job have what its tombstone knows", func(s *scene) {
		s.listen("*")
		lease := s.fail(owned("acme"))
		before := s.feed(0)
		s.purge(atOnce())
		events := s.feed(0)
		same(s, "events", eventNames(events), eventNames(before))
		for _, e := range events {
			same(s, "event", []any{e.Job, e.Kind, e.Queue, e.Owner}, []any{lease.ID, "mail", "default", "acme"})
		}
		same(s, "code", events[2].Code, "BROKEN")
	}},
	{"a purge reads as many jobs as requested, and returns where to continue", func(s *scene) {
		s.enqueueMany(10)
		s.run()
		did, err := s.Store.Purge(s.ctx, store.Purge{Rules: atOnce().Rules, Scan: 4})
		s.must(err)
		same(s, "first step", []any{did.Jobs, did.Next.IsZero()}, []any{4, false})
		same(s, "the rest", s.purge(store.Purge{Rules: atOnce().Rules, After: did.Next, Scan: 4}).Jobs, 6)
	}},
	{"invalid rules are refused, and nothing is purged", func(s *scene) {
		s.fail()
		for _, p := range []store.Purge{
			{Rules: []store.RetentionRule{{}}, Scan: 1}, {Rules: []store.RetentionRule{{Name: "x", For: -2}}, Scan: 1}, {Rules: []store.RetentionRule{{Name: "x", State: holdfast.Queued}}, Scan: 1}, {Rules: atOnce().Rules},
		} {
			_, err := s.Store.Purge(s.ctx, p)
			s.expectError(err, holdfast.ErrInvalid)
		}
		s.expectJobs(1)
	}},
	{"concurrent purges purge each job once", func(s *scene) {
		s.enqueueMany(60)
		s.run()
		stores, sum := s.handles(), &lockedCounts{}
		together(6, func(i int) {
			did, err := stores[i%3].Purge(s.ctx, store.Purge{Rules: atOnce().Rules, Scan: 100})
			if err != nil {
				s.Errorf("purge: %v", err)
			}
			for range did.Jobs {
				sum.add("purged")
			}
		})
		same(s, "purged, tombstones, counted", []int{sum.n["purged"], len(s.tombstones(store.TombstoneFilter{})), s.purgeCounts()["all mail complete "]}, []int{60, 60, 60})
	}},
	{"when a purge races a manual retry, the job is purged or retried, never both", func(s *scene) {
		stores := s.handles()
		for range 10 {
			lease := s.fail()
			var did store.PurgeResult
			var purged, retried error
			together(2, func(i int) {
				if i == 0 {
					did, purged = stores[1].Purge(s.ctx, store.Purge{Rules: atOnce().Rules, Scan: 100})
				} else {
					_, retried = stores[2].Retry(s.ctx, by(lease.ID))
				}
			})
			s.must(purged)
			if (did.Jobs == 1) == (retried == nil) {
				s.Fatalf("purged %d jobs, and the retry was answered with %v", did.Jobs, retried)
			}
			if retried == nil {
				s.settle(completes(s.claimOne()))
				s.purge(atOnce())
			} else if !errors.Is(retried, holdfast.ErrPurged) {
				s.expectError(retried, holdfast.ErrNotFound)
			}
		}
	}},
}
