package storetest

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var keyLaws = []law{
	{"a unique key admits one live job on every insert path (river#161): alone, in bulk, in a transaction", func(s *scene) {
		first := s.enqueue(unique("k"))
		twin := holdfast.Receipt{ID: first, Existing: true}
		d := draft()
		d.UniqueKey = "k"
		same(s, "alone", s.enqueueAll(d)[0], twin)
		bulk := make([]holdfast.Draft, 150)
		for i := range bulk {
			bulk[i] = draft()
		}
		bulk[70].UniqueKey = "k"
		same(s, "in bulk", s.enqueueAll(bulk...)[70], twin)
		tx, end := s.Begin()
		receipts, err := s.In(tx).Enqueue(s.ctx, []holdfast.Draft{d, draft()})
		s.must(err)
		s.must(end(true))
		same(s, "in a transaction", receipts[0], twin)
		s.expectJobs(1 + 149 + 1)
	}},
	{"two drafts of one call with one unique key create one job", func(s *scene) {
		d := draft()
		d.UniqueKey = "k"
		receipts := s.enqueueAll(d, draft(), d)
		same(s, "third", receipts[2], holdfast.Receipt{ID: receipts[0].ID, Existing: true})
		same(s, "first", receipts[0].Existing, false)
		s.expectJobs(2)
	}},
	{"keys are scoped to owner and kind", func(s *scene) {
		s.enqueue(unique("k"))
		s.enqueue(unique("k"), func(d *holdfast.Draft) { d.Kind = "pdf" })
		s.enqueue(unique("k"), func(d *holdfast.Draft) { d.Owner = "acme" })
		s.expectJobs(3)
	}},
	{"a unique key is held through claim, retry, delay, promotion and reclaim (graphile#303)", func(s *scene) {
		lease := s.start(unique("k"))
		taken := func(when string) {
			s.Helper()
			d := draft()
			d.UniqueKey = "k"
			same(s, when, s.enqueueAll(d)[0], holdfast.Receipt{ID: lease.ID, Existing: true})
		}
		taken("while processing")
		s.settle(retries(lease, time.Minute))
		taken("while it waits for a retry")
		s.Advance(time.Minute)
		s.promote(10)
		taken("when its retry is due")
		s.claimOne()
		s.Advance(longAgo)
		s.reclaim()
		taken("after its worker was lost")
	}},
	{"the retry of a unique job does not conflict with itself (river PR#619, #590)", func(s *scene) {
		lease := s.start(unique("k"))
		s.enqueue(unique("other"), at(time.Second))
		s.settle(retries(lease, time.Second))
		s.Advance(time.Second)
		same(s, "promoted", s.promote(10), 2)
		same(s, "claimed", len(s.claim(10)), 2)
	}},
	{"completing, failing and cancelling free the key at once (asynq#275)", func(s *scene) {
		for _, end := range []func(store.Lease){
			func(l store.Lease) { s.settle(completes(l)) },
			func(l store.Lease) { s.settle(fails(l, "BROKEN")) },
			func(l store.Lease) { s.settle(ends(l, holdfast.Cancelled)) },
			func(l store.Lease) { s.cancel(l.ID); s.settle(completes(l)) },
			func(l store.Lease) { s.settle(releases(l, store.ChargeRelease, 0)); s.cancel(l.ID) },
		} {
			lease := s.start(unique("k"))
			end(lease)
			d := draft()
			d.UniqueKey = "k"
			receipt := s.enqueueAll(d)[0]
			same(s, "existing", receipt.Existing, false)
			s.cancel(receipt.ID)
		}
	}},
	{"a key that is kept after success returns the complete job, and is freed by a failure", func(s *scene) {
		done := func(d *holdfast.Draft) { d.UniqueKey, d.UniqueDone = "k", true }
		lease := s.start(done)
		s.settle(fails(lease, "BROKEN"))
		next := s.start(done)
		s.settle(completes(next))
		same(s, "existing job", s.enqueue(done), next.ID)
		_, err := s.Store.Retry(s.ctx, by(lease.ID))
		s.expectConflict(err, next.ID)
	}},
	{"the key of a lost worker's job is freed after the reclaim (oban#424)", func(s *scene) {
		lease := s.start(unique("k"))
		s.Advance(longAgo)
		s.settle(fails(s.reclaim()[0], "POISON"))
		if s.enqueue(unique("k")) == lease.ID {
			s.Fatal("the key is still held")
		}
	}},
	{"the same idempotency key with the same draft returns the same job, also after it has ended", func(s *scene) {
		d := draft()
		d.IdempotencyKey, d.Args, d.Tags, d.Delay = "once", raw(`{"a":1}`), []string{"t"}, 0
		first := s.enqueueAll(d)[0].ID
		same(s, "again", s.enqueueAll(d)[0], holdfast.Receipt{ID: first, Existing: true})
		s.settle(completes(s.claimOne()))
		same(s, "after the end", s.enqueueAll(d)[0], holdfast.Receipt{ID: first, Existing: true})
		s.expectJobs(1)
	}},
	{"the same idempotency key with a different draft is refused, the error names the job, and nothing of the call is written", func(s *scene) {
		d := draft()
		d.IdempotencyKey = "once"
		first := s.enqueueAll(d)[0].ID
		for _, change := range []func(*holdfast.Draft){
			func(d *holdfast.Draft) { d.Kind = "pdf" }, func(d *holdfast.Draft) { d.Queue = "slow" },
			func(d *holdfast.Draft) { d.Args = raw(`1`) }, func(d *holdfast.Draft) { d.Priority = 1 },
			func(d *holdfast.Draft) { d.Tags = []string{"x"} }, func(d *holdfast.Draft) { d.Delay = time.Second },
			func(d *holdfast.Draft) { d.MaxAttempts = 3 }, func(d *holdfast.Draft) { d.ExpireIn = time.Hour },
			func(d *holdfast.Draft) { d.UniqueKey = "u" }, func(d *holdfast.Draft) { d.RunAt = time.Now().Add(-time.Hour) },
			func(d *holdfast.Draft) { d.Dependency = "gateway" }, func(d *holdfast.Draft) { d.RetryWithin = time.Minute },
		} {
			other := d
			change(&other)
			_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{draft(), other})
			s.expectConflict(err, first)
		}
		s.expectJobs(1)
	}},
	{"idempotency keys are scoped to the owner", func(s *scene) {
		d := draft()
		d.IdempotencyKey = "once"
		s.enqueueAll(d)
		d.Owner = "acme"
		same(s, "existing", s.enqueueAll(d)[0].Existing, false)
	}},
	{"two drafts of one call with one idempotency key are one job, or are refused if they differ", func(s *scene) {
		d := draft()
		d.IdempotencyKey = "once"
		receipts := s.enqueueAll(d, d)
		same(s, "second", receipts[1], holdfast.Receipt{ID: receipts[0].ID, Existing: true})
		d.IdempotencyKey = "twice"
		other := d
		other.Priority = 5
		_, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{d, other})
		s.expectError(err, holdfast.ErrConflict)
		s.expectJobs(1)
	}},
	{"if another job holds a draft's unique key, the draft's idempotency key returns that job", func(s *scene) {
		holder := s.enqueue(unique("k"))
		d := draft()
		d.UniqueKey, d.IdempotencyKey = "k", "once"
		twin := holdfast.Receipt{ID: holder, Existing: true}
		same(s, "first", s.enqueueAll(d)[0], twin)
		s.cancel(holder)
		same(s, "after the holder ended", s.enqueueAll(d)[0], twin)
		s.expectJobs(1)
	}},
	{"similar keys are different keys: case, blanks, quotes, wildcards", func(s *scene) {
		keys := []string{"a", "A", "a ", " a", "a'b", `a"b`, "%", "_", "ä", "a\u0308", "null", "a/b", `a\b`}
		for _, key := range keys {
			s.enqueue(unique(key), func(d *holdfast.Draft) { d.IdempotencyKey = key })
		}
		s.expectJobs(len(keys))
	}},
}
