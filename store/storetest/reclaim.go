package storetest

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var reclaimLaws = []law{
	{"a lost worker's started job is reclaimed with a new token, and names the worker", func(s *scene) {
		lease := s.start()
		s.Advance(shortLease - time.Microsecond)
		same(s, "reclaimed early", len(s.reclaim()), 0)
		s.Advance(time.Microsecond)
		taken := s.reclaim()
		same(s, "reclaimed", len(taken), 1)
		job := s.expectCounts(lease.ID, [5]int{2, 0, 0, 0, 1})
		same(s, "lease", taken[0], store.Lease{Job: job, Batch: taken[0].Batch, Since: lease.Since, Lost: "w1"})
		same(s, "job", []any{job.State, job.Worker, job.StartedAt, job.LeaseUntil}, []any{holdfast.Processing, "reclaimer", lease.StartedAt, job.AsOf.Add(shortLease)})
		if taken[0].Batch == lease.Batch {
			s.Fatal("the batch was not replaced")
		}
	}},
	{"a crash is recorded for the lost worker: counted once, and not as a failure (asynq#1015, faktory#409, solid_queue#422, bullmq#651)", func(s *scene) {
		lease := s.start()
		s.Advance(longAgo)
		taken := s.reclaim()[0]
		e := releases(taken, store.ChargeCrash, time.Minute)
		e.Took, e.Limit = longAgo, 3
		s.settle(e)
		job := s.expectCounts(lease.ID, [5]int{2, 0, 1, 0, 1})
		same(s, "attempts", s.history(lease.ID).Attempts, []store.Attempt{{
			Job: lease.ID, Token: 2, Generation: 1, Worker: "w1", StartedAt: lease.StartedAt, EndedAt: job.AsOf, To: holdfast.Queued,
			Charge: store.ChargeCrash, DueAt: job.AsOf.Add(time.Minute), Why: e.Why, Limit: 3, Count: 1,
		}})
	}},
	{"a job that its worker never started is released at no cost, with one release", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claimAs(store.Claim{Worker: "w", Limit: 2, Start: 1})
		s.Advance(time.Minute)
		taken := s.reclaim()
		same(s, "reclaimed", ids(taken), ids(leases[:1]))
		job := s.expectCounts(leases[1].ID, [5]int{2, 0, 0, 1, 1})
		same(s, "state", job.State, holdfast.Queued)
		same(s, "attempts", s.history(job.ID).Attempts, []store.Attempt{{
			Job: job.ID, Token: 2, Generation: 1, Worker: "w", StartedAt: job.AsOf, EndedAt: job.AsOf, To: holdfast.Queued,
			Charge: store.ChargeRelease, DueAt: job.AsOf, Why: "its worker went silent before it started",
		}})
		same(s, "claimed", s.claimOne().ID, job.ID)
	}},
	{"a reclaimed job can be reclaimed again: the first worker stays named and nothing is counted twice", func(s *scene) {
		lease := s.start()
		s.Advance(time.Minute)
		s.reclaim()
		s.Advance(time.Minute)
		again, err := s.Store.Reclaim(s.ctx, store.Claim{Worker: "keeper2", Limit: 10, Lease: shortLease})
		s.must(err)
		same(s, "lost", again[0].Lost, "w1")
		s.settle(releases(again[0], store.ChargeCrash, 0))
		s.expectCounts(lease.ID, [5]int{3, 0, 1, 0, 1})
		same(s, "attempts", len(s.history(lease.ID).Attempts), 1)
	}},
	{"the first process that reclaimed a batch has lost it after the second reclaim", func(s *scene) {
		s.start()
		s.Advance(time.Minute)
		first := s.reclaim()[0]
		s.Advance(time.Minute)
		second := s.reclaim()[0]
		s.expectError(s.trySettle(releases(first, store.ChargeCrash, 0))[0], holdfast.ErrLeaseLost)
		s.settle(releases(second, store.ChargeCrash, 0))
	}},
	{"only expired batches are reclaimed, as a whole, and others are left alone", func(s *scene) {
		s.enqueueAll(draft(), draft(), draft())
		dead := s.claim(2)
		s.Advance(20 * time.Second)
		alive := s.claimOne()
		s.Advance(15 * time.Second)
		taken := s.reclaim()
		same(s, "reclaimed", len(taken), 2)
		same(s, "one batch for one batch", taken[0].Batch == taken[1].Batch, true)
		same(s, "alive", s.job(alive.ID).Worker, "w1")
		for _, l := range dead {
			same(s, "dead", s.job(l.ID).Worker, "reclaimer")
		}
	}},
	{"a reclaim stops at its limit of started jobs, oldest first, and the next one continues", func(s *scene) {
		for range 3 {
			s.enqueueAll(draft(), draft())
		}
		var batches [][]store.Lease
		for range 3 {
			batches = append(batches, s.claim(2))
			s.Advance(time.Second)
		}
		s.Advance(time.Minute)
		for _, want := range batches {
			got, err := s.Store.Reclaim(s.ctx, store.Claim{Worker: "reclaimer", Limit: 2, Lease: time.Hour})
			s.must(err)
			same(s, "lost batch", [2]bool{got[0].ID == want[0].ID || got[0].ID == want[1].ID, len(got) == 2}, [2]bool{true, true})
		}
		same(s, "left", len(s.reclaim()), 0)
	}},
	{"many jobs that never started do not keep started ones from being reclaimed (river PR#1318)", func(s *scene) {
		for range 20 {
			s.enqueue()
			s.claimAs(store.Claim{Worker: "idle", Limit: 1})
			s.Advance(time.Millisecond)
		}
		last := s.start()
		s.Advance(time.Minute)
		got, err := s.Store.Reclaim(s.ctx, store.Claim{Worker: "reclaimer", Limit: 1, Lease: shortLease})
		s.must(err)
		same(s, "reclaimed", ids(got), []holdfast.ID{last.ID})
	}},
	{"every processing job has a lease that expires (asynq#1144): all claimed jobs can be reclaimed", func(s *scene) {
		for range 5 {
			s.enqueue()
		}
		s.claimAs(store.Claim{Worker: "a", Limit: 2, Start: 1})
		s.claimAs(store.Claim{Worker: "b", Limit: 2})
		s.claimOne()
		for _, j := range s.jobs(store.Filter{State: holdfast.Processing}) {
			same(s, "lease ends", j.LeaseUntil.After(j.AsOf), true)
		}
		s.Advance(time.Minute)
		for _, l := range s.reclaim() {
			s.settle(releases(l, store.ChargeCrash, 0))
		}
		same(s, "claimable", len(s.claim(10)), 5)
	}},
	{"a crashed job with a delay does not block others (graphile PR#313)", func(s *scene) {
		s.start()
		good := s.enqueue()
		s.Advance(time.Minute)
		s.settle(releases(s.reclaim()[0], store.ChargeCrash, time.Second))
		same(s, "first", s.claimOne().ID, good)
	}},
	{"a cancel request outlives the worker: the job ends cancelled, started or not (river PR#1397)", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claimAs(store.Claim{Worker: "w", Limit: 2, Start: 1})
		for _, l := range leases {
			s.cancel(l.ID)
		}
		s.Advance(time.Minute)
		for _, l := range s.reclaim() {
			s.settle(releases(l, store.ChargeCrash, 0))
		}
		for _, l := range leases {
			s.expectState(l.ID, holdfast.Cancelled)
		}
	}},
}
