package storetest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

const stepsPerSequence = 30

// Check runs so many random sequences of all operations on a store and on a model of it, and compares both after every step.
func Check(t *testing.T, h Harness, sequences int) { runCheck(t, h.Open(t), sequences) }

// runCheck is Check for any testing.TB, so that the model check itself can be tested.
func runCheck(t testing.TB, subject *Subject, count int) {
	for name, value := range map[string]string{"rapid.checks": fmt.Sprint(count), "rapid.steps": fmt.Sprint(stepsPerSequence), "rapid.nofailfile": "true"} {
		before := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatalf("rapid has no flag %s any more: %v", name, err)
		}
		defer func() { _ = flag.Set(name, before) }()
	}
	now := clockOf(t, subject)
	tried, claims := 0, &claims{}
	rapid.Check(t, func(rt *rapid.T) {
		tried++
		subject.Wipe()
		d := &driver{Subject: subject, ctx: context.Background(), m: newModel(now), expired: map[holdfast.ID]bool{},
			claims: claims, redrives: [2]holdfast.ID{holdfast.NewID(), holdfast.NewID()}}
		defer func() { now = d.m.now }()
		d.touched = map[holdfast.ID]bool{}
		d.enqueue(rt)
		d.enqueue(rt)
		if rapid.Bool().Draw(rt, "with a group") {
			d.gather(rt)
			d.add(rt)
		}
		rt.Repeat(d.actions())
		d.compareAll(rt)
	})
	if claims.even > claims.all/12+2 { // about one in sixteen: a store need not count exactly
		t.Errorf("%d of %d claims were out of an owner's order: one in sixteen may share evenly between priorities, no more", claims.even, claims.all)
	}
	if tried < count {
		t.Errorf("only %d of %d sequences were run: give the test more time", tried, count)
	}
}

// clockOf returns the store's time.
func clockOf(t testing.TB, subject *Subject) time.Time {
	subject.Wipe()
	ctx := context.Background()
	receipts, err := subject.Store.Enqueue(ctx, []holdfast.Draft{draft()})
	if err != nil {
		t.Fatalf("the store does not accept a job: %v", err)
	}
	job, err := subject.Store.Job(ctx, receipts[0].ID)
	if err != nil {
		t.Fatalf("the store does not show its job: %v", err)
	}
	return job.AsOf
}

// A driver applies one operation after the other to a store and to its model.
type driver struct {
	*Subject
	ctx context.Context
	m   *model

	past    []store.Lease        // every lease that was ever returned, held or not
	expired map[holdfast.ID]bool // batches that Expire returned: to be settled, never to be run
	touched map[holdfast.ID]bool // jobs that the current step may have changed
	back    bool                 // the clock was set back: from then on findings about time are ignored
	steps   int

	claims   *claims
	redrives [2]holdfast.ID
}

// claims counts, over all sequences, all claims and those that are only right if they shared evenly between priorities.
type claims struct{ all, even int }

// actions are the steps of a sequence. A step is as likely as the number of its entries.
func (d *driver) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){"": d.compare}
	likely := map[string]int{"enqueue": 5, "claim": 7, "settle": 5, "settle stale": 2, "advance": 3, "promote": 2, "reclaim": 3, "cancel": 2, "retry": 2, "edit": 3,
		"pause": 4, "resume": 2, "redrive": 2, "fail and redrive": 2, "add": 3, "seal": 2, "advance groups": 4, "retry group": 2, "end groups": 3}
	for name, action := range map[string]func(*rapid.T){
		"enqueue": d.enqueue, "claim": d.claim, "renew": d.renew, "note": d.note, "settle": d.settle, "settle stale": d.settleStale,
		"advance": d.advance, "promote": d.promote, "reclaim": d.reclaim, "expire": d.expire, "cancel": d.cancel,
		"retry": d.retry, "edit": d.edit, "discard": d.discard, "pause": d.pause, "resume": d.resume, "keep": d.keep, "redrive": d.redrive, "fail and redrive": d.failAndRedrive,
		"count redriven": d.countRedriven, "missed deadlines": d.missedDeadlines, "triage": d.triage, "present": d.present, "behind": d.behind, "held lines": d.heldLines,
		"gather": d.gather, "add": d.add, "seal": d.seal, "advance groups": d.advanceGroups, "retry group": d.retryGroup, "end groups": d.endGroups, "cancel group": d.cancelGroup,
	} {
		for i := range max(likely[name], 1) {
			actions[fmt.Sprintf("%s %d", name, i)] = action
		}
	}
	return actions
}

func (d *driver) touch(ids ...holdfast.ID) {
	for _, id := range ids {
		d.touched[id] = true
	}
}

