package storetest

import (
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

func expiresIn(d time.Duration) func(*holdfast.Draft) {
	return func(j *holdfast.Draft) { j.ExpireIn = d }
}

var keepLaws = []law{
	{"promotion takes due jobs, oldest due time first, up to its limit", func(s *scene) {
		c, a, b := s.enqueue(at(3*time.Second)), s.enqueue(at(time.Second)), s.enqueue(at(2*time.Second))
		s.enqueue(at(time.Hour))
		s.Advance(10 * time.Second)
		var order []holdfast.ID
		for _, want := range []int{1, 1, 1, 0} {
			same(s, "promoted", s.promote(1), want)
			order = append(order, ids(s.claim(10))...)
		}
		same(s, "order", order, []holdfast.ID{a, b, c})
	}},
	{"promotion keeps every counter and the due time", func(s *scene) {
		lease := s.start()
		s.settle(retries(lease, time.Minute))
		due := s.job(lease.ID).DueAt
		s.Advance(longAgo)
		s.promote(10)
		same(s, "due", s.expectCounts(lease.ID, [5]int{1, 1, 0, 0, 1}).DueAt, due)
		same(s, "token", s.claimOne().Token, 2)
	}},
	{"promotion without due jobs returns 0", func(s *scene) { same(s, "promoted", s.promote(10), 0) }},
	{"an expired job is returned to be failed, and is never run late", func(s *scene) {
		id := s.enqueue(expiresIn(time.Minute))
		s.Advance(time.Minute - time.Microsecond)
		same(s, "expired early", len(s.expire()), 0)
		s.Advance(time.Microsecond)
		leases := s.expire()
		same(s, "expired", ids(leases), []holdfast.ID{id})
		same(s, "claimable meanwhile", len(s.claim(1)), 0)
		same(s, "lease", []any{leases[0].Token, leases[0].State, leases[0].Worker, leases[0].StartedAt.IsZero(), leases[0].Lost}, []any{1, holdfast.Processing, "reclaimer", true, ""})
		e := fails(leases[0], "JOB_EXPIRED")
		e.Charge = store.ChargeNone
		s.settle(e)
		job := s.expectCounts(id, [5]int{1, 0, 0, 0, 1})
		same(s, "job", []any{job.State, job.LastFailure.Code, job.StartedAt.IsZero()}, []any{holdfast.Failed, "JOB_EXPIRED", true})
		same(s, "expired again", len(s.expire()), 0)
	}},
	{"a job that waits for its due time or its retry expires too, and so does a held one", func(s *scene) {
		lease := s.start(expiresIn(time.Minute))
		s.settle(retries(lease, time.Hour))
		waits := s.enqueue(expiresIn(time.Minute), at(time.Hour))
		held := s.enqueue(expiresIn(time.Minute), func(d *holdfast.Draft) { d.Kind = "held" })
		s.must(s.Store.Pause(s.ctx, store.Hold{Kind: "held", Actor: "ada"}))
		s.Advance(time.Minute)
		got := ids(s.expire())
		for _, id := range []holdfast.ID{lease.ID, waits, held} {
			if !slices.Contains(got, id) {
				s.Fatalf("job %v has not expired", id)
			}
		}
	}},
	{"a processing or ended job does not expire", func(s *scene) {
		done := s.start(expiresIn(time.Minute))
		s.settle(completes(done))
		runs := s.start(expiresIn(time.Minute))
		s.Advance(time.Minute)
		s.renew(store.Renewal{Batch: runs.Batch, Running: []holdfast.ID{runs.ID}})
		same(s, "expired", len(s.expire()), 0)
		s.expectState(done.ID, holdfast.Complete)
		s.settle(completes(runs))
	}},
	{"many processing jobs do not hide an expired one (river PR#1318)", func(s *scene) {
		drafts := make([]holdfast.Draft, 30)
		for i := range drafts {
			drafts[i] = draft()
			drafts[i].ExpireIn = time.Minute
		}
		s.enqueueAll(drafts...)
		leases := s.claimAs(store.Claim{Worker: "w", Limit: 30, Start: 30, Lease: time.Hour})
		last := s.enqueue(expiresIn(2 * time.Minute))
		s.Advance(10 * time.Minute)
		got, err := s.Store.Expire(s.ctx, store.Claim{Worker: "reclaimer", Limit: 5, Lease: shortLease})
		s.must(err)
		same(s, "expired", ids(got), []holdfast.ID{last})
		same(s, "claimed before", len(leases), 30)
	}},
	{"Expire returns at most its limit, and the rest next time", func(s *scene) {
		for range 5 {
			s.enqueue(expiresIn(time.Second))
		}
		s.Advance(time.Minute)
		var total int
		for range 3 {
			got, err := s.Store.Expire(s.ctx, store.Claim{Worker: "reclaimer", Limit: 2, Lease: shortLease})
			s.must(err)
			if len(got) > 2 {
				s.Fatalf("expired %d jobs, the limit is 2", len(got))
			}
			total += len(got)
		}
		same(s, "expired", total, 5)
	}},
	{"if the process that expires a job is lost, the job is only released", func(s *scene) {
		id := s.enqueue(expiresIn(time.Second))
		s.Advance(time.Minute)
		s.expire()
		s.Advance(time.Minute)
		same(s, "reclaimed", len(s.reclaim()), 0)
		s.expectCounts(id, [5]int{2, 0, 0, 1, 1})
		same(s, "expired again", ids(s.expire()), []holdfast.ID{id})
	}},
	{"a job past its expiry is not retried manually, wherever it is", func(s *scene) {
		lease := s.start(expiresIn(time.Minute))
		s.settle(retries(lease, time.Hour))
		s.Advance(time.Minute)
		s.expectRetryRefused(lease.ID)
		taken := s.expire()
		same(s, "expired", len(taken), 1)
		s.Advance(shortLease)
		s.expectRetryRefused(lease.ID)
		s.settle(fails(taken[0], "JOB_EXPIRED"))
		s.expectRetryRefused(lease.ID)
		s.expectState(lease.ID, holdfast.Failed)
	}},
	{"the integrity check accepts an expired job that has a cancel request and is reclaimed", func(s *scene) {
		lease := s.start(expiresIn(time.Minute))
		s.settle(retries(lease, time.Hour))
		s.Advance(time.Minute)
		same(s, "expired", len(s.expire()), 1)
		s.cancel(lease.ID)
		s.Advance(shortLease)
		same(s, "reclaimed", len(s.reclaim()), 1)
	}},
	{"a worker is listed until the time it gave, and one that leaves is removed at once", func(s *scene) {
		p := store.WorkerInfo{Worker: "w1", Queues: []string{"default", "slow"}, Kinds: []string{"mail"}, Slots: 8, Codes: "c1", Policy: 2, Misses: "line 3: a word it does not know", For: time.Minute}
		s.must(s.Store.ReportWorker(s.ctx, p))
		now := s.job(s.enqueue()).AsOf
		s.Advance(30 * time.Second)
		p.Slots, p.Policy, p.Misses = 4, 3, ""
		s.must(s.Store.ReportWorker(s.ctx, p))
		workers, err := s.Store.Workers(s.ctx)
		s.must(err)
		want := p
		want.For, want.StartedAt, want.SeenAt, want.Until = 0, now, now.Add(30*time.Second), now.Add(90*time.Second)
		same(s, "workers", workers, []store.WorkerInfo{want})
		p.For = 0
		s.must(s.Store.ReportWorker(s.ctx, p))
		workers, err = s.Store.Workers(s.ctx)
		s.must(err)
		same(s, "workers", workers, []store.WorkerInfo{})
	}},
	{"a worker that stops reporting is removed after the time it gave", func(s *scene) {
		s.must(s.Store.ReportWorker(s.ctx, store.WorkerInfo{Worker: "w1", For: time.Minute}))
		s.Advance(time.Minute + time.Second)
		workers, err := s.Store.Workers(s.ctx)
		s.must(err)
		same(s, "workers", len(workers), 0)
	}},
}
