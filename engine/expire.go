package engine

import (
	"context"

	"github.com/holdfastdev/holdfast/failure"
)

// expire ends jobs that did not start before their expiry and that no worker claims, because they are held or their queue has no worker.
func (s *sweeper) expire(ctx context.Context) error {
	return s.sweep(ctx, s.store.Expire, func(a *attempt) failure.Outcome {
		if a.lease.Corrupt != "" {
			return unreadableOutcome(a.lease)
		}
		return failure.Outcome{Event: failure.Expired}
	})
}
