package engine

import (
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// checkStart decides whether an attempt may start. If not, refused is true and o is its outcome: an unreadable or expired job fails, as does one whose open
// breaker is in fail-fast mode; everything else is released at no cost. The lease is checked against this process's clock, so a handler never starts on a lease
// that another worker may have reclaimed.
func (e *Engine) checkStart(a *attempt) (o failure.Outcome, refused bool) {
	lease := a.lease
	switch {
	case lease.Corrupt != "":
		return unreadableOutcome(lease), true
	case !lease.ExpireAt.IsZero() && !lease.AsOf.Add(a.elapsed()).Before(lease.ExpireAt):
		return failure.Outcome{Event: failure.Expired}, true
	case a.kind == nil:
		return failure.Outcome{Event: failure.Unhandled}, true
	case !e.leases.isTrusted(a, time.Now()):
		return failure.Outcome{Event: failure.Interrupted, Err: holdfast.ErrLeaseLost}, true
	case a.dep != nil || lease.Dependency != "":
		return e.checkBreaker(a)
	}
	return failure.Outcome{}, false
}

// unreadableOutcome is the outcome of a job that the store cannot read.
func unreadableOutcome(lease *store.Lease) failure.Outcome {
	return failure.Outcome{Event: failure.Unreadable, Err: errors.New(lease.Corrupt)}
}

// checkBreaker refuses an attempt that would call a dependency whose breaker is open, or before it is its turn to probe. All other holds took effect
// at the claim. The breaker is checked again here because it may have opened since, while the job waited for a slot.
func (e *Engine) checkBreaker(a *attempt) (o failure.Outcome, refused bool) {
	d := e.dependencyOf(a)
	if d == nil {
		return o, false
	}
	s := d.view.Load()
	if s == nil || !s.open() {
		return e.checkTurn(a, d, s)
	}
	if !s.fast && a.lease.AsOf.After(s.since.Add(breakerMaxAge)) {
		// The store let the job through, so the breaker has probably changed since this process last read it: read it again.
		e.breakersStale.Store(true)
		signal(e.signals.breakers)
	}
	return s.refusal(), true
}

// refusal is the outcome of an attempt that would call a dependency with an open breaker: in fail-fast mode it fails at once, otherwise it is
// released at no cost.
func (s *breakerView) refusal() failure.Outcome {
	if s.fast {
		return failure.Outcome{Event: failure.FastFailed, Code: s.code, Err: errors.New(s.text)}
	}
	return failure.Outcome{Event: failure.Held, Err: errors.New(s.text)}
}

// withdraw ends the attempts that wait for a slot and would call the dependency. The caller queues their outcomes.
func (t *leaseTable) withdraw(d *dependency) (withdrawn []*attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.prefetchQueue {
		if a.phase == phaseWaiting && (a.dep == d || a.lease.Dependency == d.name) {
			withdrawn = append(withdrawn, a)
		}
	}
	t.markEnded(withdrawn)
	t.prefetched -= len(withdrawn)
	return withdrawn
}

// isTrusted reports whether a's lease is certainly still held by this worker.
func (t *leaseTable) isTrusted(a *attempt, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Before(a.batch.trustedUntil)
}
