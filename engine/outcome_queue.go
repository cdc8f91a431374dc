package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// maxSettle limits the settlements of one store call.
const maxSettle = 500

// An outcome is how an attempt ended, together with the verdict on it, until the store has its settlement.
type outcome struct {
	attempt *attempt
	failure.Outcome
	verdict failure.Verdict
}

// An outcomeQueue collects outcomes while the store answers the previous call. There is no timer: a single outcome is written at once, and under load
// hundreds are written in one call. It is safe for concurrent use.
type outcomeQueue struct {
	mu     sync.Mutex
	all    []*outcome
	closed bool
	ready  chan struct{} // signalled by put and close
}

func newOutcomeQueue() *outcomeQueue { return &outcomeQueue{ready: make(chan struct{}, 1)} }

// add completes an attempt's outcome and queues it to be settled. It is called exactly once for each attempt, by the caller that ended it.
func (q *outcomeQueue) add(a *attempt, o failure.Outcome) {
	if !a.began.IsZero() {
		o.Took = time.Since(a.began)
	}
	o.Age = a.age()
	a.outcome = outcome{attempt: a, Outcome: o}
	q.put(&a.outcome)
}

// releaseAll releases attempts whose handlers have not started, at no cost to their jobs.
func (q *outcomeQueue) releaseAll(attempts []*attempt, cause error) {
	for _, a := range attempts {
		q.add(a, failure.Outcome{Event: failure.Interrupted, Err: cause})
	}
}

func (q *outcomeQueue) put(o *outcome) {
	q.mu.Lock()
	q.all = append(q.all, o)
	q.mu.Unlock()
	signal(q.ready)
}

// close makes take return nil instead of waiting when the queue is empty. Outcomes that are put later are still taken.
func (q *outcomeQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	signal(q.ready)
}

// take waits for outcomes and returns the oldest ones, at most maxSettle. It returns none when the queue is closed and empty, or when ctx has ended.
func (q *outcomeQueue) take(ctx context.Context) []*outcome {
	for {
		q.mu.Lock()
		n := min(len(q.all), maxSettle)
		taken := q.all[:n:n]
		q.all = q.all[n:]
		closed := q.closed
		q.mu.Unlock()
		if n > 0 || closed || ctx.Err() != nil {
			return taken
		}
		select {
		case <-q.ready:
		case <-ctx.Done():
		}
	}
}

// interruption returns the outcome of an attempt that was withdrawn or abandoned for that cause.
func interruption(cause error) failure.Outcome {
	switch {
	case errors.Is(cause, ErrCancelled):
		return failure.Outcome{Event: failure.CancelledByRequest, Err: cause}
	case errors.Is(cause, context.DeadlineExceeded):
		return failure.Outcome{Event: failure.TimedOut, Err: fmt.Errorf("the handler ignored the end of its context and was abandoned: %w", cause)}
	case errors.Is(cause, holdfast.ErrLeaseLost):
		return failure.Outcome{Event: failure.Interrupted, Err: cause}
	}
	return failure.Outcome{Event: failure.Interrupted, Err: ErrStopping}
}
