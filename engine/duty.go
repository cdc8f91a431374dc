package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"
)

// A chore is a duty as a function on a beat. It runs for as long as the engine needs it, whatever its function does: an error or a
// panic costs a pause, never the duty.
type chore struct {
	name   string
	beat   time.Duration   // from the end of one round to the start of the next; 0: at once
	jitter bool            // start somewhere within the first beat, so that many processes do not march in step
	sign   <-chan struct{} // a sign starts the next round early
	round  func(ctx context.Context) error
	pace   func() time.Duration // how long to the next round this time, instead of beat
}

// A Duty is a duty of somebody else's that an engine performs beside its own: on a beat, whatever its rounds come to, and with
// all that people may order of one (pause, run now).
type Duty struct {
	Name  string
	Beat  time.Duration                   // from the end of one round to the start of the next
	Round func(ctx context.Context) error // ctx ends when the engine is asked to stop
	Sign  <-chan struct{}                 // may be nil; a sign starts the next round early
}

// keep performs a duty until ctx ends. What can be paused waits until it is known whether it is.
func (e *Engine) keep(ctx context.Context, d chore) {
	s := e.station(d.name)
	if !e.untilOrdered(ctx, d.name) {
		return
	}
	wait := time.Duration(0)
	if d.jitter {
		wait = time.Duration(rand.Int64N(int64(d.beat)))
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	failures := 0
	for {
		urged := false
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-d.sign:
		case <-s.orders:
			urged = true
		}
		wait = d.beat
		if s.paused.Load() && !urged {
			timer.Reset(wait)
			continue
		}
		s.urged.Store(urged)
		if err := s.perform(ctx, d.round); err != nil && ctx.Err() == nil {
			failures++
			e.complain(d.name, err)
			wait = backoff(failures)
			s.expects(time.Now().Add(wait))
			if !sleep(ctx, wait) { // signs do not cut a pause short
				return
			}
			wait = 0
		} else {
			failures = 0
			if d.pace != nil {
				wait = d.pace()
			}
			if wait > 0 {
				s.expects(time.Now().Add(wait))
			}
		}
		timer.Reset(wait)
	}
}

// perform does one round and notes how it went.
func (s *station) perform(ctx context.Context, round func(context.Context) error) error {
	ended := s.begins()
	err := once(ctx, round)
	if err != nil && ctx.Err() != nil {
		ended(nil) // the stop cut it short
	} else {
		ended(err)
	}
	return err
}

// once performs one round. A panic is an error like any other.
func once(ctx context.Context, round func(context.Context) error) (err error) {
	defer recovered(&err)
	return round(ctx)
}

// recovered turns a panic into an error. It is deferred.
func recovered(err *error) {
	if thrown := recover(); thrown != nil {
		*err = fmt.Errorf("a panic: %v\n%s", thrown, debug.Stack())
	}
}

// backoff is the pause after so many failures in a row: from 50 ms doubling to 5 s, half of it by chance.
func backoff(failures int) time.Duration {
	whole := min(5*time.Second, 50*time.Millisecond<<min(failures-1, 10))
	return whole/2 + time.Duration(rand.Int64N(int64(whole/2)))
}

// sleep waits, and is false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// grumbles lets at most one complaint a second through and counts the rest.
type grumbles struct {
	mu    sync.Mutex
	last  time.Time
	quiet int
}

// complain logs trouble that the engine gets over by itself, at most one line a second.
func (e *Engine) complain(where string, err error) {
	if errors.Is(err, context.Canceled) && e.keeping.Err() != nil {
		return // the engine has given up on its own calls
	}
	e.grumbles.mu.Lock()
	now := time.Now()
	if now.Sub(e.grumbles.last) < time.Second {
		e.grumbles.quiet++
		e.grumbles.mu.Unlock()
		return
	}
	quiet := e.grumbles.quiet
	e.grumbles.last, e.grumbles.quiet = now, 0
	e.grumbles.mu.Unlock()
	e.cfg.Log.Warn("trouble; trying again", "event", "trouble", "duty", where, "error", err.Error(), "unlogged", quiet)
}
