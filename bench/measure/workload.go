package measure

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"
)

// A session is one run, in the parent process.
type session struct {
	run
	c Contender
}

func (s *session) measure(ctx context.Context) (result Result, err error) {
	settings := s.c.Settings()
	switch s.workload {
	case "prepare":
		result, err = s.prepare(ctx)
	case "enqueue":
		result, err = s.enqueue(ctx)
	case "bulk":
		result, err = s.timed(ctx, func() error { return s.c.Add(ctx, s.jobs) })
	case "drain", "failure":
		result, err = s.drain(ctx)
	case "pickup":
		result, err = s.pickup(ctx)
	default:
		err = fmt.Errorf("unknown workload %q: use prepare, enqueue, bulk, drain, failure or pickup", s.workload)
	}
	result.Settings = settings
	return result, err
}

// prepare fills a store for later runs.
func (s *session) prepare(ctx context.Context) (Result, error) {
	begin := time.Now()
	if c, ok := s.c.(Scheduler); s.scheduled > 0 {
		if !ok {
			return Result{}, unsupported("-scheduled")
		}
		if err := c.Schedule(ctx, s.scheduled); err != nil {
			return Result{}, err
		}
	}
	if c, ok := s.c.(Holder); s.held > 0 {
		if !ok {
			return Result{}, unsupported("-held")
		}
		if err := c.Hold(ctx, s.held); err != nil {
			return Result{}, err
		}
	}
	if c, ok := s.c.(Breaker); s.broken > 0 {
		if !ok {
			return Result{}, unsupported("-broken")
		}
		if err := c.Break(ctx, s.broken); err != nil {
			return Result{}, err
		}
	}
	if c, ok := s.c.(Retainer); s.retained > 0 {
		if !ok {
			return Result{}, unsupported("-retained")
		}
		if err := c.Retain(ctx, s.retained); err != nil {
			return Result{}, err
		}
	}
	return Result{Jobs: s.scheduled + s.held + s.broken + s.retained, Seconds: time.Since(begin).Seconds()}, nil
}

func unsupported(flag string) error {
	return fmt.Errorf("this contender does not support %s: leave it out, or measure another contender", flag)
}

// timed measures work in this process. It begins with a garbage collection, so that the work does not pay for its preparation.
func (s *session) timed(ctx context.Context, work func() error) (Result, error) {
	runtime.GC()
	stop, err := profile(s.profile)
	if err != nil {
		return Result{}, err
	}
	defer stop()
	result, end := s.begin(ctx)
	cpu := cpuSeconds()
	err = work()
	result.CPU = cpuSeconds() - cpu
	return end(result, err)
}

// begin records the time, the database server's CPU time and the position of its log. end adds the differences to the result.
func (s *session) begin(ctx context.Context) (result Result, end func(Result, error) (Result, error)) {
	wal, err := s.wal(ctx)
	server, begin := ServerSeconds(s.server), time.Now()
	return Result{Jobs: s.jobs}, func(r Result, failed error) (Result, error) {
		r.Seconds = time.Since(begin).Seconds()
		r.ServerCPU = ServerSeconds(s.server) - server
		if failed != nil || err != nil {
			return Result{}, fmt.Errorf("the run does not count: %w", firstOf(failed, err))
		}
		now, err := s.wal(ctx)
		r.WAL = now - wal
		return r, err
	}
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (s *session) wal(ctx context.Context) (int64, error) {
	if c, ok := s.c.(Server); ok {
		return c.WAL(ctx)
	}
	return 0, nil
}

// profile writes a CPU profile of this process until stop.
func profile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); f.Close() }, pprof.StartCPUProfile(f)
}

// enqueue adds jobs one at a time, and measures each call and the total.
func (s *session) enqueue(ctx context.Context) (Result, error) {
	took := make([]float64, s.jobs)
	result, err := s.timed(ctx, func() error { return s.addConcurrently(ctx, took) })
	if err != nil {
		return Result{}, err
	}
	result.spread(took)
	return result, nil
}

// addConcurrently adds jobs one at a time from several goroutines, and stores the milliseconds of each call.
func (s *session) addConcurrently(ctx context.Context, took []float64) error {
	var group sync.WaitGroup
	var left atomic.Int64
	var failed atomic.Pointer[error]
	left.Store(int64(len(took)))
	for range s.goroutines {
		group.Go(func() {
			for i := left.Add(-1); i >= 0; i = left.Add(-1) {
				begin := time.Now()
				if err := s.c.AddOne(ctx); err != nil {
					failed.Store(&err)
					return
				}
				took[i] = time.Since(begin).Seconds() * 1000
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Chunks calls add with up to Chunk jobs at a time until all are added.
func Chunks(jobs int, add func(n int) error) error {
	for jobs > 0 {
		n := min(jobs, Chunk)
		if err := add(n); err != nil {
			return err
		}
		jobs -= n
	}
	return nil
}
