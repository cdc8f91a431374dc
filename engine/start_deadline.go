package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
)

// maxBreach limits how many missed deadlines one store call returns.
const maxBreach = 100

// startDeadlines remembers until when a start deadline that this process has set may be missed. The duty "deadline" asks the store only until then, and
// otherwise rarely. A verdict may give a job a deadline (Verdict.Within) by which its next attempt must start.
type startDeadlines struct {
	until atomic.Int64 // by this process's clock, in nanoseconds
	runs  int          // of the duty
}

// extend records a new deadline. Two seconds more leave time for the duty to find it.
func (d *startDeadlines) extend(within time.Duration) {
	until := time.Now().Add(within + 2*time.Second).UnixNano()
	for {
		was := d.until.Load()
		if until <= was || d.until.CompareAndSwap(was, until) {
			return
		}
	}
}

// checkDeadlines finds the jobs whose next attempt missed its start deadline. Every fifth run also asks when this process has set no deadline, to find
// those of processes that are gone.
func (e *Engine) checkDeadlines(ctx context.Context) error {
	d := &e.startDeadlines
	d.runs++
	if time.Now().UnixNano() > d.until.Load() && d.runs%5 != 1 {
		return nil
	}
	for ctx.Err() == nil {
		found, err := e.breachOnce()
		if err != nil {
			return err
		}
		for _, id := range found {
			e.deadlineMissed(id)
		}
		if len(found) < maxBreach {
			return nil
		}
	}
	return nil
}

func (e *Engine) breachOnce() ([]holdfast.ID, error) {
	ctx, done := e.storeContext(e.cfg.Lease)
	defer done()
	return e.store.MissedDeadlines(ctx, maxBreach)
}

// deadlineMissed logs a missed deadline and calls Config.OnDeadlineMissed. The store returns each missed deadline to one caller only.
func (e *Engine) deadlineMissed(id holdfast.ID) {
	e.cfg.Log.Warn("job missed its start deadline", "event", "breach", "job_id", id.String())
	if e.cfg.OnDeadlineMissed != nil {
		e.queueHook("breached", func(ctx context.Context) { e.cfg.OnDeadlineMissed(ctx, id) })
	}
}
