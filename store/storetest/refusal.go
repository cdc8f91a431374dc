package storetest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// The texts of refusals, byte for byte the same on every store and over HTTP. The laws below provoke each; the model check compares them whenever a
// random sequence meets one. Format verbs stand for ids and states.
const (
	textNoJob        = "there is no job %v: check the id"
	textNoGroup      = "there is no group %v: check the id"
	textNoErrorGroup = "there is no error group %q: check the fingerprint"
	textNoActor      = "no actor: name the person or program that makes the change"
	textNoReason     = "a discard without a reason: say why the job is no longer needed"

	textRunning      = "job %v is being processed: cancel it, or retry it once its lease has expired"
	textNotFailed    = "job %v is %s: only a failed job can be retried"
	textWaits        = "job %v waits for other jobs: it starts when they have ended"
	textQueued       = "job %v is already waiting to run"
	textExpired      = "job %v has passed its expiry, so no attempt could start: enqueue it again"
	textEnded        = "job %v is %s already: there is nothing to cancel"
	textUndiscarded  = "job %v is %s: only a failed job can be discarded"
	textDiscarded    = "job %v is already discarded"
	textNoDeadLetter = "job %v is not a dead letter: leave it out"
	textKeyHeld      = "job %v holds the unique key of job %v: wait until it ends, or cancel it"

	textUneditable = "job %v is %s: only a job that is queued or failed can be edited"
	textDeadEdit   = "job %v is failed: its arguments, priority and attempts can be edited; queue, tags and start time only after it is queued again"
	textStale      = "job %v has changed since it was read: read it again and repeat the edit"

	textNotCommitted = "job %v was not completed: the transaction in which it was completed has not committed"
	textRefusedDraft = "job %v was not completed, because a job that it enqueues was refused: %v"
	textLost         = "the lease on job %v is no longer held: stop working on it; the result is not applied"
	textKeyUsed      = "the idempotency key %q was used for another draft, job %v: send that draft again, or use a new key"
	textExists       = "job %v exists already: leave the id out, or use a new one"
	textNotMember    = "job %v is not a member of the same group: name existing members, or earlier drafts of the call"

	textNoUpstream = "job %v did not wait for a step %q: name it in the draft's After, or check the name"

	textSealed        = "group %v is sealed: it takes no more members; seal it later, or make another group"
	textGroupExists   = "group %v exists already: leave the id out, or use a new one"
	textGroupSettled  = "group %v is %s already: there is nothing to cancel"
	textNoFailed      = "group %v has no failed members: there is nothing to retry"
	textNoneRetryable = "no failed member of group %v can be retried: %d passed their expiry, and other jobs hold the unique keys of %d"
	textRecord        = "record %s/%s has changed since it was read: read it again and decide again"
)

// refuse is a refusal that names the job in the way, if there is one.
func refuse(kind error, job holdfast.ID, text string, args ...any) error {
	return &holdfast.Error{Err: kind, Job: job, Message: fmt.Sprintf(text, args...)}
}

func refuseJob(job holdfast.ID, text string, more ...any) error {
	return refuse(holdfast.ErrConflict, job, text, append([]any{job}, more...)...)
}

// expectRefusal compares an error with a refusal: its kind, its text, and the job it names.
func (s *scene) expectRefusal(got error, kind error, text string, args ...any) {
	s.Helper()
	s.expectError(got, kind)
	same(s, "refusal", got.Error(), fmt.Sprintf(text, args...))
}

