package storetest

import (
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// An editOption changes one thing in an edit.
type editOption = func(*store.Edit)

func toQueue(queue string) editOption { return func(e *store.Edit) { e.Queue = &queue } }

func withPatch(patch string) editOption { return func(e *store.Edit) { e.Patch = raw(patch) } }

func replaceArgs(args string) editOption { return func(e *store.Edit) { e.Args = raw(args) } }

func dueIn(d time.Duration) editOption { return func(e *store.Edit) { e.Delay = &d } }

func toTags(tags ...string) editOption { return func(e *store.Edit) { e.Tags = &tags } }

func toPriority(priority int16) editOption { return func(e *store.Edit) { e.Priority = &priority } }

func (s *scene) tryEdit(id holdfast.ID, changes ...editOption) (holdfast.Job, error) {
	e := store.Edit{Intervention: by(id)}
	for _, change := range changes {
		change(&e)
	}
	return s.Store.Edit(s.ctx, e)
}

// edit expects that a job is edited, and that the answer is the job as it is shown.
func (s *scene) edit(id holdfast.ID, changes ...editOption) holdfast.Job {
	s.Helper()
	job, err := s.tryEdit(id, changes...)
	s.must(err)
	same(s, "answer", job, s.job(id))
	return job
}

var editLaws = []law{
	{"an edit changes what it names and nothing else, and an event records who changed what and why", func(s *scene) {
		id := s.enqueue(unique("k"), func(d *holdfast.Draft) {
			d.Args, d.Priority, d.Owner, d.Tags, d.MaxAttempts = raw(`{"to": "ada", "n": 1.00, "x": true}`), 3, "acme", []string{"red"}, 7
			d.IdempotencyKey, d.ExpireIn, d.Dependency, d.RetryWithin, d.Trace = "once", time.Hour, "gateway", time.Minute, traceparent
		})
		want := s.job(id)
		s.Advance(time.Minute)
		job := s.edit(id, withPatch(`{"to":"bob","x":null,"new":[1]}`), toQueue("slow"), toPriority(-2), toTags("blue", "green"), dueIn(time.Minute),
			func(e *store.Edit) { e.MaxAttempts, e.Request = new(2), "r-1" })
		want.Args, want.Queue, want.Priority, want.Tags, want.MaxAttempts = raw(`{"to":"bob","n":1.00,"new":[1]}`), "slow", -2, []string{"blue", "green"}, 2
		want.AsOf, want.DueAt, want.RunAt = job.AsOf, job.AsOf.Add(time.Minute), job.AsOf.Add(time.Minute)
		same(s, "job", job, want)
		events := s.history(id).Events
		same(s, "lines", len(events), 1)
		e := events[0]
		same(s, "line", []any{e.Name, e.Actor, e.Request, e.Generation, e.At}, []any{"edit", "ada", "r-1", 1, job.AsOf})
		for _, word := range []string{"because", "arguments", "queue default to slow", "priority 3 to -2", "tags", "attempts 7 to 2", "1m0s"} {
			same(s, "the reason says "+word, strings.Contains(e.Reason, word), true)
		}
		s.Advance(time.Minute)
		s.promote(10)
		lease := s.claimAs(store.Claim{Worker: "w1", Limit: 5, Start: 5, Queues: []string{"slow", "default"}})[0]
		same(s, "lease", []any{string(lease.Args), lease.Queue, lease.Priority, lease.Tags, lease.MaxAttempts, lease.RunAt, lease.Trace},
			[]any{string(want.Args), "slow", int16(-2), want.Tags, 2, want.RunAt, traceparent})
	}},
	{"an edit stores the replaced values exactly, and they can be restored with whole arguments", func(s *scene) {
		id := s.enqueue(func(d *holdfast.Draft) { d.Args, d.Tags = raw(`{"amount":5,"note":null,"to":"ada"}`), []string{"red"} })
		before := s.job(id)
		s.edit(id, withPatch(`{"amount":7,"note":"x"}`), toQueue("slow"), toPriority(2), toTags(), func(e *store.Edit) { e.MaxAttempts = new(3) })
		s.edit(id, toPriority(2)) // changes nothing
		events := s.history(id).Events
		same(s, "replaced", string(events[0].Was), `{"args":{"amount":5,"note":null,"to":"ada"},"queue":"default","priority":0,"tags":["red"],"max_attempts":0}`)
		same(s, "replaced by nothing", len(events[1].Was), 0)
		s.edit(id, func(e *store.Edit) { e.Args = before.Args })
		same(s, "arguments", string(s.job(id).Args), string(before.Args))
		same(s, "replaced", string(s.history(id).Events[2].Was), `{"args":{"amount":7,"note":"x","to":"ada"}}`)
		_, err := s.tryEdit(id, withPatch(`{}`), func(e *store.Edit) { e.Args = raw(`{}`) })
		s.expectError(err, holdfast.ErrInvalid)
	}},
	{"a redrive that patches or moves a job stores the replaced values", func(s *scene) {
		id := s.fail(func(d *holdfast.Draft) { d.Args = raw(`{"n":1}`) }).ID
		answers, err := s.Store.Redrive(s.ctx, store.Redrive{ID: holdfast.NewID(), Jobs: []holdfast.ID{id}, Actor: "ada", Patch: raw(`{"n":2}`), Queue: "slow"})
		s.must(err)
		s.must(answers[0])
		events := s.history(id).Events
		same(s, "replaced", string(events[len(events)-1].Was), `{"args":{"n":1},"queue":"default"}`)
	}},
	{"a dead letter can be edited, and a later retry runs with the new values", func(s *scene) {
		id := s.fail(func(d *holdfast.Draft) { d.Args = raw(`{"n": 1.00, "m": 2}`) }).ID
		want := s.job(id)
		job := s.edit(id, withPatch(`{"m":3}`), toPriority(4), func(e *store.Edit) { e.MaxAttempts = new(9) })
		want.Args, want.Priority, want.MaxAttempts, want.AsOf = raw(`{"n":1.00,"m":3}`), 4, 9, job.AsOf
		same(s, "job", job, want)
		for _, change := range []editOption{toQueue("slow"), toTags("red"), dueIn(time.Minute)} {
			_, err := s.tryEdit(id, change)
			s.expectConflict(err, id)
		}
		same(s, "claimed", len(s.claim(9)), 0)
		s.retry(id)
		lease := s.claimOne()
		same(s, "lease", []any{string(lease.Args), lease.Priority, lease.MaxAttempts}, []any{string(want.Args), int16(4), 9})
	}},
	{"only a queued or failed job can be edited, and the refusal names the state", func(s *scene) {
		states := map[holdfast.State]holdfast.ID{}
		done := s.start()
		s.settle(completes(done))
		states[holdfast.Complete], states[holdfast.Processing] = done.ID, s.start().ID
		states[holdfast.Cancelled] = s.enqueue()
		s.cancel(states[holdfast.Cancelled])
		for state, id := range states {
			before := s.job(id)
			_, err := s.tryEdit(id, toPriority(5))
			s.expectConflict(err, id)
			same(s, "it names "+string(state), strings.Contains(err.Error(), string(state)), true)
			same(s, "job", s.job(id), before)
			for _, e := range s.history(id).Events {
				same(s, "events", e.Name == "edit", false)
			}
		}
	}},
	{"an edit of another owner's job and of no job get the same answer", func(s *scene) {
		id := s.enqueue(func(d *holdfast.Draft) { d.Owner = "acme" })
		owned := func(owner string) editOption { return func(e *store.Edit) { e.Owner = owner } }
		before, unknown := s.job(id), holdfast.NewID()
		_, otherOwner := s.tryEdit(id, toQueue("slow"), owned("other"))
		_, missing := s.tryEdit(unknown, toQueue("slow"), owned("other"))
		s.expectError(otherOwner, holdfast.ErrNotFound)
		s.expectError(missing, holdfast.ErrNotFound)
		same(s, "text", strings.ReplaceAll(otherOwner.Error(), id.String(), "?"), strings.ReplaceAll(missing.Error(), unknown.String(), "?"))
		same(s, "job", s.job(id), before)
		s.edit(id, toQueue("slow"), owned("acme"))
	}},
	{"an invalid edit is refused and changes nothing", func(s *scene) {
		id := s.enqueue()
		before := s.job(id)
		for _, bad := range []editOption{
			func(*store.Edit) {}, func(e *store.Edit) { e.Actor, e.Patch = "", raw("1") }, withPatch(`{"a":`), withPatch("\"\xff\""),
			withPatch(`"` + strings.Repeat("x", check.MaxArgs) + `"`), toQueue("two words"), toQueue(""), dueIn(-1), toTags(""),
			func(e *store.Edit) { e.MaxAttempts = new(-1) }, func(e *store.Edit) { e.Reason, e.Patch = "a\x00b", raw("1") },
			func(e *store.Edit) { e.Request, e.Patch = strings.Repeat("r", 256), raw("1") },
		} {
			_, err := s.tryEdit(id, bad)
			s.expectError(err, holdfast.ErrInvalid)
		}
		same(s, "job", s.job(id), before)
		same(s, "events", len(s.history(id).Events), 0)
	}},
	{"patched arguments stay within their limit", func(s *scene) {
		id := s.enqueue(func(d *holdfast.Draft) { d.Args = raw(`{"a":"` + strings.Repeat("x", check.MaxArgs/2) + `"}`) })
		_, err := s.tryEdit(id, withPatch(`{"b":"`+strings.Repeat("x", check.MaxArgs/2)+`"}`))
		s.expectConflict(err, id)
		same(s, "events", len(s.history(id).Events), 0)
		same(s, "args", string(s.edit(id, withPatch(`null`)).Args), "null")
	}},
	{"an edit with an outdated digest is refused, and the answer to an edit has the next digest", func(s *scene) {
		id := s.enqueue()
		seen := func(digest string) editOption { return func(e *store.Edit) { e.IfDigest = digest } }
		first := s.job(id).Digest()
		s.Advance(time.Minute) // time does not change the digest
		second := s.edit(id, toPriority(1), seen(first)).Digest()
		_, err := s.tryEdit(id, toPriority(2), seen(first))
		s.expectConflict(err, id)
		third := s.edit(id, toPriority(2), seen(second)).Digest()
		s.settle(retries(s.claimOne(), time.Hour))
		_, err = s.tryEdit(id, toPriority(3), seen(third))
		s.expectConflict(err, id)
		same(s, "priority", s.edit(id, toPriority(3), seen(s.job(id).Digest())).Priority, int16(3))
	}},
	{"a job that moves to another queue is ordered by its id there, and is only there", func(s *scene) {
		older, moved, younger := s.enqueue(), s.enqueue(func(d *holdfast.Draft) { d.Queue, d.Priority = "slow", 9 }), s.enqueue()
		s.edit(moved, toQueue("default"), toPriority(0))
		same(s, "in the queue it left", len(s.claimAs(store.Claim{Worker: "w1", Limit: 9, Queues: []string{"slow"}})), 0)
		ahead, err := s.Store.Ahead(s.ctx, moved)
		s.must(err)
		same(s, "ahead", ahead, 1)
		same(s, "in the queue it joined", ids(s.claim(9)), []holdfast.ID{older, moved, younger})
	}},
	{"after an edit the holds of the job's new queue and tags apply", func(s *scene) {
		for _, hold := range []store.Hold{{Queue: "slow"}, {Tag: "red"}, {Queue: "s*"}, {Queue: "slow", Retries: true}, {Queue: "slow", Rate: &store.Rate{Burst: 1}}} {
			s.Wipe()
			id := s.enqueue()
			s.settle(retries(s.claimOne(), 0))
			s.pause(hold)
			claim := store.Claim{Worker: "w1", Limit: 9, Start: 9, Queues: []string{"default", "slow"}}
			s.edit(id, toQueue("slow"), toTags("red"))
			same(s, "claimed behind the hold", len(s.claimAs(claim)), 0)
			s.edit(id, toQueue("default"), toTags())
			same(s, "claimed", ids(s.claimAs(claim)), []holdfast.ID{id})
		}
	}},
	{"a job set aside behind a held tag becomes claimable when it loses the tag, and waits if it gets another held one", func(s *scene) {
		s.pause(store.Hold{Tag: "red"})
		s.pause(store.Hold{Tag: "blue"})
		id := s.enqueue(tagged("red"))
		s.expectClaims(0)
		s.edit(id, toTags("blue"))
		s.expectClaims(0)
		s.resume(store.Hold{Tag: "red"})
		s.promote(10)
		s.expectClaims(0)
		s.edit(id, withPatch(`1`))
		s.expectClaims(0)
		s.edit(id, toTags("green"))
		same(s, "claimed", ids(s.claim(9)), []holdfast.ID{id})
	}},
}
