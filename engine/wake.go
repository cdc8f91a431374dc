package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast/internal/dutypace"
)

// wake waits for a wake-up from the store and signals the duty concerned: there may be jobs to claim, or a job to cancel. Wake-ups are hints: if all of
// them are lost, the duties "claim" and "renew" find the same things at their next interval.
func (c *claimer) wake(ctx context.Context) error {
	patience, _ := dutypace.From(ctx)(c.cfg.Poll)
	within, cancel := context.WithTimeout(ctx, patience+c.cfg.Lease)
	defer cancel()
	heard, err := c.store.Await(within, c.leases.beginAwait(cancel), patience)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		return nil // the queues have changed: wait for the new ones
	}
	if err != nil {
		return err
	}
	if heard.Work {
		signal(c.signals.claim)
		signal(c.signals.feed)
	}
	if heard.Cancel {
		signal(c.signals.cancel)
	}
	return nil
}

const trickleInterval = 100 * time.Millisecond

// trickle starts claims at a short interval while the token bucket of some hold is full before the next poll, or while a breaker is recovering. Otherwise the tokens
// beyond the burst would be lost and the rate not reached.
func (c *claimer) trickle(context.Context) error {
	if c.limited.hasSmallBurst.Load() || c.limited.recovering.Load() {
		signal(c.signals.claim)
	}
	return nil
}
