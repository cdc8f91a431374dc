package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/holdfastdev/holdfast/failure"
)

// A runner runs attempts that have a slot, each from its slot to its outcome, on goroutines that it reuses.
type runner struct {
	*core
	gate     *breakerGate
	budgets  *ownerBudgets
	leases   *leaseTable
	outcomes *outcomeQueue

	idle       chan *attempt   // hands an attempt to an idle goroutine
	idleCount  atomic.Int64    // the number of idle goroutines
	maxIdle    atomic.Int64    // how many of them are kept: as many as there are slots
	handlerCtx context.Context // the parent of handlers' contexts. It never ends: the lease table cancels each attempt, which is cheaper
}

// start runs an attempt that has a slot, on an idle goroutine or a new one. Goroutines are reused because their stacks have already grown to the
// size that handlers need.
func (r *runner) start(a *attempt) {
	select {
	case r.idle <- a:
	default:
		go r.runAttempts(a)
	}
}

// runAttempts runs one attempt after the other. The goroutine ends when the engine stops, or when as many goroutines are idle as there are slots.
func (r *runner) runAttempts(a *attempt) {
	for a != nil {
		a = r.run(a)
		if a != nil {
			continue
		}
		if r.idleCount.Add(1) <= r.maxIdle.Load() {
			select {
			case a = <-r.idle:
			case <-r.storeCtx.Done():
			}
		}
		r.idleCount.Add(-1)
	}
}

// run runs one attempt from its slot to its outcome, and returns the next attempt for the slot, if any. However the handler ends, by return, panic or
// runtime.Goexit, the slot is freed and the outcome is queued exactly once. After a Goexit this goroutine cannot continue, so the next attempt
// is started on another one.
func (r *runner) run(a *attempt) (next *attempt) {
	o := failure.Outcome{Event: failure.Exited}
	returns := false
	defer func() {
		next = r.finish(a, o)
		if !returns && next != nil { // runtime.Goexit is ending this goroutine
			r.start(next)
		}
	}()
	refusal, refused := r.budgets.reserve(a)
	if !refused {
		refusal, refused = r.checkStart(a)
	}
	if refused {
		o = refusal
	} else {
		o = r.work(a)
	}
	returns = true
	return nil
}

// work calls the handler and turns what it did into an outcome. The outcome of an attempt that was abandoned before it started is dropped by finish.
func (r *runner) work(a *attempt) (o failure.Outcome) {
	bounded, release := a.kind.withTimeout(r.handlerCtx)
	defer release()
	ctx, cancel := context.WithCancelCause(bounded)
	defer cancel(nil)
	if !r.leases.launch(a, ctx, cancel) {
		return o
	}
	defer func() {
		if thrown := recover(); thrown != nil {
			if inChunk, ok := thrown.(*chunkPanic); ok {
				o = failure.Outcome{Event: failure.Panicked, Err: thrownError(inChunk.value), Stack: inChunk.stack}
				return
			}
			o = failure.Outcome{Event: failure.Panicked, Err: thrownError(thrown), Stack: string(debug.Stack())}
		}
	}()
	err := a.kind.call(ctx, a)
	if err == nil {
		err = a.resultErr
	}
	if err == nil {
		return failure.Outcome{Event: failure.Returned, Result: a.result, Enqueue: a.drafts}
	}
	o = failure.Outcome{Event: eventOf(ctx, err), Err: err}
	if o.Event == failure.Interrupted {
		o.Err = context.Cause(ctx)
	}
	return o
}

// eventOf attributes an error to the end of the handler's context, if the context has ended. The error itself cannot tell: handlers report a
// cancelled context in many ways, such as "signal: killed" or "broken pipe".
func eventOf(ctx context.Context, err error) failure.Event {
	if undecoded := (*unreadable)(nil); errors.As(err, &undecoded) {
		return failure.Unreadable
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return failure.Returned
	case errors.Is(cause, ErrCancelled):
		return failure.CancelledByRequest
	case errors.Is(cause, context.DeadlineExceeded):
		return failure.TimedOut
	default: // the engine is stopping or the lease is lost: not a failure of the job
		return failure.Interrupted
	}
}

// thrownError returns the value of a panic as an error.
func thrownError(thrown any) error {
	if err, ok := thrown.(error); ok {
		return err
	}
	return fmt.Errorf("%v", thrown)
}

// finish frees the slot, queues the outcome and returns the next attempt for the slot. The slot is free as soon as the handler has returned; it does
// not wait for the settlement.
func (r *runner) finish(a *attempt, o failure.Outcome) *attempt {
	next, wantMore, valid := r.leases.finish(a)
	if !valid {
		r.cfg.Log.Info("abandoned handler returned; its result is ignored",
			"event", "stray_returned", "job_id", a.lease.ID.String(), "kind", a.lease.Kind)
		return nil
	}
	if wantMore || r.cfg.OwnerSlots > 0 { // with OwnerSlots, a job of the same owner may be waiting for this slot in the store
		signal(r.signals.claim)
	}
	r.outcomes.add(a, o)
	return next
}
