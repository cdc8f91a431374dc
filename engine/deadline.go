package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
)

// maxBreach bounds one look for broken promises.
const maxBreach = 100

// promises remembers until when a promise of this process may be broken, so that nobody looks for what nobody promised.
type promises struct {
	until atomic.Int64 // by this process's clock, in nanoseconds
	round int
}

func (p *promises) made(within time.Duration) {
	until := time.Now().Add(within + 2*time.Second).UnixNano()
	for {
		was := p.until.Load()
		if until <= was || p.until.CompareAndSwap(was, until) {
			return
		}
	}
}

// breaches finds the jobs whose next attempt did not start as soon as was promised. Promises of processes that are gone are
// looked for too, more seldom.
func (e *Engine) breaches(ctx context.Context) error {
	p := &e.promises
	p.round++
	if time.Now().UnixNano() > p.until.Load() && p.round%5 != 1 {
		return nil
	}
	for ctx.Err() == nil {
		found, err := e.breachOnce()
		if err != nil {
			return err
		}
		for _, id := range found {
			e.breached(id)
		}
		if len(found) < maxBreach {
			return nil
		}
	}
	return nil
}

func (e *Engine) breachOnce() ([]holdfast.ID, error) {
	ctx, done := e.call(e.cfg.Lease)
	defer done()
	return e.store.Breach(ctx, maxBreach)
}

func (e *Engine) breached(id holdfast.ID) {
	e.cfg.Log.Warn("a job's next attempt did not start as soon as was promised", "event", "breach", "job_id", id.String())
	if e.cfg.Breached != nil {
		e.tellLater("breached", func(ctx context.Context) { e.cfg.Breached(ctx, id) })
	}
}
