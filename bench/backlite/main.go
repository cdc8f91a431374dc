// backlite on an SQLite file as a contender.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mikestefanello/backlite"

	"github.com/holdfastdev/holdfast/bench/measure"
)

const version = "0.6.0"

// noop is a job with a unique number.
type noop struct {
	Text   string `json:"text"`
	Number int64  `json:"number"`
}

// Config sets an immediate retry and no retention, which is backlite's default.
func (noop) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: "noop", MaxAttempts: 25}
}

type contender struct {
	options measure.Options
	db      *sql.DB
	client  *backlite.Client
	number  atomic.Int64
	failed  sync.Map // attempts of failed jobs, because backlite does not pass them
}

func main() { measure.Main(open) }

func open(_ context.Context, o measure.Options) (measure.Contender, error) {
	db, err := connect(o.Store)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // more would only wait for the write lock
	client, err := backlite.NewClient(backlite.ClientConfig{DB: db, NumWorkers: o.Slots, ReleaseAfter: 10 * time.Minute})
	if err != nil {
		return nil, err
	}
	c := &contender{options: o, db: db, client: client}
	c.number.Store(time.Now().UnixNano())
	return c, client.Install()
}

func (c *contender) job() noop { return noop{measure.Text, c.number.Add(1)} }

func (c *contender) Add(ctx context.Context, jobs int) error {
	return measure.Chunks(jobs, func(n int) error {
		list := make([]backlite.Task, n)
		for i := range list {
			list[i] = c.job()
		}
		_, err := c.client.Add(list...).Ctx(ctx).Save()
		return err
	})
}

func (c *contender) AddOne(ctx context.Context) error {
	_, err := c.client.Add(c.job()).Ctx(ctx).Save()
	return err
}

// Work does not pass ctx to the dispatcher: its end would interrupt jobs that are being settled.
func (c *contender) Work(ctx context.Context, do func(attempt int) error) error {
	c.client.Register(backlite.NewQueue(func(_ context.Context, job noop) error {
		attempt := 1
		if before, ok := c.failed.LoadAndDelete(job.Number); ok {
			attempt += before.(int)
		}
		err := do(attempt)
		if err != nil {
			c.failed.Store(job.Number, attempt)
		}
		return err
	}))
	rest := context.WithoutCancel(ctx)
	c.client.Start(rest)
	<-ctx.Done()
	if !c.client.Stop(rest) {
		return errors.New("backlite did not stop in time, so some jobs may not be settled: run it again")
	}
	return nil
}

// Complete counts the jobs that are left, because backlite deletes complete jobs.
func (c *contender) Complete(ctx context.Context) (left int, err error) {
	err = c.db.QueryRowContext(ctx, "SELECT count(*) FROM backlite_tasks").Scan(&left)
	return -left, err
}

func (c *contender) Settings() string {
	return fmt.Sprintf("backlite v%s, %s, WAL, synchronous=FULL, 1 connection, NumWorkers %d, Backoff 0, no retention, bulk in calls of %d",
		version, driver, c.options.Slots, measure.Chunk)
}

func (c *contender) Close() error { return c.db.Close() }
