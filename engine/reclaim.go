package engine

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// maxSweep limits how many leases one store call takes over.
const maxSweep = 200

// reclaim takes over jobs whose leases have expired, because their workers stopped renewing, and settles each as failure.Decide says. The store gives
// the job a new token when it hands over the lease, so a result of the former worker is refused from then on.
func (e *Engine) reclaim(ctx context.Context) error {
	return e.sweep(ctx, e.store.Reclaim, func(a *attempt) failure.Outcome {
		lease := a.lease
		switch {
		case lease.Corrupt != "":
			o, _ := e.checkStart(a)
			return o
		case lease.Lost == e.worker && !e.leases.hasLocalAttempt(lease.ID):
			// This worker claimed the job but never got the store's answer, so no handler was started and no crash is charged.
			return failure.Outcome{Event: failure.Interrupted, Err: errClaimLost}
		}
		o := failure.Outcome{Event: failure.Lost}
		if !lease.StartedAt.IsZero() {
			o.Took = max(0, lease.AsOf.Sub(lease.StartedAt))
		}
		return o
	})
}

// sweep takes over leases until the store has no more, and queues the outcome of each for settling. It stops at the same number of unsettled outcomes
// as claiming does.
func (e *Engine) sweep(ctx context.Context, take func(context.Context, store.Claim) ([]store.Lease, error), outcomeOf func(*attempt) failure.Outcome) error {
	for ctx.Err() == nil && e.leases.unsettledCount() < maxUnsettled {
		asked := time.Now()
		leases, err := e.take(take)
		if err != nil {
			return err
		}
		attempts := e.newAttempts(leases, asked)
		e.leases.admitEnded(attempts, e.trustedUntil(asked))
		for _, a := range attempts {
			o := outcomeOf(a)
			e.queueOutcome(a, o)
		}
		if len(leases) < maxSweep {
			return nil
		}
	}
	return nil
}

func (e *Engine) take(take func(context.Context, store.Claim) ([]store.Lease, error)) ([]store.Lease, error) {
	ctx, done := e.storeContext(e.cfg.Lease)
	defer done()
	return take(ctx, store.Claim{Worker: e.worker, Limit: maxSweep, Lease: e.cfg.Lease})
}

// hasLocalAttempt reports whether this process itself claimed the job and still holds that lease, as opposed to one it has taken over.
func (t *leaseTable) hasLocalAttempt(id holdfast.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := range t.held {
		if a.lease.ID == id && a.lease.Lost == "" {
			return true
		}
	}
	return false
}

func (t *leaseTable) unsettledCount() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unsettled
}
