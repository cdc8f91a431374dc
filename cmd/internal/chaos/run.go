package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// Config configures a run. Command and Seconds are required.
type Config struct {
	Command   []string // starts this program as a child process; the JSON of its role is added as the last argument
	Store     string   // an address, or "sqlite" or "postgres" for a temporary one
	Seconds   int      // how long faults are injected; draining follows
	Workers   int      // number of worker processes; 4 when zero
	Producers int      // number of producer processes; 2 when zero
	Servers   int      // number of servers through which all processes use the store; faults then hit the servers; none when zero
	Lease     time.Duration
	Seed      uint64    // of the random choices; the timing still depends on the machine
	Progress  io.Writer // receives progress messages; discarded when nil
}

// A Report is the result of a run. It is clean when every count after Faults is zero, except SlowestMS.
type Report struct {
	Store      string         `json:"store"`
	Seconds    int            `json:"seconds"`
	Seed       uint64         `json:"seed"`
	Jobs       int            `json:"jobs"`
	Starts     int            `json:"starts"`
	Faults     map[string]int `json:"faults"`
	Lost       int            `json:"lost"`       // acknowledged jobs that are missing, stuck or without a record; lost content; groups with a wrong outcome
	Duplicated int            `json:"duplicated"` // jobs that ended twice, were claimed twice with one token, or were enqueued twice by a job
	Stale      int            `json:"stale"`      // settlements by a process that no longer held the job
	Early      int            `json:"early"`      // jobs claimed before they were due, or before their turn in a line
	Exceeded   int            `json:"exceeded"`   // claims above a limit, or of two jobs of a line
	Findings   int            `json:"findings"`   // of the integrity check, and processes that failed unexpectedly
	SlowestMS  int64          `json:"slowest_reclaim_ms"`

	Troubles []string `json:"-"` // each violation in a sentence
}

// Clean reports whether every guarantee was kept.
func (r Report) Clean() bool { return r.Lost+r.Duplicated+r.Stale+r.Early+r.Exceeded+r.Findings == 0 }

// stuckAfter is how long a draining run waits for progress.
const stuckAfter = 90 * time.Second

