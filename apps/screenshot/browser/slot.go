package browser

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast/apps/screenshot/chromium"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
)

// A slot is the place of one browser in the pool. Its process is replaced from time to time. It is used by one goroutine at a time.
type slot struct {
	pool    *Pool
	process *chromium.Process
	shots   int  // of the process
	sick    bool // the process must not be used again
	tab     *tab // of the last shot, to be thrown away
}

// take takes a picture, in a browser that works.
func (s *slot) take(ctx context.Context, o shot.Options) (*shot.Picture, error) {
	if err := s.ensure(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, code.New(code.BrowserUnavailable, hostOf(o), err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, o.Timeout(), errTime)
	defer cancel()
	s.shots++
	s.tab = newTab(s, o)
	picture, err := s.tab.take(limited)
	if err != nil {
		return nil, s.tab.failed(ctx, limited, err)
	}
	return picture, nil
}

// errTime is the cause of a context that ends with the time limit of a shot.
var errTime = errors.New("the time limit of the shot has passed")

// ensure starts a process if there is none that works. A start that fails is repeated once, from nothing.
func (s *slot) ensure(ctx context.Context) error {
	if s.process != nil {
		select {
		case <-s.process.Ended(): // between two shots
			s.end()
			s.pool.count(func(st *Status) { st.Sick++ })
		default:
			return nil
		}
	}
	err := s.start(ctx)
	if err != nil && ctx.Err() == nil {
		err = s.start(ctx)
	}
	return err
}

func (s *slot) start(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, s.pool.cfg.Limits.Start, fmt.Errorf("it did not answer within %v", s.pool.cfg.Limits.Start))
	defer cancel()
	began := time.Now()
	process, err := chromium.Start(limited, s.pool.chromium())
	if err != nil && ctx.Err() != nil {
		return err // the caller gave up: that says nothing about the browser
	}
	if err != nil {
		if limited.Err() != nil {
			err = fmt.Errorf("%w: %w", err, context.Cause(limited))
		}
		s.pool.cfg.Log.Error("browser did not start", "event", "browser_start_failed", "error", err)
		s.pool.count(func(st *Status) { st.Problem = err.Error() })
		return err
	}
	s.process, s.shots, s.sick = process, 0, false
	s.pool.cfg.Log.Info("browser started", "event", "browser_started", "version", process.Version, "duration_ms", time.Since(began).Milliseconds())
	s.pool.count(func(st *Status) {
		st.Started, st.Running, st.Version, st.Problem = st.Started+1, st.Running+1, process.Version, ""
	})
	return nil
}

// clean throws the context of the last shot away, and the process if it should not be used again.
func (s *slot) clean() {
	if s.tab != nil {
		s.sick = !s.tab.close() || s.sick
		s.tab = nil
	}
	if s.process == nil {
		return
	}
	usage, _ := s.process.Usage()
	recycle := s.pool.cfg.Recycle
	why := ""
	switch {
	case s.sick:
		why = "it did not do what it should"
		s.pool.count(func(st *Status) { st.Sick++ })
	case s.shots >= recycle.Shots:
		why = "number of pictures"
	case time.Since(s.process.Started) >= recycle.Age:
		why = "age"
	case usage.Memory > recycle.Memory:
		why = "memory"
	default:
		return
	}
	if !s.sick {
		s.pool.count(func(st *Status) { st.Recycled++ })
	}
	s.pool.cfg.Log.Info("browser replaced", "event", "browser_replaced", "reason", why, "shots", s.shots, "memory", usage.Memory)
	s.end()
}

// end ends the process.
func (s *slot) end() {
	if s.process == nil {
		return
	}
	s.process.Kill()
	s.process = nil
	s.pool.count(func(st *Status) { st.Running-- })
}
