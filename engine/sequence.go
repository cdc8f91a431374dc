package engine

import (
	"context"
	"time"
)

const (
	maxSequence = 1000 // pages of events in one call
	maxConclude = 1000 // events in one call
	maxRepeat   = 100  // calls in one run

	// liveInterval is how soon events appear in the feed and groups are settled while there are events. An idle engine checks less often, at up to
	// idleInterval.
	liveInterval = 100 * time.Millisecond
	idleInterval = 800 * time.Millisecond
)

// An adaptiveInterval is the interval of a duty that runs often while there is something to do: liveInterval after a run that found something, twice the
// last one otherwise, up to idleInterval. One goroutine uses it.
type adaptiveInterval struct {
	lastEnd time.Time
	current time.Duration
}

// wait delays a run that a signal has started until liveInterval has passed since the last one: under load there are hundreds of signals a second. It
// returns false if ctx ended first.
func (i *adaptiveInterval) wait(ctx context.Context) bool {
	if since := time.Since(i.lastEnd); since < liveInterval {
		return sleep(ctx, liveInterval-since)
	}
	return ctx.Err() == nil
}

// runEnded records the end of a run, and whether it found something to do.
func (i *adaptiveInterval) runEnded(busy bool) {
	i.lastEnd = time.Now()
	if i.current = min(idleInterval, max(liveInterval, 2*i.current)); busy {
		i.current = liveInterval
	}
}

// next returns the interval to the next run.
func (i *adaptiveInterval) next() time.Duration { return i.current }

// repeat calls step until it processes fewer than limit, which means that nothing is left, or maxRepeat times, so that the duty remains responsive to
// pauses and stops. It reports whether there was something to do.
func (e *Engine) repeat(ctx context.Context, limit int, step func(context.Context, int) (int, error)) (bool, error) {
	busy := false
	for range maxRepeat {
		if ctx.Err() != nil {
			break
		}
		n, err := e.stepOnce(limit, step)
		busy = busy || n > 0
		if err != nil || n < limit {
			return busy, err
		}
	}
	return busy, nil
}

func (e *Engine) stepOnce(limit int, step func(context.Context, int) (int, error)) (int, error) {
	ctx, done := e.storeContext(e.cfg.Lease)
	defer done()
	return step(ctx, limit)
}

// sequence has the store number new events, so that they appear in the feed and groups are evaluated.
func (e *Engine) sequence(ctx context.Context) error {
	if !e.sequenceInterval.wait(ctx) {
		return nil
	}
	busy, err := e.repeat(ctx, maxSequence, e.store.Sequence)
	e.sequenceInterval.runEnded(busy)
	if busy {
		signal(e.signals.groups)
	}
	return err
}
