// River on PostgreSQL as a contender, with its driver for pgx.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/holdfastdev/holdfast/bench/measure"
	"github.com/holdfastdev/holdfast/bench/postgres"
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
	postgres.Server
	pool   *pgxpool.Pool
	worker *worker
	client *river.Client[pgx.Tx]
	how    string
}

func main() { measure.Main(open) }

func open(ctx context.Context, o measure.Options) (measure.Contender, error) {
	config, err := pgxpool.ParseConfig(o.Store)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	c := &contender{Server: postgres.Server{URL: o.Store}, pool: pool, worker: &worker{}}
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

func (c *contender) Add(ctx context.Context, jobs int) error { return c.add(ctx, jobs, nil) }

func (c *contender) Schedule(ctx context.Context, jobs int) error {
	return c.add(ctx, jobs, &river.InsertOpts{ScheduledAt: time.Now().Add(24 * time.Hour)})
}

// add uses the client's fastest call, which is COPY.
func (c *contender) add(ctx context.Context, jobs int, options *river.InsertOpts) error {
	return measure.Chunks(jobs, func(n int) error {
		params := make([]river.InsertManyParams, n)
		for i := range params {
			params[i] = river.InsertManyParams{Args: noop{measure.Text}, InsertOpts: options}
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
	err = c.pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&n)
	return n, err
}

func (c *contender) Settings() string {
	return fmt.Sprintf("%s, retry delay 0, 20 connections, bulk by COPY; %s", c.how, c.Version(context.Background()))
}

func (c *contender) Close() error {
	c.pool.Close()
	return nil
}