var refusalLaws = []law{
	{"unknown things are refused with the same text everywhere", func(s *scene) {
		id := holdfast.NewID()
		i := by(id)
		i.Reason = "gone"
		_, retry := s.Store.Retry(s.ctx, i)
		_, cancel := s.Store.Cancel(s.ctx, i)
		_, edit := s.Store.Edit(s.ctx, store.Edit{Intervention: i, Priority: new(int16(1))})
		_, shown := s.Store.Job(s.ctx, id)
		_, told := s.Store.History(s.ctx, id)
		redrive, err := s.Store.Redrive(s.ctx, store.Redrive{ID: holdfast.NewID(), Jobs: []holdfast.ID{id}, Actor: "ada"})
		s.must(err)
		event := s.Store.Apply(s.ctx, store.Change{Events: []store.Event{{Job: id, Name: "noted", Actor: "ada"}}})
		for _, got := range []error{retry, cancel, s.Store.Discard(s.ctx, i), edit, shown, told, redrive[0], event} {
			s.expectRefusal(got, holdfast.ErrNotFound, textNoJob, id)
		}
		i.Group = id
		_, group := s.Store.Group(s.ctx, id)
		_, again := s.Store.RetryGroup(s.ctx, i)
		_, member := s.Store.Enqueue(s.ctx, []holdfast.Draft{{Kind: "mail", Group: id}})
		for _, got := range []error{group, again, s.Store.CancelGroup(s.ctx, i), s.Store.SealGroup(s.ctx, id), member} {
			s.expectRefusal(got, holdfast.ErrNotFound, textNoGroup, id)
		}
		s.expectRefusal(s.Store.Triage(s.ctx, store.Triage{Fingerprint: "none", Status: store.StatusResolved, Actor: "ada"}), holdfast.ErrNotFound, textNoErrorGroup, "none")
	}},
	{"an intervention without an actor, and a discard without a reason, are refused before anything is read", func(s *scene) {
		id := s.fail().ID
		nobody := store.Intervention{Job: id, Group: id, Reason: "why"}
		_, retry := s.Store.Retry(s.ctx, nobody)
		_, cancel := s.Store.Cancel(s.ctx, nobody)
		_, edit := s.Store.Edit(s.ctx, store.Edit{Intervention: nobody, Priority: new(int16(1))})
		_, redrive := s.Store.Redrive(s.ctx, store.Redrive{ID: holdfast.NewID(), Jobs: []holdfast.ID{id}})
		_, group := s.Store.RetryGroup(s.ctx, nobody)
		for _, got := range []error{retry, cancel, s.Store.Discard(s.ctx, nobody), edit, redrive, group, s.Store.CancelGroup(s.ctx, nobody),
			s.Store.Pause(s.ctx, store.Hold{Queue: "slow"}), s.Store.Triage(s.ctx, store.Triage{Fingerprint: "none", Status: store.StatusResolved})} {
			s.expectRefusal(got, holdfast.ErrInvalid, textNoActor)
		}
		i := by(id)
		i.Reason = ""
		s.expectRefusal(s.Store.Discard(s.ctx, i), holdfast.ErrInvalid, textNoReason)
	}},
	{"the refusal of a retry says why", func(s *scene) {
		retry := func(id holdfast.ID) error { _, err := s.Store.Retry(s.ctx, by(id)); return err }
		queued := s.enqueue(at(time.Hour))
		s.expectRefusal(retry(queued), holdfast.ErrConflict, textQueued, queued)
		lease := s.start()
		s.expectRefusal(retry(lease.ID), holdfast.ErrConflict, textRunning, lease.ID)
		s.settle(completes(lease))
		s.expectRefusal(retry(lease.ID), holdfast.ErrConflict, textNotFailed, lease.ID, "complete")
		late := s.fail(func(d *holdfast.Draft) { d.ExpireIn = time.Minute }).ID
		s.Advance(2 * time.Minute)
		s.expectRefusal(retry(late), holdfast.ErrConflict, textExpired, late)
		first := s.fail(unique("k")).ID
		second := s.enqueue(unique("k"))
		s.expectRefusal(retry(first), holdfast.ErrConflict, textKeyHeld, second, first)
		s.expectConflict(retry(first), second)
	}},
	{"the refusal of a cancel, discard, redrive or edit says why", func(s *scene) {
		why := func(id holdfast.ID) store.Intervention { i := by(id); i.Reason = "not needed"; return i }
		redrive := func(id holdfast.ID) error {
			answers, err := s.Store.Redrive(s.ctx, store.Redrive{ID: holdfast.NewID(), Jobs: []holdfast.ID{id}, Actor: "ada"})
			s.must(err)
			return answers[0]
		}
		edit := func(e store.Edit) error { _, err := s.Store.Edit(s.ctx, e); return err }
		done := s.start()
		s.settle(completes(done))
		_, cancel := s.Store.Cancel(s.ctx, by(done.ID))
		s.expectRefusal(cancel, holdfast.ErrConflict, textEnded, done.ID, "complete")
		s.expectRefusal(s.Store.Discard(s.ctx, why(done.ID)), holdfast.ErrConflict, textUndiscarded, done.ID, "complete")
		s.expectRefusal(redrive(done.ID), holdfast.ErrConflict, textNoDeadLetter, done.ID)
		s.expectRefusal(edit(store.Edit{Intervention: by(done.ID), Priority: new(int16(1))}), holdfast.ErrConflict, textUneditable, done.ID, "complete")
		dead := s.fail().ID
		s.expectRefusal(edit(store.Edit{Intervention: by(dead), Queue: new("slow")}), holdfast.ErrConflict, textDeadEdit, dead)
		s.expectRefusal(edit(store.Edit{Intervention: by(dead), Priority: new(int16(1)), IfDigest: "before"}), holdfast.ErrConflict, textStale, dead)
		s.must(s.Store.Discard(s.ctx, why(dead)))
		s.expectRefusal(s.Store.Discard(s.ctx, why(dead)), holdfast.ErrConflict, textDiscarded, dead)
		s.expectRefusal(redrive(dead), holdfast.ErrConflict, textNoDeadLetter, dead)
	}},
	{"a draft that conflicts with an existing job is refused, and the error names it", func(s *scene) {
		enqueue := func(d holdfast.Draft) error { _, err := s.Store.Enqueue(s.ctx, []holdfast.Draft{d}); return err }
		id := s.enqueue(func(d *holdfast.Draft) { d.IdempotencyKey = "once" })
		s.expectRefusal(enqueue(holdfast.Draft{Kind: "pdf", IdempotencyKey: "once"}), holdfast.ErrConflict, textKeyUsed, "once", id)
		s.expectRefusal(enqueue(holdfast.Draft{ID: id, Kind: "pdf"}), holdfast.ErrConflict, textExists, id)
		group := s.gather()
		s.expectRefusal(enqueue(holdfast.Draft{Kind: "pdf", Group: group, After: []holdfast.ID{id}}), holdfast.ErrInvalid, textNotMember, id)
		_, twice := s.Store.CreateGroup(s.ctx, holdfast.Group{ID: group})
		s.expectRefusal(twice, holdfast.ErrConflict, textGroupExists, group)
		s.must(s.Store.SealGroup(s.ctx, group))
		s.expectRefusal(enqueue(holdfast.Draft{Kind: "pdf", Group: group}), holdfast.ErrConflict, textSealed, group)
	}},
	{"the refusal to retry or cancel a group says why", func(s *scene) {
		group := s.gather()
		of := store.Intervention{Group: group, Actor: "ada"}
		retry := func() error { _, err := s.Store.RetryGroup(s.ctx, of); return err }
		in := func(d *holdfast.Draft) { d.Group = group }
		s.expectRefusal(retry(), holdfast.ErrConflict, textNoFailed, group)
		s.fail(in, func(d *holdfast.Draft) { d.ExpireIn = time.Minute })
		s.fail(in, unique("k"))
		s.enqueue(unique("k"))
		s.must(s.Store.SealGroup(s.ctx, group))
		s.Advance(2 * time.Minute)
		s.expectRefusal(retry(), holdfast.ErrConflict, textNoneRetryable, group, 1, 1)
		s.advanceGroups()
		s.expectRefusal(s.Store.CancelGroup(s.ctx, of), holdfast.ErrConflict, textGroupSettled, group, "failed")
	}},
	{"a worker that has lost its lease gets ErrLeaseLost, and a record that has changed is refused", func(s *scene) {
		lease := s.start()
		s.settle(completes(lease))
		late := s.trySettle(fails(lease, "BROKEN"))[0]
		s.expectRefusal(late, holdfast.ErrLeaseLost, textLost, lease.ID)
		notes, err := s.Store.Note(s.ctx, []store.Note{{Batch: lease.Batch, Job: lease.ID, Token: lease.Token, Checkpoint: raw(`1`)}})
		s.must(err)
		s.expectRefusal(notes[0], holdfast.ErrLeaseLost, textLost, lease.ID)
		stale := store.Change{Records: []store.Record{{Namespace: "breaker", Name: "a", Version: 7, Body: json.RawMessage(`1`)}}}
		s.expectRefusal(s.Store.Apply(s.ctx, stale), holdfast.ErrConflict, textRecord, "breaker", "a")
	}},
	{"the event of an error group that regressed or reopened says why", func(s *scene) {
		broken := func(version string) {
			e := fails(s.start(), "BROKEN")
			e.Failure.Fingerprint, e.Version = "print", version
			s.settle(e)
		}
		judge := func(t store.Triage) { t.Fingerprint, t.Actor = "print", "ada"; s.must(s.Store.Triage(s.ctx, t)) }
		broken("v1")
		judge(store.Triage{Status: store.StatusResolved})
		broken("v1")
		judge(store.Triage{Status: store.StatusResolved, Version: "v2"})
		broken("v1")
		broken("v2")
		judge(store.Triage{Status: store.StatusIgnored, Count: 2})
		broken("v2")
		broken("v2")
		judge(store.Triage{Status: store.StatusIgnored, For: time.Minute})
		groups, _, err := s.Store.ErrorGroups(s.ctx, store.ErrorFilter{})
		s.must(err)
		s.Advance(2 * time.Minute)
		broken("v2")
		events, err := s.Store.Events(s.ctx, "error/print", 20)
		s.must(err)
		var told []string
		for _, e := range events {
			if e.Actor == "holdfast" {
				told = append(told, e.Name+": "+e.Reason)
			}
		}
		same(s, "turns", told, []string{
			"open again: it was ignored until " + groups[0].Until.UTC().Format(time.RFC3339),
			"open again: it was ignored until it had 6 failures",
			"regressed: it failed again after it was resolved in version v2",
			"regressed: it failed again after it was resolved",
		})
	}},
}
