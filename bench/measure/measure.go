// Package measure is what every contender of the benchmark has in common: the workloads, the clock around them, and one
// line of JSON with the result. It knows no contender, so each may need whatever versions it needs.
package measure

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Chunk is how many jobs a contender hands over in one bulk call.
const Chunk = 5000

// Slots is how many handlers a contender runs at once.
const Slots = 100

// Text pads the arguments of every job to about 200 bytes of JSON.
var Text = strings.Repeat("holdfast ", 20)

// A Contender is a job engine on one store, fresh and empty.
type Contender interface {
	Add(ctx context.Context, jobs int) error      // in bulk, due now
	AddOne(ctx context.Context) error             // alone, due now, durable when it returns
	Schedule(ctx context.Context, jobs int) error // in bulk, due tomorrow
	Drain(ctx context.Context, jobs int) error    // run no-op handlers until so many have ended, and stop cleanly
	Complete(ctx context.Context) (int, error)    // how many the store says are complete
	Close() error
}

// A Result is one run. CPU is the contender's own; the database server's is apart, and 0 where there is none.
type Result struct {
	Jobs      int     `json:"jobs"`
	Seconds   float64 `json:"seconds"`
	CPU       float64 `json:"cpu_seconds"`
	ServerCPU float64 `json:"server_cpu_seconds"`
}

// A Run is what the command line asks for.
type Run struct {
	Workload string
	Store    string
	Jobs     int
	Waiting  int // scheduled for tomorrow before a drain begins
	Server   int // the database server's process, to learn what it costs
	Profile  string
}

// Main runs one workload of one contender and prints its Result. The command that started it waits for that line.
func Main(open func(ctx context.Context, store string) (Contender, error)) {
	var r Run
	flag.StringVar(&r.Workload, "workload", "drain", "drain, enqueue or bulk")
	flag.StringVar(&r.Store, "store", "", "a file, or the URL of a database")
	flag.IntVar(&r.Jobs, "jobs", 1000, "how many jobs")
	flag.IntVar(&r.Waiting, "waiting", 0, "how many jobs are scheduled for tomorrow")
	flag.IntVar(&r.Server, "server", 0, "the database server's process")
	flag.StringVar(&r.Profile, "profile", "", "a file for the CPU profile of what is timed")
	flag.Parse()
	result, err := r.measure(open)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (r Run) measure(open func(ctx context.Context, store string) (Contender, error)) (Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	c, err := open(ctx, r.Store)
	if err != nil {
		return Result{}, err
	}
	defer c.Close()
	switch r.Workload {
	case "drain":
		return r.drain(ctx, c)
	case "enqueue":
		return r.timed(func() error { return together(ctx, c, 16, r.Jobs) })
	case "bulk":
		return r.timed(func() error { return c.Add(ctx, r.Jobs) })
	}
	return Result{}, fmt.Errorf("there is no workload %q", r.Workload)
}

func (r Run) drain(ctx context.Context, c Contender) (Result, error) {
	if r.Waiting > 0 {
		if err := c.Schedule(ctx, r.Waiting); err != nil {
			return Result{}, err
		}
	}
	if err := c.Add(ctx, r.Jobs); err != nil {
		return Result{}, err
	}
	result, err := r.timed(func() error { return c.Drain(ctx, r.Jobs) })
	if err != nil {
		return Result{}, err
	}
	if complete, err := c.Complete(ctx); err != nil || complete != r.Jobs {
		return Result{}, fmt.Errorf("%d jobs were drained but the store knows %d complete ones (%v): this run does not count", r.Jobs, complete, err)
	}
	return result, nil
}

// timed begins with a collected heap, so that nobody pays for what was prepared before.
func (r Run) timed(work func() error) (Result, error) {
	runtime.GC()
	stop, err := profile(r.Profile)
	if err != nil {
		return Result{}, err
	}
	defer stop()
	server, cpu, begin := serverSeconds(r.Server), cpuSeconds(), time.Now()
	err = work()
	took := time.Since(begin)
	return Result{Jobs: r.Jobs, Seconds: took.Seconds(), CPU: cpuSeconds() - cpu, ServerCPU: serverSeconds(r.Server) - server}, err
}

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

// together adds jobs one at a time from several goroutines.
func together(ctx context.Context, c Contender, goroutines, jobs int) error {
	var group sync.WaitGroup
	var left atomic.Int64
	var failed atomic.Pointer[error]
	left.Store(int64(jobs))
	for range goroutines {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				if err := c.AddOne(ctx); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Chunks calls add for so many jobs at a time until all are added.
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
