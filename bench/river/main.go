// River on PostgreSQL as a contender, with its driver for pgx.
package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/holdfastdev/holdfast/bench/measure"
)

type noop struct {
	Text string `json:"text"`
}

func (noop) Kind() string { return "noop" }

type worker struct {
	river.WorkerDefaults[noop]
	ended atomic.Int64
	until int64
	done  chan struct{}
}

func (w *worker) Work(context.Context, *river.Job[noop]) error {
	if w.ended.Add(1) == w.until {
		close(w.done)
	}
	return nil
}

type contender struct {
	pool   *pgxpool.Pool
	worker *worker
	client *river.Client[pgx.Tx]
}

func main() { measure.Main(open) }

func open(ctx context.Context, url string) (measure.Contender, error) {
	config, err := pgxpool.ParseConfig(url)
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
	c := &contender{pool: pool, worker: &worker{done: make(chan struct{})}}
	workers := river.NewWorkers()
	river.AddWorker(workers, c.worker)
	c.client, err = river.NewClient(driver, &river.Config{
		FetchCooldown:     time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Logger:            slog.New(slog.DiscardHandler),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: measure.Slots}},
		Workers:           workers,
	})
	return c, err
}

func (c *contender) Add(ctx context.Context, jobs int) error { return c.add(ctx, jobs, nil) }

func (c *contender) Schedule(ctx context.Context, jobs int) error {
	return c.add(ctx, jobs, &river.InsertOpts{ScheduledAt: time.Now().Add(24 * time.Hour)})
}

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

func (c *contender) Drain(ctx context.Context, jobs int) error {
	c.worker.until = int64(jobs)
	if err := c.client.Start(ctx); err != nil {
		return err
	}
	select {
	case <-c.worker.done:
	case <-ctx.Done():
	}
	return c.client.Stop(ctx)
}

func (c *contender) Complete(ctx context.Context) (n int, err error) {
	err = c.pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state = 'completed'").Scan(&n)
	return n, err
}

func (c *contender) Close() error {
	c.pool.Close()
	return nil
}
