package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// start gives an attempt that has a slot a goroutine: one that rests, or a new one. A goroutine is kept from attempt to
// attempt because its stack has grown to what handlers need.
func (e *Engine) start(a *attempt) {
	select {
	case e.rested <- a:
	default:
		go e.labour(a)
	}
}

// labour runs one attempt after the other until the engine lets go, or until more goroutines rest than there are slots.
func (e *Engine) labour(a *attempt) {
	for a != nil {
		a = e.run(a)
		if a != nil {
			continue
		}
		if e.resting.Add(1) <= int64(e.cfg.Slots) {
			select {
			case a = <-e.rested:
			case <-e.keeping.Done():
			}
		}
		e.resting.Add(-1)
	}
}

// run is an attempt from its slot to its outcome. However the handler leaves, by return, panic or runtime.Goexit, the slot
// is freed and the outcome handed on, once. It answers who is next on the slot.
func (e *Engine) run(a *attempt) (next *attempt) {
	o := failure.Outcome{Event: failure.Exited}
	returns := false
	defer func() {
		next = e.finish(a, o)
		if !returns && next != nil { // this goroutine is at its end
			e.start(next)
		}
	}()
	refusal, refused := e.ration(a)
	if !refused {
		refusal, refused = e.gate(a)
	}
	if refused {
		o = refusal
	} else {
		o = e.work(a)
	}
	returns = true
	return nil
}

// work lets the handler work and puts what it did into an outcome.
func (e *Engine) work(a *attempt) (o failure.Outcome) {
	bounded, release := a.kind.bound(e.working)
	defer release()
	ctx, cancel := context.WithCancelCause(bounded)
	defer cancel(nil)
	if !e.book.launch(a, ctx, cancel) {
		return o
	}
	defer func() {
		if thrown := recover(); thrown != nil {
			o = failure.Outcome{Event: failure.Panicked, Err: thrownError(thrown), Stack: string(debug.Stack())}
		}
	}()
	err := a.kind.handler(ctx, &Raw{Lease: a.lease, Args: a.lease.Args, attempt: a})
	if err == nil {
		err = a.resultErr
	}
	if err == nil {
		return failure.Outcome{Event: failure.Returned, Result: a.result}
	}
	o = failure.Outcome{Event: eventOf(ctx, err), Err: err}
	if o.Event == failure.Interrupted {
		o.Err = context.Cause(ctx)
	}
	return o
}

// eventOf puts an error down to the end of the handler's context, if that came first. Handlers report a cancelled context
// in so many ways ("signal: killed", "broken pipe") that the error itself proves nothing.
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
	default: // stopping, or the lease is lost: through no fault of the job
		return failure.Interrupted
	}
}

func thrownError(thrown any) error {
	if err, ok := thrown.(error); ok {
		return err
	}
	return fmt.Errorf("%v", thrown)
}

// finish frees the slot, hands the outcome on, and answers who is next. A slot is free when its handler has returned, not
// when the store has answered.
func (e *Engine) finish(a *attempt, o failure.Outcome) *attempt {
	next, hungry, valid := e.book.finish(a)
	if !valid {
		e.cfg.Log.Info("a handler returned long after its context ended; what it returned is void",
			"event", "stray_returned", "job_id", a.lease.ID.String(), "kind", a.lease.Kind)
		return nil
	}
	if hungry || e.cfg.OwnerSlots > 0 { // a job of the same owner may have waited for this slot
		nudge(e.wakes)
	}
	e.end(a, o)
	return next
}

// end hands an outcome on to be settled.
func (e *Engine) end(a *attempt, o failure.Outcome) {
	if !a.began.IsZero() {
		o.Took = time.Since(a.began)
	}
	o.Age = a.age()
	a.outcome = outcome{attempt: a, Outcome: o}
	e.outbox.put(&a.outcome)
}

// handBack returns leases whose handlers have not started to their queues, for free.
func (e *Engine) handBack(attempts []*attempt) {
	for _, a := range attempts {
		e.end(a, failure.Outcome{Event: failure.Interrupted, Err: ErrStopping})
	}
}

// interruption is the outcome of an attempt that was withdrawn or given up for that cause.
func interruption(cause error) failure.Outcome {
	switch {
	case errors.Is(cause, ErrCancelled):
		return failure.Outcome{Event: failure.CancelledByRequest, Err: cause}
	case errors.Is(cause, context.DeadlineExceeded):
		return failure.Outcome{Event: failure.TimedOut, Err: fmt.Errorf("the handler ignored the end of its context and was given up: %w", cause)}
	case errors.Is(cause, holdfast.ErrLeaseLost):
		return failure.Outcome{Event: failure.Interrupted, Err: cause}
	}
	return failure.Outcome{Event: failure.Interrupted, Err: ErrStopping}
}
