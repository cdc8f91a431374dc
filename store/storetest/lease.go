package storetest

import (
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

var leaseLaws = []law{
	{"a renewed lease ends later, for every job of the batch", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claim(2)
		s.Advance(20 * time.Second)
		same(s, "news", s.renew(holdfast.Renewal{Batch: leases[0].Batch, Running: ids(leases)}), holdfast.Renewed{})
		for _, l := range leases {
			job := s.job(l.ID)
			same(s, "lease until", job.LeaseUntil, job.AsOf.Add(shortLease))
		}
	}},
	{"a job ten times as long as its lease stays its worker's while it is renewed (river#682, oban#1141, sidekiq#4611)", func(s *scene) {
		lease := s.start()
		for range 15 {
			s.Advance(20 * time.Second)
			same(s, "reclaimed", len(s.reclaim()), 0)
			s.renew(holdfast.Renewal{Batch: lease.Batch, Running: []holdfast.ID{lease.ID}})
		}
		s.settle(completes(lease))
		s.expectCounts(lease.ID, [5]int{1, 0, 0, 0, 1})
	}},
	{"a lease that has expired and was not reclaimed is revived by its renewal", func(s *scene) {
		lease := s.start()
		s.Advance(longAgo)
		same(s, "news", s.renew(holdfast.Renewal{Batch: lease.Batch, Running: []holdfast.ID{lease.ID}}), holdfast.Renewed{})
		same(s, "reclaimed", len(s.reclaim()), 0)
		s.settle(completes(lease))
	}},
	{"a lease that has expired and was not reclaimed can still be settled", func(s *scene) {
		lease := s.start()
		s.Advance(longAgo)
		s.settle(completes(lease))
		s.expectState(lease.ID, holdfast.Complete)
	}},
	{"a renewal after the reclaim brings nothing back: the jobs are lost (oban#1488)", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claimAs(holdfast.Claim{Worker: "w", Limit: 2, Start: 1})
		s.Advance(longAgo)
		taken := s.reclaim()
		news := s.renew(holdfast.Renewal{Batch: leases[0].Batch, Running: []holdfast.ID{leases[0].ID}, Waiting: []holdfast.ID{leases[1].ID}})
		same(s, "lost", len(news.Lost), 2)
		same(s, "holder", s.job(taken[0].ID).Worker, "keeper")
		same(s, "until", s.job(taken[0].ID).LeaseUntil, taken[0].LeaseUntil)
	}},
	{"a job settled or claimed by somebody else is reported lost, and only that", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claim(2)
		s.settle(completes(leases[0]))
		news := s.renew(holdfast.Renewal{Batch: leases[0].Batch, Running: ids(leases)})
		same(s, "news", news, holdfast.Renewed{Lost: []holdfast.ID{leases[0].ID}})
	}},
	{"renewing a job through a batch it is not in is a loss, whoever holds it", func(s *scene) {
		s.enqueueAll(draft(), draft())
		a, b := s.claimOne(), s.claimOne()
		news := s.renew(holdfast.Renewal{Batch: a.Batch, Running: []holdfast.ID{b.ID}})
		same(s, "news", news, holdfast.Renewed{Lost: []holdfast.ID{b.ID}})
	}},
	{"a renewal says which jobs have started since", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claimAs(holdfast.Claim{Worker: "w", Limit: 2})
		s.renew(holdfast.Renewal{Batch: leases[0].Batch, Running: []holdfast.ID{leases[0].ID}, Waiting: []holdfast.ID{leases[1].ID}})
		same(s, "first started", s.job(leases[0].ID).StartedAt.IsZero(), false)
		same(s, "second started", s.job(leases[1].ID).StartedAt.IsZero(), true)
		s.Advance(longAgo)
		same(s, "handed over", ids(s.reclaim()), []holdfast.ID{leases[0].ID})
	}},
	{"many batches are renewed in one go, and one that is gone does not hinder the others", func(s *scene) {
		s.enqueueAll(draft(), draft(), draft())
		a, b, c := s.claimOne(), s.claimOne(), s.claimOne()
		s.settle(completes(b))
		s.Advance(10 * time.Second)
		news := s.renew(holdfast.Renewal{Batch: a.Batch, Running: []holdfast.ID{a.ID}}, holdfast.Renewal{Batch: b.Batch, Running: []holdfast.ID{b.ID}},
			holdfast.Renewal{Batch: c.Batch, Waiting: []holdfast.ID{c.ID}})
		same(s, "news", news, holdfast.Renewed{Lost: []holdfast.ID{b.ID}})
		for _, l := range []holdfast.Lease{a, c} {
			same(s, "until", s.job(l.ID).LeaseUntil, l.LeaseUntil.Add(10*time.Second))
		}
	}},
	{"nothing renewed is no news", func(s *scene) {
		same(s, "news", s.renew(), holdfast.Renewed{})
	}},
	{"the worker learns with its next renewal that a job was asked to stop", func(s *scene) {
		lease := s.start()
		s.cancel(lease.ID)
		news := s.renew(holdfast.Renewal{Batch: lease.Batch, Running: []holdfast.ID{lease.ID}})
		same(s, "news", news, holdfast.Renewed{Cancelling: []holdfast.ID{lease.ID}})
	}},
}

