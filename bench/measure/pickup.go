package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// warmup is how many jobs pass before the first one that counts: the worker has started by then, and statements are prepared.
const warmup = 10

// longest is how long a single job may take to be picked up before the run is given up.
const longest = 30 * time.Second

// pickup adds single jobs while a worker is idle and takes the time until their handlers start. Both processes read the same
// clock.
func (s *session) pickup(ctx context.Context) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	started, stop, err := s.idle(ctx)
	if err != nil {
		return Result{}, err
	}
	result := Result{Jobs: s.jobs}
	begin := time.Now()
	took := make([]float64, 0, s.jobs)
	for i := range warmup + s.jobs {
		ms, err := s.once(ctx, started)
		if err != nil {
			return Result{}, errors.Join(err, stop())
		}
		if i >= warmup {
			took = append(took, ms)
		}
		time.Sleep(10*time.Millisecond + time.Duration(rand.Int64N(int64(20*time.Millisecond))))
	}
	result.Seconds = time.Since(begin).Seconds()
	result.spread(took)
	return result, stop()
}

// spread says how milliseconds are spread.
func (r *Result) spread(took []float64) {
	slices.Sort(took)
	r.P50, r.P95, r.P99 = percentile(took, 50), percentile(took, 95), percentile(took, 99)
}

// once is how many milliseconds pass between the call that adds a job and the start of its handler.
func (s *session) once(ctx context.Context, started <-chan int64) (float64, error) {
	begin := time.Now().UnixNano()
	if err := s.c.AddOne(ctx); err != nil {
		return 0, err
	}
	late := time.NewTimer(longest)
	defer late.Stop()
	select {
	case at, ok := <-started:
		if !ok {
			return 0, errors.New("the worker ended on its own")
		}
		return float64(at-begin) / 1e6, nil
	case <-late.C:
		return 0, fmt.Errorf("a job was not picked up within %v", longest)
	}
}

// idle starts a worker, in a process of its own unless both are to share this one. It answers the instants at which handlers
// start.
func (s *session) idle(ctx context.Context) (started <-chan int64, stop func() error, err error) {
	if s.same {
		started, stop = s.inside(ctx)
		return started, stop, nil
	}
	c, err := s.start(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	if _, err := fmt.Fprintln(c.in, wordGo); err != nil {
		return nil, nil, err
	}
	said := make(chan int64, 100)
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer close(said)
		for l := c.next(); l.err == nil; l = c.next() {
			var at int64
			if l.word == wordStarted && json.Unmarshal(l.value, &at) == nil {
				said <- at
			}
		}
	}()
	return said, func() error {
		c.in.Close()
		<-over
		return c.cmd.Wait()
	}, nil
}

func (s *session) inside(ctx context.Context) (started <-chan int64, stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	said := make(chan int64, 100)
	over := make(chan error, 1)
	go func() {
		over <- s.c.Work(ctx, func(int) error {
			said <- time.Now().UnixNano()
			return nil
		})
	}()
	return said, func() error {
		cancel()
		return <-over
	}
}

// percentile is the smallest value that so many percent of a sorted list do not exceed.
func percentile(sorted []float64, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
