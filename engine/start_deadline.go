package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
)

// maxMissedDeadlines limits how many missed deadlines one store call returns.
const maxMissedDeadlines = 100

// startDeadlines remembers until when a start deadline that this process has set may be missed. The duty "deadline" asks the store only until then, and
// otherwise rarely. A verdict may give a job a deadline (Verdict.StartWithin) by which its next attempt must start.
type startDeadlines struct {
	*core
	announcer *announcer

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

// run finds the jobs whose next attempt missed its start deadline. Every fifth run also asks when this process has set no deadline, to find
// those of processes that are gone.
func (d *startDeadlines) run(ctx context.Context) error {
	d.runs++
	if time.Now().UnixNano() > d.until.Load() && d.runs%5 != 1 {
		return nil
	}
	for ctx.Err() == nil {
		found, err := d.missed()
		if err != nil {
			return err
		}
		for _, id := range found {
			d.announce(id)
		}
		if len(found) < maxMissedDeadlines {
			return nil
		}
	}
	return nil
}

func (d *startDeadlines) missed() ([]holdfast.ID, error) {
	ctx, done := d.storeContext(d.cfg.Lease)
	defer done()
	return d.store.MissedDeadlines(ctx, maxMissedDeadlines)
}

// announce logs a missed deadline and calls Config.OnDeadlineMissed. The store returns each missed deadline to one caller only.
func (d *startDeadlines) announce(id holdfast.ID) {
	d.cfg.Log.Warn("job missed its start deadline", "event", "deadline_missed", "job_id", id.String())
	if d.cfg.OnDeadlineMissed != nil {
		d.announcer.queue("deadline missed", func(ctx context.Context) { d.cfg.OnDeadlineMissed(ctx, id) })
	}
}