// compare compares everything that the store shows with the model.
func (d *driver) compare(t *rapid.T) {
	var want, got []holdfast.Job
	for _, r := range d.m.jobs {
		want = append(want, d.m.view(r))
	}
	slices.SortFunc(want, func(a, b holdfast.Job) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	filter := store.Filter{Limit: 200}
	for more := true; more; more = filter.Cursor != "" {
		page, cursor, err := d.Store.Jobs(d.ctx, filter)
		if err != nil {
			failSequence(t, "the store does not list its jobs", "%v", err)
		}
		got, filter.Cursor = append(got, page...), cursor
	}
	match(t, "jobs", got, want)
	d.compareGroups(t)
	for id := range d.touched {
		d.compareHistory(t, id)
	}
	d.touched = map[holdfast.ID]bool{}
	if d.steps++; d.steps%10 == 0 && !d.overdue() {
		d.audit(t)
	}
}

func (d *driver) compareHistory(t *rapid.T, id holdfast.ID) {
	r, ok := d.m.jobs[id]
	h, err := d.Store.History(d.ctx, id)
	if !ok {
		if !errors.Is(err, holdfast.ErrNotFound) {
			failSequence(t, "the history of a job that does not exist", "%v, want ErrNotFound", err)
		}
		return
	}
	if err != nil {
		failSequence(t, "the store does not return a history", "%v: %v", id, err)
	}
	var attempts, late []store.Attempt
	for _, a := range h.Attempts {
		if a.Late {
			late = append(late, store.Attempt{Job: a.Job, Token: a.Token, To: a.To})
			continue
		}
		attempts = append(attempts, a)
	}
	want := d.m.view(r)
	want.After, want.When = d.m.shownWaits(r)
	match(t, "job of the history", h.Job, want)
	match(t, "attempts", attempts, r.attempts)
	match(t, "events", withoutExtraReasons(h.Events, r.events), r.events)
	match(t, "late results", late, r.late, cmpopts.SortSlices(func(a, b store.Attempt) bool {
		return a.Token < b.Token || a.Token == b.Token && a.To < b.To
	}))
}

// overdue reports whether work has waited for a duty for so long that the integrity check would report it.
func (d *driver) overdue() bool {
	limit := d.m.now.Add(-2 * time.Minute)
	for _, s := range d.m.leases {
		if !s.expires.After(limit) {
			return true
		}
	}
	for promise := range d.m.deadlines {
		if !promise.at.After(limit) {
			return true
		}
	}
	return len(d.m.where(later, func(r *record) bool { return !r.due.After(limit) })) > 0 ||
		len(d.m.where(ready, func(r *record) bool { return r.aside })) > 0
}

func (d *driver) audit(t *rapid.T) {
	if d.back {
		return
	}
	findings, err := d.Store.CheckIntegrity(d.ctx)
	if err != nil || len(findings) > 0 {
		failSequence(t, "the integrity check failed", "%+v (%v)", findings, err)
	}
}

// failSequence fails a sequence. The first part of the message is the same whenever the same thing goes wrong, so that rapid can shorten the
// sequence; details follow.
func failSequence(t *rapid.T, what, format string, args ...any) {
	t.Fatalf("%s\n%s", what, fmt.Sprintf(format, args...)) // in one message: if the failure is not reproduced, rapid shows only this
}

// match compares what the store returned with what the model returned.
func match(t *rapid.T, what string, got, want any, options ...cmp.Option) {
	if reflect.DeepEqual(want, got) { // usually, and ten times as fast
		return
	}
	if diff := cmp.Diff(want, got, append(options, cmpopts.EquateEmpty())...); diff != "" {
		failSequence(t, what+" differ", "(-model +store):\n%s", diff)
	}
}

// textOf is the text of the model's refusal. A plain sentinel error requires no text.
func textOf(err error) string {
	switch err {
	case nil, holdfast.ErrInvalid, holdfast.ErrNotFound, holdfast.ErrConflict, holdfast.ErrLeaseLost:
		return ""
	}
	return err.Error()
}

// matchErr compares refusals: the same kind, the same text, and the same job if the model names one.
func matchErr(t *rapid.T, what string, got, want error) {
	for _, kind := range []error{holdfast.ErrInvalid, holdfast.ErrNotFound, holdfast.ErrConflict, holdfast.ErrLeaseLost} {
		if errors.Is(got, kind) != errors.Is(want, kind) {
			failSequence(t, what+" has another answer", "the store says %v, the model %v", got, want)
		}
	}
	if (got == nil) != (want == nil) {
		failSequence(t, what+" has another answer", "the store says %v, the model %v", got, want)
	}
	if text := textOf(want); text != "" && got.Error() != text {
		failSequence(t, what+" is refused with another text", "the store says %q, the model %q", got, text)
	}
	var theirs, ours *holdfast.Error
	if errors.As(want, &ours) && !ours.Job.IsZero() && (!errors.As(got, &theirs) || theirs.Job != ours.Job) {
		failSequence(t, what+" is refused without naming the job in the way", "want %v, got %#v", ours.Job, got)
	}
}
