// Package measure is shared by all contenders of the benchmark: the workloads, their timing, and the result as one line of JSON. It imports no contender and no other
// module, so that each contender can use the versions that it needs.
package measure

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// Chunk is how many jobs a contender enqueues in one bulk call.
const Chunk = 5000

// Text pads the arguments of every job to about 200 bytes of JSON.
var Text = strings.Repeat("holdfast ", 20)

// Failed is the error of handlers in the failure workload.
var Failed = errors.New("the other side was busy, try again")

// A Contender is a job engine on one store.
type Contender interface {
	Add(ctx context.Context, jobs int) error // in bulk, due now
	AddOne(ctx context.Context) error        // alone, due now, durable when it returns
	// Work runs handlers until ctx ends, then stops cleanly: all handled jobs are settled when it returns, and the end of ctx is no error. do is the
	// handler; attempt is 1 for the first attempt of a job. When do returns an error, the contender retries the job as soon as it can.
	Work(ctx context.Context, do func(attempt int) error) error
	// Complete returns the number of complete jobs in the store. For a store that deletes them it returns minus the number of jobs that are left.
	Complete(ctx context.Context) (int, error)
	Settings() string // versions, workers, intervals, durability
	Close() error
}

// A Scheduler can add jobs that are due tomorrow.
type Scheduler interface {
	Schedule(ctx context.Context, jobs int) error
}

// A Holder can add jobs that are queued but paused.
type Holder interface {
	Hold(ctx context.Context, jobs int) error
}

// A Breaker can add jobs that an open circuit breaker holds.
type Breaker interface {
	Break(ctx context.Context, jobs int) error
}

// A Retainer can add jobs that have ended and are kept.
type Retainer interface {
	Retain(ctx context.Context, jobs int) error
}

// A Server is a store on PostgreSQL.
type Server interface {
	// WAL returns the position of the write-ahead log, in bytes.
	WAL(ctx context.Context) (int64, error)
	// Snapshot opens a transaction whose snapshot keeps rows that are deleted from now on, until release is called.
	Snapshot(ctx context.Context) (release func(), err error)
}

// Options are the options of a contender.
type Options struct {
	Store    string // a file, a URL or an address
	Slots    int    // handlers at once
	Owners   int    // number of owners among which jobs are distributed, in turn; 0: no owners
	Told     bool   // every transition of every job is an event
	Far      bool   // through a server on loopback, in the same process, instead of directly to the store
	Defaults bool   // use the contender's default settings instead of settings for speed
}

// An Open opens a contender, and creates its store if needed.
type Open func(ctx context.Context, o Options) (Contender, error)

// A Result is the result of one run. CPU is that of the workers; ServerCPU is that of the database server, if there is one. Memory is that of the largest worker. The
// percentiles are those of pick-up, or of single enqueue calls.
type Result struct {
	Jobs      int     `json:"jobs"`
	Seconds   float64 `json:"seconds"`
	CPU       float64 `json:"cpu_seconds,omitempty"`
	ServerCPU float64 `json:"server_cpu_seconds,omitempty"`
	WAL       int64   `json:"wal_bytes,omitempty"`
	Idle      float64 `json:"rss_idle_mb,omitempty"`
	Peak      float64 `json:"rss_peak_mb,omitempty"`
	P50       float64 `json:"p50_ms,omitempty"`
	P95       float64 `json:"p95_ms,omitempty"`
	P99       float64 `json:"p99_ms,omitempty"`
	Settings  string  `json:"settings,omitempty"`
}

// maxRun ends a run that does not end by itself.
const maxRun = 20 * time.Minute

// A run is the parsed command line.
type run struct {
	Options
	workload   string
	jobs       int
	goroutines int
	processes  int
	scheduled  int
	held       int
	broken     int
	retained   int
	snapshot   bool
	same       bool
	server     int
	profile    string
	worker     bool
	open       Open
}

// Main runs one workload of one contender and prints its Result as one line of JSON, which the benchmark reads.
func Main(open Open) {
	r := run{open: open}
	flag.StringVar(&r.workload, "workload", "drain", "prepare, enqueue, bulk, drain, failure or pickup")
	flag.StringVar(&r.Store, "store", "", "a file, the URL of a database, or host:port")
	flag.IntVar(&r.jobs, "jobs", 1000, "number of jobs")
	flag.IntVar(&r.goroutines, "goroutines", 16, "enqueue: number of goroutines")
	flag.IntVar(&r.Slots, "slots", 100, "number of concurrent handlers")
	flag.IntVar(&r.processes, "processes", 1, "drain and failure: number of worker processes")
	flag.IntVar(&r.scheduled, "scheduled", 0, "prepare: jobs due tomorrow")
	flag.IntVar(&r.held, "held", 0, "prepare: jobs queued but paused")
	flag.IntVar(&r.broken, "broken", 0, "prepare: jobs queued behind an open breaker")
	flag.IntVar(&r.Owners, "owners", 0, "distribute the jobs among this many owners")
	flag.BoolVar(&r.Told, "told", false, "write an event for every transition of every job")
	flag.BoolVar(&r.Far, "far", false, "enqueue and work through a server on loopback")
	flag.IntVar(&r.retained, "retained", 0, "prepare: jobs that ended and are kept")
	flag.BoolVar(&r.snapshot, "snapshot", false, "drain: while a transaction holds an old snapshot (PostgreSQL)")
	flag.BoolVar(&r.same, "same", false, "pickup: enqueue and work in one process")
	flag.BoolVar(&r.Defaults, "defaults", false, "the contender's own default settings")
	flag.IntVar(&r.server, "server", 0, "process id of the database server, to measure its CPU time")
	flag.StringVar(&r.profile, "profile", "", "a file for a CPU profile of the timed part")
	flag.BoolVar(&r.worker, "worker", false, "run as a worker process; only the program itself uses this")
	flag.Parse()
	if err := r.main(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (r run) main() error {
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: all arguments are flags", flag.Arg(0))
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxRun)
	defer cancel()
	c, err := r.open(ctx, r.Options)
	if err != nil {
		return err
	}
	if r.worker {
		return errors.Join(r.work(ctx, c), c.Close())
	}
	s := &session{run: r, c: c}
	result, err := s.measure(ctx)
	if err := errors.Join(err, s.c.Close()); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
