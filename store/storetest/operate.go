package storetest

import (
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var operateLaws = []law{
	{"cancelling a queued job ends it at once, with an event that has actor and reason", func(s *scene) {
		for _, id := range []holdfast.ID{s.enqueue(), s.enqueue(at(time.Hour))} {
			same(s, "answer", s.cancel(id), holdfast.Cancelled)
			job := s.expectState(id, holdfast.Cancelled)
			same(s, "times", []any{job.StartedAt.IsZero(), job.FinishedAt}, []any{true, job.AsOf})
			same(s, "events", s.history(id).Events, []store.Event{{Job: id, At: job.AsOf, Name: "cancel", Actor: "ada", Reason: "because", Generation: 1}})
		}
		s.Advance(2 * time.Hour)
		s.promote(10)
		same(s, "claimed", len(s.claim(10)), 0)
	}},
	{"a processing job with a cancel request ends cancelled, whatever its worker reports (river PR#1397, #1245)", func(s *scene) {
		for _, say := range []func(store.Lease) store.Settlement{
			completes, func(l store.Lease) store.Settlement { return fails(l, "BROKEN") },
			func(l store.Lease) store.Settlement { return retries(l, time.Hour) },
			func(l store.Lease) store.Settlement { return ends(l, holdfast.Cancelled) },
			func(l store.Lease) store.Settlement { return releases(l, store.ChargeRelease, 0) },
		} {
			lease := s.start()
			same(s, "answer", s.cancel(lease.ID), holdfast.Processing)
			same(s, "cancelling", s.expectState(lease.ID, holdfast.Processing).Cancelling, true)
			e := say(lease)
			s.settle(e)
			job := s.expectState(lease.ID, holdfast.Cancelled)
			same(s, "job", []any{job.Cancelling, len(job.Result), job.Failures}, []any{false, 0, countIf(e.Charge == store.ChargeFailure)})
			attempts := s.history(lease.ID).Attempts
			same(s, "attempt", []any{len(attempts), attempts[0].To, attempts[0].Charge}, []any{1, holdfast.Cancelled, e.Charge})
			same(s, "what its worker reported", attempts[0].Said, e.To)
			s.settle(e) // a repeated settlement gets the same answer
			same(s, "late results", len(s.history(lease.ID).Attempts), 1)
		}
	}},
	{"a repeated cancel request is accepted and recorded once", func(s *scene) {
		lease := s.start()
		s.cancel(lease.ID)
		same(s, "answer", s.cancel(lease.ID), holdfast.Processing)
		same(s, "events", len(s.history(lease.ID).Events), 1)
		s.settle(completes(lease))
	}},
	{"an ended job cannot be cancelled", func(s *scene) {
		lease := s.start()
		s.settle(completes(lease))
		_, err := s.Store.Cancel(s.ctx, by(lease.ID))
		s.expectError(err, holdfast.ErrConflict)
		s.expectState(lease.ID, holdfast.Complete)
	}},
	{"discarding removes a failed job from the dead letters, once, and it stays failed", func(s *scene) {
		lease := s.fail()
		s.must(s.Store.Discard(s.ctx, by(lease.ID)))
		same(s, "discarded", s.expectState(lease.ID, holdfast.Failed).Discarded, true)
		same(s, "dead letters", len(s.jobs(store.Filter{DeadLetters: true})), 0)
		same(s, "failed", len(s.jobs(store.Filter{State: holdfast.Failed})), 1)
		s.expectError(s.Store.Discard(s.ctx, by(lease.ID)), holdfast.ErrConflict)
		events := s.history(lease.ID).Events
		same(s, "events", []any{len(events), events[0].Name, events[0].Actor, events[0].Reason}, []any{1, "discard", "ada", "because"})
	}},
	{"only failed jobs can be discarded, and only with a reason", func(s *scene) {
		s.expectError(s.Store.Discard(s.ctx, by(s.enqueue())), holdfast.ErrConflict)
		done := s.claimOne()
		s.expectError(s.Store.Discard(s.ctx, by(done.ID)), holdfast.ErrConflict)
		s.settle(completes(done))
		s.expectError(s.Store.Discard(s.ctx, by(done.ID)), holdfast.ErrConflict)
		failed := s.fail()
		s.expectError(s.Store.Discard(s.ctx, store.Intervention{Job: failed.ID, Actor: "ada"}), holdfast.ErrInvalid)
		same(s, "discarded", s.job(failed.ID).Discarded, false)
	}},
	{"an intervention needs an actor, in valid text", func(s *scene) {
		id := s.enqueue()
		for _, bad := range []store.Intervention{
			{Job: id}, {Job: id, Actor: "a\nb"}, {Job: id, Actor: strings.Repeat("a", 256)}, {Job: id, Actor: "ada", Reason: strings.Repeat("r", 1001)},
			{Job: id, Actor: "ada", Reason: "tab\x00"}, {Job: id, Actor: "ada", Owner: strings.Repeat("o", 256)},
		} {
			_, err := s.Store.Cancel(s.ctx, bad)
			s.expectError(err, holdfast.ErrInvalid)
			_, err = s.Store.Retry(s.ctx, bad)
			s.expectError(err, holdfast.ErrInvalid)
			bad.Reason += "x"
			s.expectError(s.Store.Discard(s.ctx, bad), holdfast.ErrInvalid)
		}
		s.expectState(id, holdfast.Queued)
	}},
	{"another owner's job and no job get the same answer", func(s *scene) {
		lease := s.fail(func(d *holdfast.Draft) { d.Owner = "acme" })
		foreign, unknown := by(lease.ID), by(holdfast.NewID())
		foreign.Owner, unknown.Owner = "other", "other"
		verbs := map[string]func(store.Intervention) error{
			"retry":   func(i store.Intervention) error { _, err := s.Store.Retry(s.ctx, i); return err },
			"cancel":  func(i store.Intervention) error { _, err := s.Store.Cancel(s.ctx, i); return err },
			"discard": func(i store.Intervention) error { return s.Store.Discard(s.ctx, i) },
		}
		for name, verb := range verbs {
			a, b := verb(foreign), verb(unknown)
			s.expectError(a, holdfast.ErrNotFound)
			s.expectError(b, holdfast.ErrNotFound)
			same(s, name+" in text", strings.ReplaceAll(a.Error(), foreign.Job.String(), "?"), strings.ReplaceAll(b.Error(), unknown.Job.String(), "?"))
		}
		own := by(lease.ID)
		own.Owner = "acme"
		s.must(s.Store.Discard(s.ctx, own))
	}},
}

func countIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
