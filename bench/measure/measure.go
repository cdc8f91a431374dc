// Package measure is what every contender of the benchmark has in common: the workloads, the clock around them, and one
// line of JSON with the result. It knows no contender and needs no module, so each contender may need whatever versions it
// needs.
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

// Chunk is how many jobs a contender hands over in one bulk call.
const Chunk = 5000

// Text pads the arguments of every job to about 200 bytes of JSON.
var Text = strings.Repeat("holdfast ", 20)

// Failed is what a handler returns in the failure workload.
var Failed = errors.New("the other side was busy, try again")

// A Contender is a job engine on one store.
type Contender interface {
	Add(ctx context.Context, jobs int) error // in bulk, due now
	AddOne(ctx context.Context) error        // alone, due now, durable when it returns
	// Work runs handlers until ctx ends, then stops cleanly: what was handled is settled when it returns, and the end of ctx is
	// no error. do is the handler; attempt is 1 for a job's first try. When do returns an error the job is tried again as soon
	// as the contender can.
	Work(ctx context.Context, do func(attempt int) error) error
	// Complete is how many jobs the store says are complete. A store that forgets them answers minus the jobs still in it.
	Complete(ctx context.Context) (int, error)
	Settings() string // versions, workers, intervals, durability: what a sceptic would ask
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

// A Breaker can add jobs that an open circuit breaker keeps back.
type Breaker interface {
	Break(ctx context.Context, jobs int) error
}

// A Retainer can fill its store with jobs that have ended and are kept.
type Retainer interface {
	Retain(ctx context.Context, jobs int) error
}

// A Server is a store on PostgreSQL.
type Server interface {
	// WAL is how far the write-ahead log has come, in bytes.
	WAL(ctx context.Context) (int64, error)
	// Snapshot keeps everything deleted from now on visible to a transaction that is open until release.
	Snapshot(ctx context.Context) (release func(), err error)
}

// Options say how a contender is to be opened.
type Options struct {
	Store    string // a file, a URL or an address
	Slots    int    // handlers at once
	Owners   int    // among so many owners jobs are divided, in turn; 0: they have none
	Told     bool   // every transition of every job is an event
	Far      bool   // through a server on loopback, in the same process, instead of straight to the store
	Defaults bool   // leave everything else as the contender's authors set it, instead of as they would for speed
}

// An Open opens a contender, and makes its store if there is none.
type Open func(ctx context.Context, o Options) (Contender, error)

// A Result is one run. CPU is the workers' alone; the database server's is apart, and absent where there is none. Memory is
// that of the largest worker. The percentiles are those of pick-up, or of the calls that enqueue one by one.
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

// patience bounds a run that does not end by itself.
const patience = 20 * time.Minute

// A run is what the command line asks for.
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

// Main runs one workload of one contender and prints its Result. The command that started it waits for that line.
func Main(open Open) {
	r := run{open: open}
	flag.StringVar(&r.workload, "workload", "drain", "prepare, enqueue, bulk, drain, failure or pickup")
	flag.StringVar(&r.Store, "store", "", "a file, the URL of a database, or host:port")
	flag.IntVar(&r.jobs, "jobs", 1000, "how many jobs")
	flag.IntVar(&r.goroutines, "goroutines", 16, "enqueue: from how many goroutines")
	flag.IntVar(&r.Slots, "slots", 100, "handlers at once")
	flag.IntVar(&r.processes, "processes", 1, "drain and failure: how many worker processes")
	flag.IntVar(&r.scheduled, "scheduled", 0, "prepare: jobs due tomorrow")
	flag.IntVar(&r.held, "held", 0, "prepare: jobs queued but paused")
	flag.IntVar(&r.broken, "broken", 0, "prepare: jobs queued behind an open breaker")
	flag.IntVar(&r.Owners, "owners", 0, "divide the jobs among so many owners")
	flag.BoolVar(&r.Told, "told", false, "write an event for every transition of every job")
	flag.BoolVar(&r.Far, "far", false, "enqueue and work through a server on loopback")
	flag.IntVar(&r.retained, "retained", 0, "prepare: jobs that ended and are kept")
	flag.BoolVar(&r.snapshot, "snapshot", false, "drain: while a transaction holds an old snapshot (PostgreSQL)")
	flag.BoolVar(&r.same, "same", false, "pickup: enqueue and work in one process")
	flag.BoolVar(&r.Defaults, "defaults", false, "the contender's own default settings")
	flag.IntVar(&r.server, "server", 0, "the database server's first process, whose CPU time is measured")
	flag.StringVar(&r.profile, "profile", "", "a file for the CPU profile of what is timed")
	flag.BoolVar(&r.worker, "worker", false, "be a worker process; only this program starts itself so")
	flag.Parse()
	if err := r.main(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (r run) main() error {
	if flag.NArg() > 0 {
		return fmt.Errorf("what is %q? Every argument is a flag", flag.Arg(0))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
