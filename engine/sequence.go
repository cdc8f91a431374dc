package engine

import (
	"context"
	"time"
)

const (
	maxSequence = 1000 // pages of events in one call
	maxAdvance  = 1000 // events in one call

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

// A sequencer numbers new events.
type sequencer struct {
	*core
	interval adaptiveInterval
}

// run has the store number new events, so that they appear in the feed and groups are evaluated.
func (s *sequencer) run(ctx context.Context) error {
	if !s.interval.wait(ctx) {
		return nil
	}
	busy, err := s.repeat(ctx, maxSequence, s.store.Sequence)
	s.interval.runEnded(busy)
	if busy {
		signal(s.signals.groups)
	}
	return err
}
