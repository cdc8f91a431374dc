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

// warmup is the number of jobs before the first one that counts: by then the worker has started and statements are prepared.
const warmup = 10

// pickupTimeout is how long a single job may take to be picked up before the run is aborted.
const pickupTimeout = 30 * time.Second

// pickup adds single jobs while a worker is idle and measures the time until their handlers start. Both processes use the same clock.
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

// spread sets the percentiles of durations in milliseconds.
func (r *Result) spread(took []float64) {
	slices.Sort(took)
	r.P50, r.P95, r.P99 = percentile(took, 50), percentile(took, 95), percentile(took, 99)
}

// once returns the milliseconds between the call that adds a job and the start of its handler.
func (s *session) once(ctx context.Context, started <-chan int64) (float64, error) {
	begin := time.Now().UnixNano()
	if err := s.c.AddOne(ctx); err != nil {
		return 0, err
	}
	late := time.NewTimer(pickupTimeout)
	defer late.Stop()
	select {
	case at, ok := <-started:
		if !ok {
			return 0, errors.New("the worker ended unexpectedly")
		}
		return float64(at-begin) / 1e6, nil
	case <-late.C:
		return 0, fmt.Errorf("a job was not picked up within %v", pickupTimeout)
	}
}

// idle starts a worker, in a separate process unless -same is set. The channel receives the times at which handlers start.
func (s *session) idle(ctx context.Context) (started <-chan int64, stop func() error, err error) {
	if s.same {
		started, stop = s.idleInProcess(ctx)
		return started, stop, nil
	}
	c, err := s.start(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	if _, err := fmt.Fprintln(c.in, wordGo); err != nil {
		return nil, nil, err
	}
	times := make(chan int64, 100)
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer close(times)
		for l := c.next(); l.err == nil; l = c.next() {
			var at int64
			if l.word == wordStarted && json.Unmarshal(l.value, &at) == nil {
				times <- at
			}
		}
	}()
	return times, func() error {
		c.in.Close()
		<-over
		return c.cmd.Wait()
	}, nil
}

func (s *session) idleInProcess(ctx context.Context) (started <-chan int64, stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	times := make(chan int64, 100)
	over := make(chan error, 1)
	go func() {
		over <- s.c.Work(ctx, func(int) error {
			times <- time.Now().UnixNano()
			return nil
		})
	}()
	return times, func() error {
		cancel()
		return <-over
	}
}

// percentile returns the smallest value of a sorted list that the given percentage of values does not exceed.
func percentile(sorted []float64, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
