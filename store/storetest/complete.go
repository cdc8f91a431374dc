package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// tryCompleteIn completes jobs in a transaction of the caller and ends it.
func (s *scene) tryCompleteIn(commit bool, settlements ...store.Settlement) []error {
	s.Helper()
	tx, end := s.Begin()
	answers, err := s.In(tx).Complete(s.ctx, settlements)
	s.must(err)
	s.must(end(commit))
	if len(answers) != len(settlements) {
		s.Fatalf("%d settlements got %d answers", len(settlements), len(answers))
	}
	return answers
}

// completeIn completes jobs in a transaction that commits.
func (s *scene) completeIn(settlements ...store.Settlement) {
	s.Helper()
	for _, err := range s.tryCompleteIn(true, settlements...) {
		s.must(err)
	}
}

func confirms(l store.Lease) store.Settlement {
	e := completes(l)
	e.Confirm = true
	return e
}

var completeLaws = []law{
	{"a job that was completed in a transaction is what a settlement makes of it", func(s *scene) {
		s.beginStep()
		ends := map[string]func(...store.Settlement){"by a settlement": s.settle, "in a transaction": s.completeIn}
		var jobs []holdfast.Job
		for _, how := range []string{"by a settlement", "in a transaction"} {
			for _, retried := range []bool{false, true} {
				lease := s.start()
				if retried {
					s.settle(retries(lease, 0))
					lease = s.claimOne()
				}
				s.Advance(5 * time.Second)
				done := inQueue("default", completes(lease))
				done.Result, done.Took = raw(`{"b": 1.0,  "a": null}`), 3*time.Second
				ends[how](done)
				job := s.expectState(lease.ID, holdfast.Complete)
				same(s, "span "+how, []time.Time{job.StartedAt, job.FinishedAt}, []time.Time{job.AsOf.Add(-3 * time.Second), job.AsOf})
				same(s, "result "+how, string(job.Result), string(done.Result))
				same(s, "attempts "+how, len(s.history(lease.ID).Attempts), job.Failures)
				job.ID, job.CreatedAt, job.StartedAt, job.FinishedAt, job.AsOf = holdfast.ID{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
				jobs = append(jobs, job)
			}
		}
		same(s, "jobs", jobs[2:], jobs[:2])
		same(s, "counts", sum(s.trends(time.Hour, time.Minute))["default"], [4]int{4, 0, 0, 0})
	}},
	{"a completion exists if its transaction commits, and after a rollback the lease is held", func(s *scene) {
		s.listen("*")
		lease := s.start(unique("k"))
		s.must(s.tryCompleteIn(false, completes(lease))[0])
		s.expectState(lease.ID, holdfast.Processing)
		same(s, "lost", len(s.renew(store.Renewal{Batch: lease.Batch, Running: []holdfast.ID{lease.ID}}).Lost), 0)
		same(s, "the key is taken", s.enqueue(unique("k")), lease.ID)
		same(s, "counts", len(s.trends(time.Hour, time.Minute)), 0)
		s.completeIn(completes(lease))
		s.expectState(lease.ID, holdfast.Complete)
		same(s, "lost", s.renew(store.Renewal{Batch: lease.Batch, Running: []holdfast.ID{lease.ID}}).Lost, []holdfast.ID{lease.ID})
		same(s, "events", eventNames(s.feed(0)), []string{"queued", "processing", "complete"})
	}},
	{"a worker whose lease was lost cannot complete in a transaction, and the transaction can still be used", func(s *scene) {
		zombie := s.start()
		s.Advance(longAgo)
		taken := s.reclaim()[0]
		tx, end := s.Begin()
		answers, err := s.In(tx).Complete(s.ctx, []store.Settlement{completes(zombie)})
		s.must(err)
		s.expectError(answers[0], holdfast.ErrLeaseLost)
		receipts, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{draft()})
		s.must(err)
		s.must(end(true))
		s.expectState(receipts[0].ID, holdfast.Queued)
		s.expectState(zombie.ID, holdfast.Processing)
		same(s, "evidence", s.late(zombie.ID), 0)
		s.completeIn(completes(taken))
	}},
	{"in a transaction, batch, job and token must all match the lease", func(s *scene) {
		s.enqueueAll(draft(), draft())
		a, b := s.claimOne(), s.claimOne()
		forged := []store.Settlement{completes(a), completes(a), completes(a), completes(a), completes(a), completes(a)}
		forged[0].Token++
		forged[1].Token--
		forged[2].Batch = b.Batch
		forged[3].Batch = holdfast.ID{}
		forged[4].Job = b.ID
		forged[5].Token = 1 << 40
		for _, err := range s.tryCompleteIn(true, forged...) {
			s.expectError(err, holdfast.ErrLeaseLost)
		}
		s.expectState(a.ID, holdfast.Processing)
		s.expectState(b.ID, holdfast.Processing)
	}},
	{"a completion can be repeated: in its transaction, after the commit, and as a settlement", func(s *scene) {
		s.beginStep()
		lease := s.start()
		done := inQueue("default", completes(lease))
		s.completeIn(done, done)
		s.completeIn(done)
		s.settle(done, confirms(lease))
		s.expectError(s.trySettle(fails(lease, "BROKEN"))[0], holdfast.ErrLeaseLost)
		s.expectState(lease.ID, holdfast.Complete)
		same(s, "evidence", s.late(lease.ID), 1)
		same(s, "counts", sum(s.trends(time.Hour, time.Minute))["default"], [4]int{1, 0, 0, 0})
	}},
	{"a question whether a job was completed never completes it, and leaves no evidence", func(s *scene) {
		lease := s.start()
		s.must(s.tryCompleteIn(false, completes(lease))[0])
		for range 2 {
			s.expectRefusal(s.trySettle(confirms(lease))[0], holdfast.ErrConflict, textNotCommitted, lease.ID)
			s.expectState(lease.ID, holdfast.Processing)
		}
		s.Advance(longAgo)
		taken := s.reclaim()[0]
		s.expectError(s.trySettle(confirms(lease))[0], holdfast.ErrLeaseLost)
		s.settle(completes(taken))
		s.expectError(s.trySettle(confirms(lease))[0], holdfast.ErrLeaseLost)
		s.settle(confirms(taken))
		same(s, "evidence", s.late(lease.ID), 0)
	}},
	{"the other members of a batch keep their leases and their counters", func(s *scene) {
		for _, failed := range []bool{false, true} {
			for gone := range 3 {
				s.enqueueAll(draft(), draft(), draft())
				leases := s.claim(3)
				if failed {
					for i := range leases {
						s.settle(releases(leases[i], []store.Charge{store.ChargeFailure, store.ChargeCrash, store.ChargeRelease}[i], 0))
					}
					leases = s.claim(3)
				}
				s.completeIn(completes(leases[gone]))
				for _, l := range slices.Delete(leases, gone, gone+1) {
					s.expectCounts(l.ID, [5]int{l.Token, l.Failures, l.Crashes, l.Releases, l.Generation})
					s.settle(completes(l))
				}
			}
		}
		s.enqueueAll(draft(), draft())
		leases := s.claim(2)
		s.completeIn(completes(leases[1]), completes(leases[0]))
		same(s, "left", len(s.jobs(store.Filter{State: holdfast.Processing})), 0)
	}},
	{"a job that a person cancelled is cancelled by its completion", func(s *scene) {
		s.listen("*")
		s.beginStep()
		lease := s.start(unique("k"), func(d *holdfast.Draft) { d.UniqueDone = true })
		same(s, "state", s.cancel(lease.ID), holdfast.Processing)
		done := inQueue("default", completes(lease))
		done.Result, done.Limit = raw(`1`), 3
		s.must(s.tryCompleteIn(false, done)[0])
		s.expectState(lease.ID, holdfast.Processing)
		s.completeIn(done)
		job := s.expectState(lease.ID, holdfast.Cancelled)
		same(s, "result", len(job.Result), 0)
		same(s, "attempts", s.history(lease.ID).Attempts, []store.Attempt{{
			Job: lease.ID, Token: 1, Generation: 1, Worker: "w1", StartedAt: job.AsOf, EndedAt: job.AsOf, To: holdfast.Cancelled, Said: holdfast.Complete, Limit: 3,
		}})
		s.completeIn(done)
		s.settle(done, confirms(lease))
		same(s, "counts", sum(s.trends(time.Hour, time.Minute))["default"], [4]int{0, 0, 0, 1})
		names := eventNames(s.feed(0))
		same(s, "last event", names[len(names)-1], "cancelled")
		if s.enqueue(unique("k")) == lease.ID {
			s.Fatal("the unique key was not freed")
		}
	}},
	{"a completion frees the unique key, unless success keeps it", func(s *scene) {
		for _, keeps := range []bool{false, true} {
			key := func(d *holdfast.Draft) { d.UniqueKey, d.UniqueDone = "k", keeps }
			lease := s.start(key)
			s.completeIn(completes(lease))
			same(s, "the same job", s.enqueue(key) == lease.ID, keeps)
			for _, l := range s.claim(1) {
				s.settle(completes(l))
			}
		}
	}},
	{"a group settles when its last member was completed in a transaction", func(s *scene) {
		group := s.gather()
		lease := s.start(in(group))
		s.seal(group)
		s.advanceGroups()
		s.completeIn(completes(lease))
		s.advanceGroups()
		same(s, "state", s.group(group).State, holdfast.GroupReady)
	}},
	{"a transaction takes only completions, and a refused one does not affect the others", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claim(2)
		bad := completes(leases[0])
		bad.Result = raw("{")
		answers := s.tryCompleteIn(true, fails(leases[0], "BROKEN"), bad, confirms(leases[0]), retries(leases[0], 0), completes(leases[1]))
		for _, err := range answers[:4] {
			s.expectError(err, holdfast.ErrInvalid)
		}
		s.must(answers[4])
		s.expectState(leases[0].ID, holdfast.Processing)
		s.expectState(leases[1].ID, holdfast.Complete)
		_, err := s.In(42).Complete(s.ctx, []store.Settlement{completes(leases[0])})
		if s.expectError(err, holdfast.ErrInvalid); !strings.Contains(err.Error(), "int") {
			s.Fatalf("the refusal does not name the type: %v", err)
		}
		_, err = s.Store.In(42).Complete(s.ctx, []store.Settlement{completes(leases[0])})
		s.expectError(err, holdfast.ErrInvalid)
	}},
}
