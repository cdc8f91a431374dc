// goqite on an SQLite file as a contender, with its own job runner.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"maragu.dev/goqite"
	"maragu.dev/goqite/jobs"

	"github.com/holdfastdev/holdfast/bench/measure"
)

const (
	version = "0.4.0"
	kind    = "noop"

	poll = time.Millisecond // its default is 100 ms, its examples use 10 ms

	// A failed job is retried when the timeout of its message is over; the runner has no other way. Every receive reads all messages that wait for that,
	// so a short timeout is good. With a shorter one, jobs that only wait for their deletion would run again.
	timeout  = 250 * time.Millisecond
	attempts = 25
)

// schema is the schema from goqite's documentation. The module does not contain it.
const schema = `
CREATE TABLE IF NOT EXISTS goqite (
	id       TEXT PRIMARY KEY DEFAULT ('m_' || lower(hex(randomblob(16)))),
	created  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),
	updated  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),
	queue    TEXT NOT NULL,
	body     BLOB NOT NULL,
	timeout  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')),
	received INTEGER NOT NULL DEFAULT 0,
	priority INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TRIGGER IF NOT EXISTS goqite_updated_timestamp AFTER UPDATE ON goqite BEGIN
	UPDATE goqite SET updated = strftime('%Y-%m-%dT%H:%M:%fZ') WHERE id = old.id;
END;
CREATE INDEX IF NOT EXISTS goqite_queue_priority_created_idx ON goqite (queue, priority DESC, created);`

type contender struct {
	options measure.Options
	db      *sql.DB
	queue   *goqite.Queue
	number  atomic.Int64
	failed  sync.Map // attempts of failed jobs, because the runner does not pass them
}

func main() { measure.Main(open) }

func open(ctx context.Context, o measure.Options) (measure.Contender, error) {
	db, err := connect(o.Store)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // as its documentation recommends
	db.SetMaxIdleConns(1)
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, err
	}
	c := &contender{options: o, db: db}
	c.queue = goqite.New(goqite.NewOpts{DB: db, Name: "jobs", Timeout: timeout, MaxReceive: attempts})
	c.number.Store(time.Now().UnixNano())
	return c, nil
}

// message is a job with a unique number.
func (c *contender) message() goqite.Message {
	body, _ := json.Marshal(struct {
		Text   string `json:"text"`
		Number int64  `json:"number"`
	}{measure.Text, c.number.Add(1)})
	return goqite.Message{Body: body}
}

func (c *contender) Add(ctx context.Context, n int) error {
	return measure.Chunks(n, func(n int) error {
		tx, err := c.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for range n {
			if _, err := jobs.CreateTx(ctx, tx, c.queue, kind, c.message()); err != nil {
				return err
			}
		}
		return tx.Commit()
	})
}

func (c *contender) AddOne(ctx context.Context) error {
	_, err := jobs.Create(ctx, c.queue, kind, c.message())
	return err
}

func (c *contender) Work(ctx context.Context, do func(attempt int) error) error {
	r := jobs.NewRunner(jobs.NewRunnerOpts{Limit: c.options.Slots, PollInterval: poll, Queue: c.queue})
	r.Register(kind, func(_ context.Context, body []byte) error {
		attempt := 1
		if before, ok := c.failed.LoadAndDelete(string(body)); ok {
			attempt += before.(int)
		}
		err := do(attempt)
		if err != nil {
			c.failed.Store(string(body), attempt)
		}
		return err
	})
	r.Start(ctx)
	return nil
}

// Complete counts the jobs that are left, because goqite deletes complete jobs.
func (c *contender) Complete(ctx context.Context) (left int, err error) {
	err = c.db.QueryRowContext(ctx, "SELECT count(*) FROM goqite").Scan(&left)
	return -left, err
}

func (c *contender) Settings() string {
	return fmt.Sprintf("goqite v%s, %s, WAL, synchronous=FULL, 1 connection, Limit %d, PollInterval %v, Timeout %v (which is its retry delay), bulk in transactions of %d",
		version, driver, c.options.Slots, poll, timeout, measure.Chunk)
}

func (c *contender) Close() error { return c.db.Close() }
