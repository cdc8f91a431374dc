package storetest

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var fenceLaws = []law{
	{"a worker whose lease was lost cannot complete the next attempt (river v0.50: fenced by state only)", func(s *scene) {
		zombie := s.start()
		s.Advance(longAgo)
		s.settle(releases(s.reclaim()[0], store.ChargeCrash, 0))
		owner := s.claimAs(store.Claim{Worker: "w2", Limit: 1, Start: 1})[0]
		for _, e := range []store.Settlement{completes(zombie), fails(zombie, "BROKEN"), retries(zombie, 0), ends(zombie, holdfast.Cancelled)} {
			s.expectError(s.trySettle(e)[0], holdfast.ErrLeaseLost)
			job := s.expectCounts(zombie.ID, [5]int{3, 0, 1, 0, 1})
			same(s, "holder", job.Worker, "w2")
		}
		same(s, "evidence", s.late(zombie.ID), 4)
		s.settle(completes(owner))
	}},
	{"a worker whose lease was lost cannot settle a job that was reclaimed (river#1302)", func(s *scene) {
		zombie := s.start()
		s.Advance(longAgo)
		taken := s.reclaim()[0]
		s.expectError(s.trySettle(completes(zombie))[0], holdfast.ErrLeaseLost)
		s.settle(fails(taken, "POISON"))
		s.expectError(s.trySettle(completes(zombie))[0], holdfast.ErrLeaseLost)
		s.expectState(zombie.ID, holdfast.Failed)
	}},
	{"batch, job and token must all match the lease", func(s *scene) {
		s.enqueueAll(draft(), draft())
		a, b := s.claimOne(), s.claimOne()
		forged := []store.Settlement{completes(a), completes(a), completes(a), completes(a), completes(a)}
		forged[0].Token++
		forged[1].Token--
		forged[2].Batch = b.Batch
		forged[3].Batch = holdfast.ID{}
		forged[4].Job = b.ID
		for _, err := range s.trySettle(forged...) {
			s.expectError(err, holdfast.ErrLeaseLost)
		}
		s.expectState(a.ID, holdfast.Processing)
		s.expectState(b.ID, holdfast.Processing)
	}},
	{"a settlement whose answer was lost can be repeated, whatever its result", func(s *scene) {
		for _, say := range []func(store.Lease) store.Settlement{
			completes, func(l store.Lease) store.Settlement { return fails(l, "BROKEN") },
			func(l store.Lease) store.Settlement { return ends(l, holdfast.Cancelled) },
			func(l store.Lease) store.Settlement { return retries(l, time.Hour) },
			func(l store.Lease) store.Settlement { return releases(l, store.ChargeRelease, time.Hour) },
		} {
			lease := s.start()
			s.settle(say(lease))
			before := s.job(lease.ID)
			s.Advance(time.Second)
			s.settle(say(lease))
			before.AsOf = before.AsOf.Add(time.Second)
			same(s, "job", s.job(lease.ID), before)
			same(s, "evidence", s.late(lease.ID), 0)
		}
	}},
	{"a repeated settlement gets the same answer while the next attempt runs", func(s *scene) {
		lease := s.start()
		s.settle(retries(lease, 0))
		next := s.claimOne()
		s.settle(retries(lease, 0))
		s.expectCounts(lease.ID, [5]int{2, 1, 0, 0, 1})
		s.settle(completes(next))
	}},
	{"a different settlement of a settled lease changes nothing, and is kept as evidence once", func(s *scene) {
		lease := s.start()
		s.settle(completes(lease))
		for range 3 {
			s.expectError(s.trySettle(fails(lease, "BROKEN"))[0], holdfast.ErrLeaseLost)
		}
		s.expectState(lease.ID, holdfast.Complete)
		attempts := s.history(lease.ID).Attempts
		same(s, "attempts", len(attempts), 1)
		same(s, "evidence", []any{attempts[0].Late, attempts[0].To, attempts[0].Token, attempts[0].Failure.Code}, []any{true, holdfast.Failed, 1, "BROKEN"})
	}},
	{"of two settlements of one lease in one call the first counts", func(s *scene) {
		lease := s.start()
		answers := s.trySettle(completes(lease), completes(lease), fails(lease, "BROKEN"))
		s.must(answers[0])
		s.must(answers[1])
		s.expectError(answers[2], holdfast.ErrLeaseLost)
		s.expectState(lease.ID, holdfast.Complete)
		same(s, "evidence", s.late(lease.ID), 1)
	}},
	{"two failures of one lease in one call are counted once", func(s *scene) {
		lease := s.start()
		s.settle(retries(lease, time.Hour), retries(lease, time.Minute))
		job := s.expectCounts(lease.ID, [5]int{1, 1, 0, 0, 1})
		same(s, "due", job.DueAt, job.AsOf.Add(time.Hour))
	}},
	{"a settlement of a job that never existed is ErrLeaseLost and leaves nothing", func(s *scene) {
		ghost := store.Lease{Job: holdfast.Job{ID: holdfast.NewID(), Token: 1}, Batch: holdfast.NewID()}
		s.expectError(s.trySettle(completes(ghost))[0], holdfast.ErrLeaseLost)
		_, err := s.Store.History(s.ctx, ghost.ID)
		s.expectError(err, holdfast.ErrNotFound)
	}},
	{"a worker that never started a job cannot settle it after it was returned (its token is outdated)", func(s *scene) {
		s.enqueue()
		lease := s.claimAs(store.Claim{Worker: "w", Limit: 1})[0]
		s.Advance(longAgo)
		same(s, "reclaimed", len(s.reclaim()), 0)
		for _, e := range []store.Settlement{completes(lease), releases(lease, store.ChargeRelease, 0)} {
			s.expectError(s.trySettle(e)[0], holdfast.ErrLeaseLost)
		}
		s.expectCounts(lease.ID, [5]int{2, 0, 0, 1, 1})
	}},
	{"a complete job does not return by a late failure or a reclaim (bull#308)", func(s *scene) {
		lease := s.start()
		s.settle(completes(lease))
		s.expectError(s.trySettle(retries(lease, 0))[0], holdfast.ErrLeaseLost)
		s.Advance(longAgo)
		same(s, "reclaimed", len(s.reclaim()), 0)
		same(s, "promoted", s.promote(10), 0)
		same(s, "claimed", len(s.claim(10)), 0)
		s.expectState(lease.ID, holdfast.Complete)
	}},
	{"a clock that is set back takes no job from its worker and starts none twice", func(s *scene) {
		lease := s.start()
		s.Advance(-time.Hour)
		same(s, "reclaimed", len(s.reclaim()), 0)
		same(s, "claimed", len(s.claim(1)), 0)
		s.Advance(time.Hour)
		s.settle(completes(lease))
	}},
}
