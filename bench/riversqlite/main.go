// River on an SQLite file as a contender. It is a module of its own because the newest available release of this driver (v0.47.0)
// does not build with the River that the PostgreSQL contender uses.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	_ "modernc.org/sqlite"

	"github.com/holdfastdev/holdfast/bench/measure"
)

type noop struct {
	Text string `json:"text"`
}

func (noop) Kind() string { return "noop" }

type worker struct {
	river.WorkerDefaults[noop]
	do func(attempt int) error // set before the client starts
}

func (w *worker) Work(_ context.Context, job *river.Job[noop]) error { return w.do(job.Attempt) }

// atOnce retries a failed job without waiting.
type atOnce struct{}

func (atOnce) NextRetry(*rivertype.JobRow) time.Time { return time.Now() }

type contender struct {
	pool   *sql.DB
	worker *worker
	client *river.Client[*sql.Tx]
	how    string
}

func main() { measure.Main(open) }

// open sets the same durability as Holdfast's store: acknowledged jobs are on the disk.
func open(ctx context.Context, o measure.Options) (measure.Contender, error) {
	pool, err := sql.Open("sqlite", "file:"+o.Store+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)")
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1) // as the driver's documentation recommends
	driver := riversqlite.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	c := &contender{pool: pool, worker: &worker{}}
	workers := river.NewWorkers()
	river.AddWorker(workers, c.worker)
	how := &river.Config{
		Logger:      slog.New(slog.DiscardHandler),
		Queues:      map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.Slots}},
		RetryPolicy: atOnce{},
		Workers:     workers,
	}
	c.how = fmt.Sprintf("MaxWorkers %d, FetchCooldown and FetchPollInterval default (100ms, 1s)", o.Slots)
	if !o.Defaults {
		how.FetchCooldown, how.FetchPollInterval = time.Millisecond, 20*time.Millisecond
		c.how = fmt.Sprintf("MaxWorkers %d, FetchCooldown %v, FetchPollInterval %v", o.Slots, how.FetchCooldown, how.FetchPollInterval)
	}
	c.client, err = river.NewClient(driver, how)
	return c, err
}

func (c *contender) Add(ctx context.Context, jobs int) error {
	return measure.Chunks(jobs, func(n int) error {
		params := make([]river.InsertManyParams, n)
		for i := range params {
			params[i] = river.InsertManyParams{Args: noop{measure.Text}}
		}
		_, err := c.client.InsertManyFast(ctx, params)
		return err
	})
}

func (c *contender) AddOne(ctx context.Context) error {
	_, err := c.client.Insert(ctx, noop{measure.Text}, nil)
	return err
}

func (c *contender) Work(ctx context.Context, do func(attempt int) error) error {
	c.worker.do = do
	whole := context.WithoutCancel(ctx)
	if err := c.client.Start(whole); err != nil {
		return err
	}
	<-ctx.Done()
	return c.client.Stop(whole)
}

func (c *contender) Complete(ctx context.Context) (n int, err error) {
	err = c.pool.QueryRowContext(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&n)
	return n, err
}

func (c *contender) Settings() string {
	return c.how + ", retry delay 0, one connection; modernc SQLite in WAL with synchronous=FULL"
}

func (c *contender) Close() error { return c.pool.Close() }
