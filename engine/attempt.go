package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// Causes with which a handler's context ends, besides holdfast.ErrLeaseLost and its deadline.
var (
	// ErrStopping means that the engine is stopping and the grace period is over. The job is released at no cost.
	ErrStopping = errors.New("the worker is stopping")
	// ErrCancelled means that a person cancelled the job.
	ErrCancelled = errors.New("the job was cancelled")
)

// A phase says how far an attempt is. It only ever increases.
type phase uint8

const (
	phaseWaiting phase = iota // the lease is held ahead of a free slot; nothing has run
	phaseRunning              // the attempt has a slot, and its handler runs or is about to
	phaseEnded                // the outcome is known; what the handler still does is ignored
)

// An attempt is one lease on its way from claim to settlement. The lease table guards the fields that change.
type attempt struct {
	maker *attemptMaker
	lease *store.Lease
	kind  *kind       // nil when this engine has no handler for it
	dep   *dependency // the dependency of the job, if this engine keeps its breaker
	batch *batch
	asked time.Time // when the store was asked for the lease, by this process's clock

	retryReserved bool // it is a retry that was counted against its owner's budget before it started

	// Guarded by the lease table.
	phase  phase
	began  time.Time // when its handler started; zero if it did not
	ctx    context.Context
	cancel context.CancelCauseFunc
	cause  error // why the handler was told to stop; nil if it was not

	ctxEndedAt time.Time // when the watch first saw that ctx had ended

	completion atomic.Pointer[completion] // not nil: the handler has completed the job in a transaction. Set under the table's lock, read without it

	written
	chunked *attempt // in what a handler of chunks sees: the attempt itself

	outcome outcome // set when the attempt has ended; used by settle from then on
}

// written is what a handler sets on its attempt. It is read after the handler has returned.
type written struct {
	calledDependency string // as set by SetDependency
	result           json.RawMessage
	resultErr        error
	drafts           []holdfast.Draft
}

// own returns the attempt itself, also for what a handler of chunks sees of it.
func (a *attempt) own() *attempt {
	if a.chunked != nil {
		return a.chunked
	}
	return a
}

// elapsed is the time since the store was asked for the lease. That is at least the time since lease.AsOf, so a check of an expiry against
// lease.AsOf plus elapsed errs on the safe side: nothing starts too late.
func (a *attempt) elapsed() time.Duration { return time.Since(a.asked) }

// beganAt returns when the handler started, by the store's clock. If it did not start, it returns when the job was claimed.
func (a *attempt) beganAt() time.Time {
	if a.began.IsZero() {
		return a.lease.AsOf
	}
	return a.lease.AsOf.Add(a.began.Sub(a.asked))
}

// age returns how long the job's generation has lasted, by the store's clock.
func (a *attempt) age() time.Duration {
	if a.lease.Since.IsZero() {
		return 0
	}
	return max(0, a.lease.AsOf.Sub(a.lease.Since)+a.elapsed())
}

// Attempt returns the number of this attempt since the job was enqueued or manually retried, counting from 1. Unlike that of holdfast.Job it is also right for a
// job that a test makes without a state.
func (j *Job[A]) Attempt() int { return attemptNumber(&j.Lease) }

func attemptNumber(l *store.Lease) int { return l.Failures + l.Crashes + l.Releases + 1 }

// Progress stores how far the work is, in percent from 0 to 100, for people to see. ErrLeaseLost means that another worker has the job: the handler
// should stop.
func (j *Job[A]) Progress(ctx context.Context, percent float64, note string) error {
	if !(percent >= 0 && percent <= 100) {
		return refuse(true, "progress is %v percent: give 0 to 100", percent)
	}
	return j.note(ctx, store.Note{Progress: &holdfast.Progress{Percent: percent, Note: note}})
}

