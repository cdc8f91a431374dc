package storetest

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var retryLaws = []law{
	{"a manual retry starts a new generation of a failed job with counters at zero (bullmq#3555)", func(s *scene) {
		lease := s.start()
		s.settle(releases(lease, store.ChargeCrash, 0))
		lease = s.claimOne()
		s.settle(fails(lease, "BROKEN"))
		s.Advance(time.Hour)
		same(s, "ahead", s.retry(lease.ID), 0)
		job := s.expectCounts(lease.ID, [5]int{2, 0, 0, 0, 2})
		same(s, "job", []any{job.State, job.DueAt, job.LastFailure == nil, job.FinishedAt.IsZero()}, []any{holdfast.Queued, job.AsOf, true, true})
		h := s.history(lease.ID)
		same(s, "attempts", len(h.Attempts), 2)
		same(s, "events", h.Events, []store.Event{{Job: lease.ID, At: job.AsOf, Name: "manual retry", Actor: "ada", Reason: "because", Token: 2, Generation: 2}})
		again := s.claimOne()
		same(s, "lease", []any{again.Token, again.Generation, again.Since}, []any{3, 2, job.AsOf})
		s.settle(completes(again))
	}},
	{"a retried job that fails again is a dead letter of its new generation", func(s *scene) {
		lease := s.fail()
		s.retry(lease.ID)
		s.settle(fails(s.claimOne(), "AGAIN"))
		same(s, "code", s.expectCounts(lease.ID, [5]int{2, 1, 0, 0, 2}).LastFailure.Code, "AGAIN")
	}},
	{"a manual retry makes a discarded job claimable again", func(s *scene) {
		lease := s.fail()
		s.must(s.Store.Discard(s.ctx, by(lease.ID)))
		s.retry(lease.ID)
		same(s, "discarded", s.job(lease.ID).Discarded, false)
		s.settle(fails(s.claimOne(), "BROKEN"))
		same(s, "dead letters", len(s.jobs(store.Filter{DeadLetters: true})), 1)
	}},
	{"a manual retry moves a job that waits for its automatic retry, and does not copy it", func(s *scene) {
		lease := s.start()
		s.settle(retries(lease, time.Hour))
		s.retry(lease.ID)
		s.expectCounts(lease.ID, [5]int{1, 0, 0, 0, 2})
		again := s.claim(10)
		same(s, "claimed", len(again), 1)
		s.settle(completes(again[0]))
		s.Advance(2 * time.Hour)
		same(s, "promoted", s.promote(10), 0)
	}},
	{"a job that is already claimable cannot be retried", func(s *scene) {
		fresh, scheduled := s.enqueue(), s.enqueue(at(time.Hour))
		lease := s.claimOne()
		s.settle(retries(lease, 0))
		for _, id := range []holdfast.ID{fresh, scheduled} {
			before := s.job(id)
			_, err := s.Store.Retry(s.ctx, by(id))
			s.expectError(err, holdfast.ErrConflict)
			same(s, "job", s.job(id), before)
			same(s, "events", len(s.history(id).Events), 0)
		}
	}},
	{"a complete or cancelled job cannot be retried", func(s *scene) {
		done := s.start()
		s.settle(completes(done))
		stopped := s.enqueue()
		s.cancel(stopped)
		for _, id := range []holdfast.ID{done.ID, stopped} {
			_, err := s.Store.Retry(s.ctx, by(id))
			s.expectError(err, holdfast.ErrConflict)
		}
	}},
	{"a processing job cannot be retried, unless it is stuck", func(s *scene) {
		lease := s.start()
		s.Advance(20 * time.Second)
		i := by(lease.ID)
		i.StuckAfter = time.Minute
		_, err := s.Store.Retry(s.ctx, i)
		s.expectError(err, holdfast.ErrConflict)
		i.StuckAfter = 20 * time.Second
		_, err = s.Store.Retry(s.ctx, i)
		s.must(err)
		job := s.expectCounts(lease.ID, [5]int{2, 0, 0, 0, 2})
		same(s, "state", job.State, holdfast.Queued)
		same(s, "attempts", s.history(lease.ID).Attempts, []store.Attempt{{
			Job: lease.ID, Token: 2, Generation: 1, Worker: "w1", StartedAt: lease.StartedAt, EndedAt: job.AsOf, To: holdfast.Queued,
			Charge: store.ChargeRelease, DueAt: job.AsOf, Why: "taken from its worker by a manual retry",
		}})
	}},
	{"the worker that a stuck job was taken from is fenced out", func(s *scene) {
		lease := s.start()
		s.Advance(shortLease)
		s.retry(lease.ID)
		s.expectError(s.trySettle(completes(lease))[0], holdfast.ErrLeaseLost)
		same(s, "news", s.renew(store.Renewal{Batch: lease.Batch, Running: []holdfast.ID{lease.ID}}).Lost, []holdfast.ID{lease.ID})
		next := s.claimOne()
		s.expectError(s.trySettle(completes(lease))[0], holdfast.ErrLeaseLost)
		s.settle(completes(next))
		same(s, "reclaimed", len(s.reclaim()), 0)
	}},
	{"taking one stuck job leaves the rest of its batch alone", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claim(2)
		s.Advance(shortLease)
		s.retry(leases[0].ID)
		s.settle(completes(leases[1]))
		s.settle(completes(s.claimOne()))
	}},
	{"a manual retry removes the cancel request", func(s *scene) {
		lease := s.start()
		s.cancel(lease.ID)
		s.Advance(shortLease)
		s.retry(lease.ID)
		s.settle(completes(s.claimOne()))
		s.expectState(lease.ID, holdfast.Complete)
	}},
	{"a retry of a job whose unique key is held by another is refused, and the error names it (riverui#622)", func(s *scene) {
		lease := s.fail(unique("k"))
		holder := s.enqueue(unique("k"))
		before := s.job(lease.ID)
		_, err := s.Store.Retry(s.ctx, by(lease.ID))
		s.expectConflict(err, holder)
		same(s, "job", s.job(lease.ID), before)
		s.cancel(holder)
		s.retry(lease.ID)
		same(s, "key", s.enqueue(unique("k")), lease.ID)
	}},
	{"a retry returns how many jobs of the queue are ahead", func(s *scene) {
		lease := s.fail()
		for _, change := range []func(*holdfast.Draft){
			func(d *holdfast.Draft) { d.Priority = -1 }, func(d *holdfast.Draft) { d.Priority, d.Kind = -1, "pdf" },
			func(d *holdfast.Draft) {}, func(d *holdfast.Draft) { d.Priority = 1 }, func(d *holdfast.Draft) { d.Priority, d.Queue = -1, "slow" },
		} {
			s.enqueue(change)
		}
		same(s, "ahead", s.retry(lease.ID), 2)
		ahead, err := s.Store.Ahead(s.ctx, lease.ID)
		s.must(err)
		same(s, "ahead as inspected", ahead, 2)
	}},
	{"a checkpoint is kept in the next generation", func(s *scene) {
		lease := s.start()
		s.note(nil, store.Note{Batch: lease.Batch, Job: lease.ID, Token: 1, Checkpoint: raw(`{"row":3}`)})
		s.settle(fails(lease, "BROKEN"))
		s.retry(lease.ID)
		same(s, "checkpoint", string(s.claimOne().Checkpoint), `{"row":3}`)
	}},
}
