package engine

import (
	"context"

	"github.com/holdfastdev/holdfast/failure"
)

// expire ends jobs that did not start before their expiry and that no worker claims, because they are held or their queue has no worker.
func (e *Engine) expire(ctx context.Context) error {
	return e.sweep(ctx, e.store.Expire, func(a *attempt) failure.Outcome {
		if a.lease.Corrupt != "" {
			o, _ := e.checkStart(a)
			return o
		}
		return failure.Outcome{Event: failure.Expired}
	})
}
