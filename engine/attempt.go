package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// Causes with which a handler's context ends, beside holdfast.ErrLeaseLost and its deadline.
var (
	// ErrStopping: the engine stops and the grace is over. The job goes back to its queue for free.
	ErrStopping = errors.New("the worker is stopping")
	// ErrCancelled: a person asked the job to stop.
	ErrCancelled = errors.New("the job was cancelled")
)

// A phase only ever grows.
type phase uint8

const (
	waiting phase = iota // held ahead of a free slot: nothing has run
	working              // its handler occupies a slot
	over                 // its outcome is known; what its handler still does is void
)

// An attempt is one lease on its way through the stations. The book guards what changes.
type attempt struct {
	engine *Engine
	lease  *holdfast.Lease
	kind   *kind       // nil when this engine has no handler for it
	dep    *dependency // what it calls, as far as this engine looks after it
	batch  *batch
	asked  time.Time // when the store was asked for it, by this process's clock

	rationed bool // it is a retry that was counted against its owner's budget before it started

	// Guarded by the book.
	phase  phase
	began  time.Time // when its handler was given the slot
	ctx    context.Context
	cancel context.CancelCauseFunc
	cause  error     // why it was told to stop, if it was
	told   time.Time // when its context was first seen to have ended

	// Written by the handler, read after it returned.
	calls     string // the dependency that it calls, if it said so
	result    json.RawMessage
	resultErr error

	outcome outcome // written when the attempt is over, and the settlement's from then on
}

// elapsed is how much time has passed since the store said lease.AsOf: at least so much, so that nothing runs late.
func (a *attempt) elapsed() time.Duration { return time.Since(a.asked) }

// beganAt is when the handler was given the slot, by the store's clock; when it never was, when the job was claimed.
func (a *attempt) beganAt() time.Time {
	if a.began.IsZero() {
		return a.lease.AsOf
	}
	return a.lease.AsOf.Add(a.began.Sub(a.asked))
}

// age is how long the job's generation has lasted, by the store's clock.
func (a *attempt) age() time.Duration {
	if a.lease.Since.IsZero() {
		return 0
	}
	return max(0, a.lease.AsOf.Sub(a.lease.Since)+a.elapsed())
}

// Number says which attempt this is since the job was enqueued or manually retried, counting from 1.
func (j *Job[A]) Number() int { return numberOf(j.Lease) }

func numberOf(l *holdfast.Lease) int { return l.Failures + l.Crashes + l.Interrupts + 1 }

// Progress tells people how far the work is, in percent from 0 to 100. ErrLeaseLost means the job is in other hands: stop.
func (j *Job[A]) Progress(ctx context.Context, percent float64, note string) error {
	if !(percent >= 0 && percent <= 100) {
		return refuse(true, "progress of %v percent: give 0 to 100", percent)
	}
	return j.note(ctx, holdfast.Note{Progress: &holdfast.Progress{Percent: percent, Note: note}})
}

// Checkpoint saves a small cursor that the next attempt receives if this one does not complete. It replaces the last one.
func (j *Job[A]) Checkpoint(ctx context.Context, cursor any) error {
	body, err := json.Marshal(cursor)
	if err != nil {
		return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf("the checkpoint cannot be written as JSON: %v", err), Cause: err}
	}
	return j.note(ctx, holdfast.Note{Checkpoint: body})
}

// Resume reads what an earlier attempt saved, and reports whether there was something it could read.
func (j *Job[A]) Resume(cursor any) bool {
	saved := j.Lease.Checkpoint
	return len(saved) > 0 && json.Unmarshal(saved, cursor) == nil
}

// Calls names the dependency that this attempt really calls. Its breaker hears of a good call, and not the breaker of the
// dependency that the job names. A handler whose target follows from the arguments says so: whoever enqueues or edits a job then
// cannot have calls of one dependency counted for another.
func (j *Job[A]) Calls(dependency string) { j.attempt.calls = dependency }

// Result is kept with the job if the attempt completes. A value that cannot be kept fails the attempt for good, because
// another attempt would make the same one.
func (j *Job[A]) Result(value any) {
	body, err := json.Marshal(value)
	if err == nil && len(body) > holdfast.MaxArgs {
		err = fmt.Errorf("it has %d bytes and the limit is %d; store the data elsewhere and return a reference", len(body), holdfast.MaxArgs)
	}
	j.attempt.result, j.attempt.resultErr = body, nil
	if err != nil {
		j.attempt.result, j.attempt.resultErr = nil, failure.NeverRetry(failure.WithCode(fmt.Errorf("the result cannot be kept: %w", err), "HANDLER_RESULT"))
	}
}

// note speaks to the store directly. Learning of a lost lease this way ends the handler's context at once.
func (j *Job[A]) note(ctx context.Context, n holdfast.Note) error {
	a := j.attempt
	n.Batch, n.Job, n.Token = a.lease.Batch, a.lease.ID, a.lease.Token
	answers, err := a.engine.store.Note(ctx, []holdfast.Note{n})
	if err == nil && len(answers) == 1 {
		err = answers[0]
	}
	if errors.Is(err, holdfast.ErrLeaseLost) {
		a.engine.book.stop(a, holdfast.ErrLeaseLost)
	}
	return err
}
