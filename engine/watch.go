package engine

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// watch looks after handlers without asking the store: one whose lease can no longer be trusted is told to stop, and one
// that ignores the end of its context beyond Patience is given up and its slot replaced. What waits too long for a slot
// goes back to its queue, where others can have it.
func (e *Engine) watch(context.Context) error {
	now := time.Now()
	distrusted, overdue := e.book.inspect(now, e.cfg.Patience)
	for _, a := range distrusted {
		if e.book.stop(a, holdfast.ErrLeaseLost) {
			e.end(a, interruption(holdfast.ErrLeaseLost))
		}
	}
	for _, a := range overdue {
		e.giveUp(a)
	}
	for _, a := range e.book.stale(now.Add(-e.cfg.Lease / 6)) {
		e.end(a, failure.Outcome{Event: failure.Interrupted, Err: errNoSlot})
	}
	return nil
}

// astray counts the handlers that were given up and have not returned since.
func (b *book) astray() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.strays
}

// stale withdraws what has waited for a slot since that time, and forgets that handlers were ever quick.
func (b *book) stale(since time.Time) (withdrawn []*attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.queue {
		if a.phase == waiting && a.asked.Before(since) {
			withdrawn = append(withdrawn, a)
		}
	}
	if len(withdrawn) > 0 {
		b.conclude(withdrawn)
		b.ahead -= len(withdrawn)
		b.spell, b.returned, b.spent = 0, 0, 0
	}
	return withdrawn
}

// watchBeat is fine enough for the margin of the lease and for Patience.
func (c *Config) watchBeat() time.Duration {
	return max(time.Millisecond, min(time.Second, c.margin()/2, c.Patience/4))
}

// giveUp settles an attempt over the head of its handler. Go cannot end a goroutine, so the handler is left to itself.
func (e *Engine) giveUp(a *attempt) {
	next, cause := e.book.abandon(a)
	if cause == nil {
		return
	}
	e.cfg.Log.Error("a handler ignores the end of its context: its slot was replaced and its goroutine left to itself",
		"event", "stray", "job_id", a.lease.ID.String(), "kind", a.lease.Kind, "queue", a.lease.Queue, "cause", cause.Error(), "strays", e.book.astray())
	if next != nil {
		e.start(next)
	}
	nudge(e.wakes)
	e.end(a, interruption(cause))
}

// inspect finds the attempts whose lease is no longer trusted, and those whose context ended longer ago than patience.
func (b *book) inspect(now time.Time, patience time.Duration) (distrusted, overdue []*attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for a := range b.held {
		if a.phase == over {
			continue
		}
		if a.cause == nil && !now.Before(a.batch.trusted) {
			distrusted = append(distrusted, a)
		}
		if a.ctx == nil || a.ctx.Err() == nil {
			continue
		}
		if a.told.IsZero() {
			a.told = now
		}
		if now.Sub(a.told) >= patience {
			overdue = append(overdue, a)
		}
	}
	return distrusted, overdue
}