// Run injects faults into a store and its processes, and reports violations of the guarantees. An error means that the run itself failed, not the store.
func Run(ctx context.Context, c Config) (Report, error) {
	if err := checkPlatform(); err != nil {
		return Report{}, err
	}
	c.setDefaults()
	dir, err := os.MkdirTemp("", "holdfast-chaos-")
	if err != nil {
		return Report{}, fmt.Errorf("cannot create a folder for the run: %w", err)
	}
	db, err := prepareDatabase(c.Store, dir)
	if err != nil {
		return Report{}, err
	}
	report, err := c.run(ctx, db, dir)
	if err == nil && !report.Clean() {
		c.logf("the journals of this run are kept in %s", dir)
	} else {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return report, errors.Join(err, db.close())
}

func (c *Config) setDefaults() {
	if c.Workers == 0 {
		c.Workers = 4
	}
	if c.Producers == 0 {
		c.Producers = 2
	}
	if c.Lease == 0 {
		c.Lease = 2 * time.Second
	}
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
}

func (c *Config) logf(format string, args ...any) { fmt.Fprintf(c.Progress, format+"\n", args...) }

func (c *Config) run(ctx context.Context, db *database, dir string) (Report, error) {
	first := holdfast.NewID() // the ids of all jobs of this run are greater
	s, err := openWithRetry(ctx, db.address)
	if err != nil {
		return Report{}, err
	}
	defer s.Close()
	if err := placeLimit(ctx, s); err != nil {
		return Report{}, err
	}
	f := &fleet{command: c.Command, spec: childSpec{Store: db.address, Dir: dir, Seed: c.Seed, Lease: c.Lease, First: first}}
	defer f.killAll("")
	inj := &injector{fleet: f, database: db, random: rand.New(rand.NewPCG(c.Seed, 0)), lease: c.Lease}
	c.logf("%s: %d servers, %d workers and %d producers for %d seconds, lease %v, seed %d", db.name, c.Servers, c.Workers, c.Producers, c.Seconds, c.Lease, c.Seed)
	if c.Servers > 0 {
		if err := errors.Join(f.startServers(ctx, c.Servers), f.start(roleReporter, c.Workers)); err != nil {
			return Report{}, err
		}
	}
	if err := errors.Join(f.start(roleWorker, c.Workers), f.start(roleProducer, c.Producers)); err != nil {
		return Report{}, err
	}
	if err := inj.run(ctx, time.Now().Add(time.Duration(c.Seconds)*time.Second)); err != nil {
		return Report{}, err
	}
	inj.end()
	c.logf("%s: faults ended after %v; draining", db.name, inj.faults)
	killed := f.stop(roleProducer, time.Minute)
	if err := c.drain(ctx, s, f); err != nil {
		return Report{}, err
	}
	killed += f.stop(roleWorker, time.Minute) + f.stop(roleReporter, time.Minute) + f.stopServers(time.Minute)
	c.logf("%s: drained; verifying", db.name)
	report := Report{Store: db.name, Seconds: c.Seconds, Seed: c.Seed, Faults: inj.faults, Troubles: f.unexpectedExits()}
	if killed > 0 {
		report.Troubles = append(report.Troubles, fmt.Sprintf("%d processes did not end within a minute after SIGTERM", killed))
	}
	report.Findings = len(report.Troubles)
	e, err := collectEvidence(ctx, s, f)
	if err != nil {
		return report, err
	}
	e.kills = inj.kills
	c.logf("%s: %s", db.name, e.shares())
	err = report.verify(ctx, s, e)
	return report, err
}

// drain waits until every job of the run has ended. It gives up when nothing has changed for stuckAfter; the verification then reports the stuck jobs.
func (c *Config) drain(ctx context.Context, s store.Store, f *fleet) error {
	before, since := "", time.Now()
	for ctx.Err() == nil {
		if err := f.refill(); err != nil { // scripts still end their processes
			return err
		}
		counts, err := s.Counts(ctx)
		if err == nil {
			open := 0
			for _, n := range counts {
				if isChaosKind(n.Kind) && !n.State.Terminal() {
					open += n.Jobs
				}
			}
			if open == 0 {
				return nil
			}
			if now := fmt.Sprint(counts); now != before {
				before, since = now, time.Now()
			}
		}
		if time.Since(since) > stuckAfter {
			c.logf("no progress for %v: %v", stuckAfter, before)
			return c.describeStuck(ctx, s)
		}
		sleep(ctx, 200*time.Millisecond)
	}
	return ctx.Err()
}

// describeStuck prints the holds, and for some jobs that have not ended why they do not run.
func (c *Config) describeStuck(ctx context.Context, s store.Store) error {
	service := ops.New(s, ops.Config{})
	holds, err := s.Holds(ctx)
	c.logf("holds: %+v (%v)", holds, err)
	for _, state := range []holdfast.State{holdfast.Processing, holdfast.Queued} {
		jobs, _, err := s.Jobs(ctx, store.Filter{State: state, Limit: 5})
		if err != nil {
			return fmt.Errorf("cannot list the stuck jobs: %w", err)
		}
		for _, job := range jobs {
			why, err := service.Explain(ctx, job.ID)
			c.logf("%s %s of queue %s, attempt %d, leased by %s until %v: %+v (%v)", state, job.ID, job.Queue, job.Token, job.Worker, job.LeaseUntil, why, err)
		}
	}
	return nil
}

// verify runs the integrity check, verifies the evidence, and adds the results of both to the report.
func (r *Report) verify(ctx context.Context, s store.Store, e evidence) error {
	findings, err := s.CheckIntegrity(ctx)
	if err != nil {
		return fmt.Errorf("the integrity check failed: %w", err)
	}
	for _, f := range findings {
		r.Troubles = append(r.Troubles, fmt.Sprintf("integrity check: %s: %s %s", f.Rule, f.Job, f.Detail))
	}
	v := verifyEvidence(e)
	for _, l := range e.lines {
		if l.Saw == sawStart {
			r.Starts++
		}
	}
	r.Jobs, r.Findings, r.SlowestMS = len(e.jobs), r.Findings+len(findings), v.slowest.Milliseconds()
	r.Lost, r.Duplicated, r.Stale, r.Early, r.Exceeded = v.lost, v.duplicated, v.stale, v.early, v.exceeded
	r.Troubles = append(r.Troubles, v.violations...)
	if r.Jobs == 0 || r.Starts == 0 {
		return errTooShort
	}
	return nil
}

// collectEvidence reads all journals, and all jobs of this run with their histories from the store.
func collectEvidence(ctx context.Context, s store.Store, f *fleet) (evidence, error) {
	e := evidence{jobs: map[holdfast.ID]holdfast.Job{}, histories: map[holdfast.ID]store.History{}}
	err := advanceAll(ctx, s)
	if err != nil {
		return e, err
	}
	if e.lines, err = readJournals(f.spec.Dir, len(f.all)); err != nil {
		return e, err
	}
	e.lines = slices.DeleteFunc(e.lines, func(l line) bool { return bytes.Compare(l.Job[:], f.spec.First[:]) < 0 })
	for filter := (store.Filter{Limit: 200}); ; {
		page, cursor, err := s.Jobs(ctx, filter)
		if err != nil {
			return e, fmt.Errorf("cannot list the jobs: %w", err)
		}
		for _, job := range page {
			if !belongsToRun(job, f.spec.First) {
				continue
			}
			e.jobs[job.ID] = job
			if job.Token <= 1 && job.Releases+job.Failures+job.Crashes == 0 {
				continue
			}
			if e.histories[job.ID], err = s.History(ctx, job.ID); err != nil {
				return e, fmt.Errorf("cannot read the history of %s: %w", job.ID, err)
			}
		}
		if filter.Cursor = cursor; cursor == "" {
			e.groups, err = readGroups(ctx, s, e.lines)
			return e, err
		}
	}
}
