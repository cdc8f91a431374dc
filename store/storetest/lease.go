package storetest

import (
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var leaseLaws = []law{
	{"a renewal extends the lease of every job of the batch", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claim(2)
		s.Advance(20 * time.Second)
		same(s, "news", s.renew(store.Renewal{Batch: leases[0].Batch, Running: ids(leases)}), store.RenewResult{})
		for _, l := range leases {
			job := s.job(l.ID)
			same(s, "lease until", job.LeaseUntil, job.AsOf.Add(shortLease))
		}
	}},
	{"a job that runs ten times its lease is kept by its worker while it is renewed (river#682, oban#1141, sidekiq#4611)", func(s *scene) {
		lease := s.start()
		for range 15 {
			s.Advance(20 * time.Second)
			same(s, "reclaimed", len(s.reclaim()), 0)
			s.renew(store.Renewal{Batch: lease.Batch, Running: []holdfast.ID{lease.ID}})
		}
		s.settle(completes(lease))
		s.expectCounts(lease.ID, [5]int{1, 0, 0, 0, 1})
	}},
	{"an expired lease that was not reclaimed can be renewed", func(s *scene) {
		lease := s.start()
		s.Advance(longAgo)
		same(s, "news", s.renew(store.Renewal{Batch: lease.Batch, Running: []holdfast.ID{lease.ID}}), store.RenewResult{})
		same(s, "reclaimed", len(s.reclaim()), 0)
		s.settle(completes(lease))
	}},
	{"an expired lease that was not reclaimed can be settled", func(s *scene) {
		lease := s.start()
		s.Advance(longAgo)
		s.settle(completes(lease))
		s.expectState(lease.ID, holdfast.Complete)
	}},
	{"a renewal after the reclaim reports the jobs as lost (oban#1488)", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claimAs(store.Claim{Worker: "w", Limit: 2, Start: 1})
		s.Advance(longAgo)
		taken := s.reclaim()
		news := s.renew(store.Renewal{Batch: leases[0].Batch, Running: []holdfast.ID{leases[0].ID}, Waiting: []holdfast.ID{leases[1].ID}})
		same(s, "lost", len(news.Lost), 2)
		same(s, "holder", s.job(taken[0].ID).Worker, "reclaimer")
		same(s, "until", s.job(taken[0].ID).LeaseUntil, taken[0].LeaseUntil)
	}},
	{"only jobs that were settled or claimed elsewhere are reported as lost", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claim(2)
		s.settle(completes(leases[0]))
		news := s.renew(store.Renewal{Batch: leases[0].Batch, Running: ids(leases)})
		same(s, "news", news, store.RenewResult{Lost: []holdfast.ID{leases[0].ID}})
	}},
	{"a job renewed through a batch it is not in is reported as lost, whichever worker holds it", func(s *scene) {
		s.enqueueAll(draft(), draft())
		a, b := s.claimOne(), s.claimOne()
		news := s.renew(store.Renewal{Batch: a.Batch, Running: []holdfast.ID{b.ID}})
		same(s, "news", news, store.RenewResult{Lost: []holdfast.ID{b.ID}})
	}},
	{"a renewal records which jobs have started", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claimAs(store.Claim{Worker: "w", Limit: 2})
		s.renew(store.Renewal{Batch: leases[0].Batch, Running: []holdfast.ID{leases[0].ID}, Waiting: []holdfast.ID{leases[1].ID}})
		same(s, "first started", s.job(leases[0].ID).StartedAt.IsZero(), false)
		same(s, "second started", s.job(leases[1].ID).StartedAt.IsZero(), true)
		s.Advance(longAgo)
		same(s, "reclaimed", ids(s.reclaim()), []holdfast.ID{leases[0].ID})
	}},
	{"many batches are renewed in one call, and a missing one does not affect the others", func(s *scene) {
		s.enqueueAll(draft(), draft(), draft())
		a, b, c := s.claimOne(), s.claimOne(), s.claimOne()
		s.settle(completes(b))
		s.Advance(10 * time.Second)
		news := s.renew(store.Renewal{Batch: a.Batch, Running: []holdfast.ID{a.ID}}, store.Renewal{Batch: b.Batch, Running: []holdfast.ID{b.ID}},
			store.Renewal{Batch: c.Batch, Waiting: []holdfast.ID{c.ID}})
		same(s, "news", news, store.RenewResult{Lost: []holdfast.ID{b.ID}})
		for _, l := range []store.Lease{a, c} {
			same(s, "until", s.job(l.ID).LeaseUntil, l.LeaseUntil.Add(10*time.Second))
		}
	}},
	{"an empty renewal returns nothing", func(s *scene) {
		same(s, "news", s.renew(), store.RenewResult{})
	}},
	{"the next renewal returns the jobs with a cancel request", func(s *scene) {
		lease := s.start()
		s.cancel(lease.ID)
		news := s.renew(store.Renewal{Batch: lease.Batch, Running: []holdfast.ID{lease.ID}})
		same(s, "news", news, store.RenewResult{Cancelling: []holdfast.ID{lease.ID}})
	}},
}

