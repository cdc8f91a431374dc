package engine

import (
	"context"
	"time"
)

const (
	maxSequence = 1000 // pages in one go
	maxConclude = 1000 // events in one go
	maxRepeat   = 100  // times in one round: then others may come first

	// liveBeat is how soon what happened is told, and a group settled, while things happen; an idle engine looks less often.
	liveBeat = 100 * time.Millisecond
	idleBeat = 800 * time.Millisecond
)

// A rhythm is quick while there is something to do and slows down when there is not.
type rhythm struct {
	ended time.Time
	pause time.Duration
}

// hold lets a round that a sign has started wait until a beat has passed since the last one: signs come by the hundred.
func (r *rhythm) hold(ctx context.Context) bool {
	if since := time.Since(r.ended); since < liveBeat {
		return sleep(ctx, liveBeat-since)
	}
	return ctx.Err() == nil
}

// kept notes that a round has ended, and whether there was something to do.
func (r *rhythm) kept(busy bool) {
	r.ended = time.Now()
	if r.pause = min(idleBeat, max(liveBeat, 2*r.pause)); busy {
		r.pause = liveBeat
	}
}

func (r *rhythm) next() time.Duration { return r.pause }

// repeat asks the store until it has done all there is to do, or as often as is decent, and reports whether there was something.
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
	ctx, done := e.call(e.cfg.Lease)
	defer done()
	return step(ctx, limit)
}

// sequence has what happened numbered, so that the feed tells it and groups hear of it.
func (e *Engine) sequence(ctx context.Context) error {
	if !e.sequencing.hold(ctx) {
		return nil
	}
	busy, err := e.repeat(ctx, maxSequence, e.store.Sequence)
	e.sequencing.kept(busy)
	if busy {
		nudge(e.endings)
	}
	return err
}