var noteLaws = []law{
	{"progress is seen while the job runs, with the store's time", func(s *scene) {
		lease := s.start()
		s.Advance(time.Second)
		s.note(nil, holdfast.Note{Batch: lease.Batch, Job: lease.ID, Token: lease.Token, Progress: &holdfast.Progress{Percent: 12.5, Note: "page 3 of 24"}})
		job := s.job(lease.ID)
		same(s, "progress", job.Progress, &holdfast.Progress{Percent: 12.5, Note: "page 3 of 24", At: job.AsOf})
	}},
	{"a checkpoint is received by the next attempt, also after a crash, and an empty note leaves it", func(s *scene) {
		lease := s.start()
		s.note(nil, holdfast.Note{Batch: lease.Batch, Job: lease.ID, Token: 1, Checkpoint: raw(`{"row": 10}`)})
		s.note(nil, holdfast.Note{Batch: lease.Batch, Job: lease.ID, Token: 1, Progress: &holdfast.Progress{Percent: 1}})
		s.settle(retries(lease, 0))
		lease = s.claimOne()
		same(s, "checkpoint", string(lease.Checkpoint), `{"row": 10}`)
		s.note(nil, holdfast.Note{Batch: lease.Batch, Job: lease.ID, Token: lease.Token, Checkpoint: raw(`11`)})
		s.Advance(longAgo)
		same(s, "checkpoint after a crash", string(s.reclaim()[0].Checkpoint), `11`)
	}},
	{"a note by anybody but the holder changes nothing", func(s *scene) {
		lease := s.start()
		good := holdfast.Note{Batch: lease.Batch, Job: lease.ID, Token: lease.Token, Checkpoint: raw(`1`)}
		s.note(nil, good)
		wrong := []holdfast.Note{good, good, good}
		wrong[0].Token++
		wrong[1].Batch = holdfast.NewID()
		wrong[2].Job = holdfast.NewID()
		for _, n := range wrong {
			n.Checkpoint = raw(`2`)
			s.note(holdfast.ErrLeaseLost, n)
		}
		s.settle(hands(lease, holdfast.ChargeInterrupt, 0))
		s.note(holdfast.ErrLeaseLost, good)
		same(s, "checkpoint", string(s.claimOne().Checkpoint), `1`)
	}},
	{"a checkpoint that is no JSON or too large is refused, and the lease is still held", func(s *scene) {
		lease := s.start()
		for _, bad := range []string{`{`, `"` + strings.Repeat("x", 64<<10) + `"`} {
			s.note(holdfast.ErrInvalid, holdfast.Note{Batch: lease.Batch, Job: lease.ID, Token: 1, Checkpoint: raw(bad)})
		}
		s.settle(completes(lease))
	}},
	{"one bad note does not touch the others", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claim(2)
		var notes []holdfast.Note
		for _, l := range leases {
			notes = append(notes, holdfast.Note{Batch: l.Batch, Job: l.ID, Token: l.Token, Checkpoint: raw(`1`)})
		}
		notes[0].Token = 99
		answers, err := s.Store.Note(s.ctx, notes)
		s.must(err)
		s.expectError(answers[0], holdfast.ErrLeaseLost)
		s.must(answers[1])
	}},
	{"a note with zero bytes and broken text is kept as far as it can be", func(s *scene) {
		lease := s.start()
		s.note(nil, holdfast.Note{Batch: lease.Batch, Job: lease.ID, Token: 1, Progress: &holdfast.Progress{Percent: 50, Note: "a\x00b\xffc"}})
		if note := s.job(lease.ID).Progress.Note; !strings.HasPrefix(note, "a") || !strings.HasSuffix(note, "c") {
			s.Fatalf("the note became %q", note)
		}
	}},
}

func (s *scene) note(want error, n holdfast.Note) {
	s.Helper()
	answers, err := s.Store.Note(s.ctx, []holdfast.Note{n})
	s.must(err)
	if want == nil {
		s.must(answers[0])
	} else {
		s.expectError(answers[0], want)
	}
}
