package engine

import (
	"context"

	"github.com/holdfastdev/holdfast/failure"
)

// expire ends jobs that could not start in time and that nobody claims, because their queue is held or has no worker.
func (e *Engine) expire(ctx context.Context) error {
	return e.sweep(ctx, e.store.Expire, func(a *attempt) failure.Outcome {
		if a.lease.Corrupt != "" {
			o, _ := e.gate(a)
			return o
		}
		return failure.Outcome{Event: failure.Expired}
	})
}
