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

// A sweeper ends jobs that no worker runs: those whose leases have expired and those that did not start in time.
type sweeper struct {
	*core
	attempts *attemptMaker
	leases   *leaseTable
	outcomes *outcomeQueue
}

// reclaim takes over jobs whose leases have expired, because their workers stopped renewing, and settles each as failure.Decide says. The store gives
// the job a new token when it hands over the lease, so a result of the former worker is refused from then on.
func (s *sweeper) reclaim(ctx context.Context) error {
	return s.sweep(ctx, s.store.Reclaim, func(a *attempt) failure.Outcome {
		lease := a.lease
		switch {
		case lease.Corrupt != "":
			return unreadableOutcome(lease)
		case lease.Lost == s.worker && !s.leases.hasLocalAttempt(lease.ID):
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
func (s *sweeper) sweep(ctx context.Context, take func(context.Context, store.Claim) ([]store.Lease, error), outcomeOf func(*attempt) failure.Outcome) error {
	for ctx.Err() == nil && s.leases.unsettledCount() < maxUnsettled {
		asked := time.Now()
		leases, err := s.take(take)
		if err != nil {
			return err
		}
		attempts := s.attempts.newAttempts(leases, asked)
		s.leases.admitEnded(attempts, s.cfg.trustedUntil(asked))
		for _, a := range attempts {
			o := outcomeOf(a)
			s.outcomes.add(a, o)
		}
		if len(leases) < maxSweep {
			return nil
		}
	}
	return nil
}

func (s *sweeper) take(take func(context.Context, store.Claim) ([]store.Lease, error)) ([]store.Lease, error) {
	ctx, done := s.storeContext(s.cfg.Lease)
	defer done()
	return take(ctx, store.Claim{Worker: s.worker, Limit: maxSweep, Lease: s.cfg.Lease})
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
