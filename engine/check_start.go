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
func (r *runner) checkStart(a *attempt) (o failure.Outcome, refused bool) {
	lease := a.lease
	switch {
	case lease.Corrupt != "":
		return unreadableOutcome(lease), true
	case !lease.ExpireAt.IsZero() && !lease.AsOf.Add(a.elapsed()).Before(lease.ExpireAt):
		return failure.Outcome{Event: failure.Expired}, true
	case a.kind == nil:
		return failure.Outcome{Event: failure.Unhandled}, true
	case !r.leases.isTrusted(a, time.Now()):
		return failure.Outcome{Event: failure.Interrupted, Err: holdfast.ErrLeaseLost}, true
	case a.dep != nil || lease.Dependency != "":
		return r.gate.check(a)
	}
	return failure.Outcome{}, false
}

// unreadableOutcome is the outcome of a job that the store cannot read.
func unreadableOutcome(lease *store.Lease) failure.Outcome {
	return failure.Outcome{Event: failure.Unreadable, Err: errors.New(lease.Corrupt)}
}

// isTrusted reports whether a's lease is certainly still held by this worker.
func (t *leaseTable) isTrusted(a *attempt, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return now.Before(a.batch.trustedUntil)
}
