package engine

import (
	"time"

	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// budgetIdle is how long after the last failed call the retries of a dependency are limited. A full bucket limits nothing, so there is none until a call
// fails.
const budgetIdle = 10 * time.Minute

// holdRetries adds to the change the hold that keeps the retries of a dependency within its budget, or lifts it. Retries take tokens from a bucket that first
// attempts and completed retries fill.
func (b *breakers) holdRetries(d *dependency, next *breakerRecord, cfg dependencyConfig, c *store.Change) {
	now := b.clock.now()
	recentFailure := !next.Failed.IsZero() && now.Sub(next.Failed) < budgetIdle || next.Budget != nil && next.Flow != nil && !next.Flow.Free
	h := store.Hold{Dependency: d.name, Source: store.SourceBudget, Retries: true, Actor: actorSystem}
	probing := next.State == breaker.HalfOpen // the breaker lets so few jobs through that no budget is needed, and a job that waits for its turn to probe would use up tokens
	if cfg.NoBudget || !recentFailure || probing {
		if next.Budget != nil {
			next.Budget = nil
			c.Lift = append(c.Lift, h)
		}
		return
	}
	unsaved := &d.breaker.unsaved
	perSecond, burst, level := cfg.Budget.Rate()
	tokens := cfg.Budget.Deposit(unsaved.firsts, unsaved.good)
	want := store.Rate{PerSecond: perSecond, Burst: burst}
	if next.Budget == nil || *next.Budget != want {
		next.Budget = &want
		h.Rate = &store.Rate{PerSecond: perSecond, Burst: burst, Level: min(burst, level+tokens)}
		h.Reason = "retry budget: retries are limited in proportion to first attempts"
		c.Place = append(c.Place, h)
		return
	}
	if tokens > 0 {
		c.Deposits = append(c.Deposits, store.Deposit{Hold: h, Tokens: tokens})
	}
}
