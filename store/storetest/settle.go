package storetest

import (
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

var settleLaws = []law{
	{"a complete job has ended, with its exact result and no failure", func(s *scene) {
		lease := s.start()
		s.Advance(5 * time.Second)
		done := completes(lease)
		done.Result, done.Took = raw(`{"b": 1.0,  "a": null}`), 5*time.Second
		s.settle(done)
		job := s.expectState(lease.ID, holdfast.Complete)
		same(s, "result", string(job.Result), string(done.Result))
		same(s, "worker", job.Worker, "w1")
		same(s, "span", []time.Time{job.StartedAt, job.FinishedAt}, []time.Time{job.AsOf.Add(-5 * time.Second), job.AsOf})
		same(s, "attempts", len(s.history(lease.ID).Attempts), 0)
		same(s, "claimed again", len(s.claim(1)), 0)
	}},
	{"a complete job shows no earlier failures, and its history keeps them", func(s *scene) {
		lease := s.start()
		s.settle(retries(lease, 0))
		same(s, "last failure", s.job(lease.ID).LastFailure.Code, "FLAKY")
		s.settle(completes(s.claimOne()))
		same(s, "last failure", s.job(lease.ID).LastFailure == nil, true)
		same(s, "attempts", len(s.history(lease.ID).Attempts), 1)
	}},
	{"a failed attempt returns to its queue, charged, and not before its delay", func(s *scene) {
		lease := s.start()
		s.Advance(3 * time.Second)
		e := retries(lease, time.Minute)
		e.Took = 3 * time.Second
		e.Failure = &holdfast.Failure{Code: "FLAKY", Category: "net", Message: "no answer", Detail: "dial: <timeout>", Context: map[string]string{"http_status": "503"},
			Dependency: "smtp", Fingerprint: "abc", Benign: true}
		s.settle(e)
		job := s.expectCounts(lease.ID, [5]int{1, 1, 0, 0, 1})
		same(s, "state", job.State, holdfast.Queued)
		same(s, "due", job.DueAt, job.AsOf.Add(time.Minute))
		same(s, "last failure", job.LastFailure, e.Failure)
		same(s, "attempts", s.history(lease.ID).Attempts, []store.Attempt{{
			Job: lease.ID, Token: 1, Generation: 1, Worker: "w1", StartedAt: job.AsOf.Add(-3 * time.Second), EndedAt: job.AsOf, To: holdfast.Queued,
			Charge: store.ChargeFailure, DueAt: job.DueAt, Failure: e.Failure, Why: e.Why, Limit: 25, Count: 1,
		}})
		s.Advance(time.Minute - time.Microsecond)
		s.promote(10)
		same(s, "claimed early", len(s.claim(1)), 0)
	}},
	{"a job released without a delay is claimable at once", func(s *scene) {
		lease := s.start()
		s.settle(releases(lease, store.ChargeRelease, 0))
		job := s.expectCounts(lease.ID, [5]int{1, 0, 0, 1, 1})
		same(s, "due", job.DueAt, job.AsOf)
		same(s, "claimed", s.claimOne().ID, lease.ID)
	}},
	{"each charge increments its own counter and no other (asynq#1015)", func(s *scene) {
		lease := s.start()
		counts := [5]int{1, 0, 0, 0, 1}
		for i, charge := range []store.Charge{store.ChargeFailure, store.ChargeCrash, store.ChargeRelease} {
			s.settle(releases(lease, charge, 0))
			counts[i+1]++
			s.expectCounts(lease.ID, counts)
			lease = s.claimOne()
			counts[0]++
		}
		var told []int
		for _, a := range s.history(lease.ID).Attempts {
			told = append(told, a.Count)
		}
		same(s, "counts of the attempts", told, []int{1, 1, 0})
	}},
	{"a failed job is a dead letter with its code, and is not claimed again", func(s *scene) {
		lease := s.start()
		s.Advance(time.Second)
		e := fails(lease, "BROKEN")
		s.settle(e)
		job := s.expectState(lease.ID, holdfast.Failed)
		same(s, "failure", job.LastFailure, e.Failure)
		same(s, "finished", job.FinishedAt, job.AsOf)
		same(s, "failures", job.Failures, 1)
		s.Advance(longAgo)
		s.promote(10)
		s.reclaim()
		same(s, "claimed", len(s.claim(1)), 0)
		same(s, "dead letters", len(s.jobs(store.Filter{DeadLetters: true})), 1)
	}},
	{"a crash at the last attempt leaves the job neither lost nor locked (graphile#254)", func(s *scene) {
		lease := s.start(func(d *holdfast.Draft) { d.MaxAttempts = 1 })
		s.Advance(longAgo)
		taken := s.reclaim()[0]
		s.settle(releases(taken, store.ChargeCrash, 0))
		s.expectCounts(lease.ID, [5]int{2, 0, 1, 0, 1})
		s.settle(completes(s.claimOne()))
	}},
	{"cancelling by settlement ends the job and keeps the attempt", func(s *scene) {
		lease := s.start()
		e := ends(lease, holdfast.Cancelled)
		e.Why, e.Failure = "its context was cancelled", &holdfast.Failure{Code: "STOPPED", Category: "test", Message: "stopped"}
		s.settle(e)
		s.expectState(lease.ID, holdfast.Cancelled)
		attempts := s.history(lease.ID).Attempts
		same(s, "attempt", []any{attempts[0].To, attempts[0].Failure.Code}, []any{holdfast.Cancelled, "STOPPED"})
	}},
	{"an attempt that never started has no start time", func(s *scene) {
		s.enqueue()
		lease := s.claimAs(store.Claim{Worker: "w", Limit: 1})[0]
		e := fails(lease, "EXPIRED")
		e.Charge = store.ChargeNone
		s.settle(e)
		job := s.expectCounts(lease.ID, [5]int{1, 0, 0, 0, 1})
		same(s, "started", job.StartedAt.IsZero(), true)
	}},
	{"an invalid settlement is refused, and the lease is still held", func(s *scene) {
		lease := s.start()
		for _, bad := range []func(*store.Settlement){
			func(e *store.Settlement) { e.To = "dead" }, func(e *store.Settlement) { e.To = holdfast.Processing },
			func(e *store.Settlement) { e.Result = raw(`{`) }, func(e *store.Settlement) { e.To, e.Failure = holdfast.Failed, nil },
			func(e *store.Settlement) { e.To, e.Charge = holdfast.Queued, store.ChargeNone }, func(e *store.Settlement) { e.Took = -1 },
			func(e *store.Settlement) { e.Charge = store.ChargeFailure }, func(e *store.Settlement) { e.Delay = 1 << 62 },
			func(e *store.Settlement) { e.Result = raw(`"` + strings.Repeat("x", check.MaxArgs) + `"`) },
			func(e *store.Settlement) { e.To, e.Charge = holdfast.Cancelled, "favour" }, func(e *store.Settlement) { e.Limit = -1 },
			func(e *store.Settlement) { e.Limit = 1 << 31 },
		} {
			e := completes(lease)
			bad(&e)
			s.expectError(s.trySettle(e)[0], holdfast.ErrInvalid)
		}
		s.expectState(lease.ID, holdfast.Processing)
		s.settle(completes(lease))
	}},
	{"one invalid settlement in a hundred does not affect the others (river PR#258)", func(s *scene) {
		drafts := make([]holdfast.Draft, 100)
		for i := range drafts {
			drafts[i] = draft()
		}
		s.enqueueAll(drafts...)
		var all []store.Settlement
		for _, l := range s.claim(100) {
			all = append(all, completes(l))
		}
		all[13].Result = raw(`{`)
		all[50].Token = 77
		all[77].Job = holdfast.NewID()
		answers := s.trySettle(all...)
		s.expectError(answers[13], holdfast.ErrInvalid)
		s.expectError(answers[50], holdfast.ErrLeaseLost)
		s.expectError(answers[77], holdfast.ErrLeaseLost)
		same(s, "complete", len(s.jobs(store.Filter{State: holdfast.Complete, Limit: 200})), 97)
		same(s, "processing", len(s.jobs(store.Filter{State: holdfast.Processing, Limit: 200})), 3)
	}},
	{"a settlement with an unknown charge is refused alone, and the others of its call are applied", func(s *scene) {
		s.enqueueAll(draft(), draft())
		l := s.claim(2)
		bad := retries(l[0], time.Second)
		bad.Charge = "favour"
		answers := s.trySettle(bad, completes(l[1]))
		s.expectError(answers[0], holdfast.ErrInvalid)
		same(s, "refusal", answers[0].Error(), `a charge of "favour": use failure, crash, release, or none`)
		s.must(answers[1])
		s.expectState(l[1].ID, holdfast.Complete)
		s.expectCounts(l[0].ID, [5]int{1, 0, 0, 0, 1})
		s.settle(completes(l[0]))
	}},
	{"settlements of every kind and batch can be combined, and each has its own answer", func(s *scene) {
		s.enqueueAll(draft(), draft(), draft(), draft(), draft())
		l := append(s.claim(3), s.claim(2)...)
		s.settle(retries(l[3], time.Second), completes(l[0]), fails(l[4], "BROKEN"), releases(l[1], store.ChargeRelease, 0), ends(l[2], holdfast.Cancelled))
		var states []holdfast.State
		for _, lease := range l {
			states = append(states, s.job(lease.ID).State)
		}
		same(s, "states", states, []holdfast.State{holdfast.Complete, holdfast.Queued, holdfast.Cancelled, holdfast.Queued, holdfast.Failed})
	}},
	{"an empty settle returns no answers", func(s *scene) { s.settle() }},
	{"NUL bytes and invalid UTF-8 in a failure are removed, and the failure is kept (river#1153)", func(s *scene) {
		lease := s.start()
		e := fails(lease, "BROKEN")
		e.Why = "why\x00\xff"
		e.Failure.Message, e.Failure.Detail, e.Failure.Context = "bad\x00\xfftext", strings.Repeat("\xc3", 40), map[string]string{"k\x00": "v\xff\x00"}
		s.settle(e)
		job := s.expectState(lease.ID, holdfast.Failed)
		if m := job.LastFailure.Message; !strings.HasPrefix(m, "bad") || !strings.HasSuffix(m, "text") || strings.ContainsRune(m, 0) {
			s.Fatalf("the message became %q", m)
		}
	}},
	{"the largest allowed result is stored", func(s *scene) {
		lease := s.start()
		done := completes(lease)
		done.Result = raw(`"` + strings.Repeat("x", check.MaxArgs-2) + `"`)
		s.settle(done)
		same(s, "result", string(s.job(lease.ID).Result), string(done.Result))
	}},
	{"a batch is deleted with its last job: the others keep their lease", func(s *scene) {
		s.enqueueAll(draft(), draft())
		leases := s.claim(2)
		s.settle(completes(leases[0]))
		same(s, "holder", s.expectState(leases[1].ID, holdfast.Processing).Worker, "w1")
		s.settle(completes(leases[1]))
		s.Advance(longAgo)
		same(s, "reclaimed", len(s.reclaim()), 0)
	}},
	{"no result and a null result are distinguished", func(s *scene) {
		lease := s.start()
		s.settle(completes(lease))
		job := s.job(lease.ID)
		same(s, "result", len(job.Result), 0)
		same(s, "a start without a length is the end", job.StartedAt, job.FinishedAt)
		next := s.start()
		done := completes(next)
		done.Result = raw(`null`)
		s.settle(done)
		same(s, "result", string(s.job(next.ID).Result), "null")
	}},
}