var noteLaws = []law{
	{"progress is shown while the job runs, with the store's time", func(s *scene) {
		lease := s.start()
		s.Advance(time.Second)
		s.note(nil, store.Note{Batch: lease.Batch, Job: lease.ID, Token: lease.Token, Progress: &holdfast.Progress{Percent: 12.5, Note: "page 3 of 24"}})
		job := s.job(lease.ID)
		same(s, "progress", job.Progress, &holdfast.Progress{Percent: 12.5, Note: "page 3 of 24", At: job.AsOf})
	}},
	{"the next attempt gets the checkpoint, also after a crash, and an empty note keeps it", func(s *scene) {
		lease := s.start()
		s.note(nil, store.Note{Batch: lease.Batch, Job: lease.ID, Token: 1, Checkpoint: raw(`{"row": 10}`)})
		s.note(nil, store.Note{Batch: lease.Batch, Job: lease.ID, Token: 1, Progress: &holdfast.Progress{Percent: 1}})
		s.settle(retries(lease, 0))
		lease = s.claimOne()
		same(s, "checkpoint", string(lease.Checkpoint), `{"row": 10}`)
		s.note(nil, store.Note{Batch: lease.Batch, Job: lease.ID, Token: lease.Token, Checkpoint: raw(`11`)})
		s.Advance(longAgo)
		same(s, "checkpoint after a crash", string(s.reclaim()[0].Checkpoint), `11`)
	}},
	{"a note without the lease changes nothing", func(s *scene) {
		lease := s.start()
		good := store.Note{Batch: lease.Batch, Job: lease.ID, Token: lease.Token, Checkpoint: raw(`1`)}
		s.note(nil, good)
		wrong := []store.Note{good, good, good}
		wrong[0].Token++
		wrong[1].Batch = holdfast.NewID()
		wrong[2].Job = holdfast.NewID()
		for _, n := range wrong {
			n.Checkpoint = raw(`2`)
			s.note(holdfast.ErrLeaseLost, n)
		}
		s.settle(releases(lease, store.ChargeRelease, 0))
		s.note(holdfast.ErrLeaseLost, good)
		same(s, "checkpoint", string(s.claimOne().Checkpoint), `1`)
	}},
	{"a checkpoint that is not JSON or too large is refused, and the lease is still held", func(s *scene) {
		lease := s.start()
		for _, bad := range []string{`{`, `"` + strings.Repeat("x", 64<<10) + `"`} {
			s.note(holdfast.ErrInvalid, store.Note{Batch: lease.Batch, Job: lease.ID, Token: 1, Checkpoint: raw(bad)})
		}
		s.settle(completes(lease))
	}},
	{"one invalid note does not affect the others", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claim(2)
		var notes []store.Note
		for _, l := range leases {
			notes = append(notes, store.Note{Batch: l.Batch, Job: l.ID, Token: l.Token, Checkpoint: raw(`1`)})
		}
		notes[0].Token = 99
		answers, err := s.Store.Note(s.ctx, notes)
		s.must(err)
		s.expectError(answers[0], holdfast.ErrLeaseLost)
		s.must(answers[1])
	}},
	{"a note with NUL bytes and invalid UTF-8 is stored without them", func(s *scene) {
		lease := s.start()
		s.note(nil, store.Note{Batch: lease.Batch, Job: lease.ID, Token: 1, Progress: &holdfast.Progress{Percent: 50, Note: "a\x00b\xffc"}})
		if note := s.job(lease.ID).Progress.Note; !strings.HasPrefix(note, "a") || !strings.HasSuffix(note, "c") {
			s.Fatalf("the note became %q", note)
		}
	}},
}

func (s *scene) note(want error, n store.Note) {
	s.Helper()
	answers, err := s.Store.Note(s.ctx, []store.Note{n})
	s.must(err)
	if want == nil {
		s.must(answers[0])
	} else {
		s.expectError(answers[0], want)
	}
}