// Checkpoint saves a small cursor, which the next attempt reads with Resume if this one does not complete. It replaces the previous checkpoint.
// ErrLeaseLost means that another worker has the job: nothing was saved, and the handler should stop.
func (j *Job[A]) Checkpoint(ctx context.Context, cursor any) error {
	body, err := json.Marshal(cursor)
	if err != nil {
		return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("the checkpoint cannot be written as JSON: %v", err), Cause: err}
	}
	return j.note(ctx, store.Note{Checkpoint: body})
}

// Resume reads the checkpoint of an earlier attempt into cursor. It returns false if there is none. An error means that there is one and that it cannot be
// decoded into cursor, such as one that another version of the program saved; cursor may have been changed in part.
func (j *Job[A]) Resume(cursor any) (found bool, err error) {
	saved := j.Lease.Checkpoint
	if len(saved) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(saved, cursor); err != nil {
		return false, fmt.Errorf("the checkpoint cannot be decoded into %T: %w", cursor, err)
	}
	return true, nil
}

// SetDependency names the dependency that this attempt calls. A successful call then counts for that dependency's breaker instead of the one that the job
// names. A handler that derives its target from the arguments should use it: then a person who enqueues or edits a job cannot make calls of one
// dependency count for another.
func (j *Job[A]) SetDependency(dependency string) {
	if j.attempt != nil {
		j.attempt.calledDependency = dependency
	}
}

// Log returns the engine's logger with the id, kind, queue and attempt number of the job in every line.
func (j *Job[A]) Log() *slog.Logger {
	log := slog.Default()
	if j.attempt != nil {
		log = j.attempt.maker.cfg.Log
	}
	return log.With("job_id", j.ID.String(), "kind", j.Kind, "queue", j.Queue, "attempt", j.Attempt())
}

// Result stores value as the job's result if the attempt completes. If the value cannot be written as JSON or is too large, the job fails for good,
// because another attempt would produce the same value.
func (j *Job[A]) Result(value any) {
	body, err := json.Marshal(value)
	if err == nil && len(body) > check.MaxArgs {
		err = fmt.Errorf("it has %d bytes and the limit is %d; store the data elsewhere and return a reference", len(body), check.MaxArgs)
	}
	if j.attempt == nil {
		return
	}
	j.attempt.result, j.attempt.resultErr = body, nil
	if err != nil {
		j.attempt.result, j.attempt.resultErr = nil, failure.NeverRetry(failure.WithCode(fmt.Errorf("the result cannot be stored: %w", err), "HANDLER_RESULT"))
	}
}

// Enqueue enqueues jobs together with the end of this one: in the transaction in which the store completes it, or in which CompleteIn does. They exist if and only
// if the attempt completes, and once, however often it is tried. If it fails, is cancelled or loses its lease, they are dropped. Enqueue may be called several
// times.
//
// The jobs may be members of the job's own group (Draft.Group: job.Group), also after the group was sealed, and may wait for its other members. At most 1000 jobs
// with 8 MiB of arguments can be enqueued. ErrInvalid means that a draft is invalid or that there are too many; none of this call is enqueued then. A draft that the
// store refuses when the job completes, for example because it waits for a job that is not a member of its group, fails the job for good, because another attempt
// would enqueue the same.
func (j *Job[A]) Enqueue(drafts ...holdfast.Draft) error {
	var before []holdfast.Draft
	if j.attempt != nil {
		before = j.attempt.drafts
	}
	all := append(slices.Clip(before), drafts...)
	for i := len(before); i < len(all); i++ {
		if all[i].ID.IsZero() {
			all[i].ID = holdfast.NewID()
		}
	}
	settlement := store.Settlement{To: holdfast.Complete, Enqueue: all}
	if err := settlement.Check(); err != nil {
		return err
	}
	if j.attempt != nil {
		j.attempt.drafts = all
	}
	return nil
}

// note writes to the store directly. If the answer is ErrLeaseLost, the handler's context ends at once.
func (j *Job[A]) note(ctx context.Context, n store.Note) error {
	if j.attempt == nil {
		return n.Check()
	}
	if j.attempt.own().completion.Load() != nil {
		return errCompleting
	}
	return j.attempt.maker.note(ctx, j.attempt, n)
}
