package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	_ "modernc.org/sqlite" // the driver of the shop's own handle

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/schedule"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
	"github.com/holdfastdev/holdfast/worker"
)

// Charge is the job that charges the card of an order.
type Charge struct {
	Order int64 `json:"order"`
	Cents int   `json:"cents"`
}

// Kind names the kind.
func (Charge) Kind() string { return "charge" }

// Shipment is the job that sends the goods of an order.
type Shipment struct {
	Order int64 `json:"order"`
}

// Kind names the kind.
func (Shipment) Kind() string { return "ship" }

// Report is the job that sums up the orders of a day.
type Report struct{}

// Kind names the kind.
func (Report) Kind() string { return "report" }

// A Bank charges cards. The key makes a repeated charge harmless.
type Bank interface {
	Charge(ctx context.Context, key string, cents int) error
}

// A Shop is the application.
type Shop struct {
	Worker *worker.Worker

	jobs store.Store
	db   *sql.DB // the shop's own tables, in the same file as the jobs
	bank Bank
	log  *slog.Logger
}

// The failure codes of the shop. Operators see their messages and remedies in the console, the command and the API.
var codes = []failure.Code{
	{Name: "CARD_DECLINED", Category: "input", Blame: failure.BlameUser, HTTPStatus: 402, Message: "The bank declined the card.", Remedy: "Ask the customer for another card, then retry."},
}

const tables = `
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL, cents INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'new', job TEXT NOT NULL DEFAULT '')`

// OpenShop opens the file, creates what is missing in it, and wires the worker.
func OpenShop(ctx context.Context, file string, bank Bank) (*Shop, error) {
	jobs, err := sqlite.Open(ctx, sqlite.Config{Path: file})
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", sqlite.DSN(file))
	if err == nil {
		_, err = db.ExecContext(ctx, tables)
	}
	if err != nil {
		return nil, errors.Join(err, jobs.Close())
	}
	shop := &Shop{jobs: jobs, db: db, bank: bank, log: slog.Default()}
	if err := shop.makeWorker(); err != nil {
		shop.Close()
		return nil, err
	}
	return shop, nil
}

// README start worker

// makeWorker says once what every part needs to know: codes, dependencies, schedules, subscriptions.
func (s *Shop) makeWorker() error {
	taxonomy, err := failure.NewTaxonomy(codes...)
	if err != nil {
		return err
	}
	s.Worker, err = worker.New(s.jobs, worker.Config{
		Engine: engine.Config{
			Name: "shop", Queues: []string{"default", "payments"}, Slots: 20, Taxonomy: taxonomy, Version: "1.0.0",
			Dependencies: map[string]engine.Dependency{"bank": {Breaker: breaker.Config{OpenFor: 30 * time.Second}}},
		},
		Notify:    notify.Config{Sinks: map[string]notify.Sink{"log": notify.Func(s.logEvents)}},
		Schedules: []schedule.Schedule{{Name: "daily-report", Cron: "0 6 * * *", Zone: "Europe/Berlin", Draft: holdfast.Draft{Kind: "report"}}},
		Subscriptions: []subscription.Subscription{
			{Name: "problems", Sink: "log", Target: "stderr", Events: []string{"job.failed", "breaker.open", "breaker.closed"}},
		},
	})
	if err != nil {
		return err
	}
	s.register(s.Worker.Engine)
	return nil
}

// register registers the handlers. Tests use it too.
func (s *Shop) register(e *engine.Engine) {
	engine.Handle(e, s.charge, chargeOptions)
	engine.Handle(e, s.ship)
	engine.Handle(e, s.report)
}

// README end

var chargeOptions = engine.KindOptions{
	Dependency: "bank", Timeout: 20 * time.Second,
	Policy: failure.Policy{MaxAttempts: 6, Backoff: failure.Exponential{Base: 2 * time.Second, Factor: 3, Cap: 10 * time.Minute}},
}

// Close closes the shop after its worker has stopped.
func (s *Shop) Close() {
	if err := errors.Join(s.db.Close(), s.jobs.Close()); err != nil {
		s.log.Error("closing the shop", "error", err)
	}
}

// PlaceOrder stores an order and the job that charges it, both or neither.
func (s *Shop) PlaceOrder(ctx context.Context, item string, cents int) (order int64, job holdfast.ID, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, job, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	row := tx.QueryRowContext(ctx, "INSERT INTO orders (item, cents) VALUES (?, ?) RETURNING id", item, cents)
	if err := row.Scan(&order); err != nil {
		return 0, job, err
	}
	receipt, err := holdfast.Enqueue(ctx, s.jobs.In(tx), Charge{Order: order, Cents: cents}, func(d *holdfast.Draft) { d.Queue = "payments" })
	if err != nil {
		return 0, job, err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE orders SET job = ? WHERE id = ?", receipt.ID, order); err != nil {
		return 0, job, err
	}
	return order, receipt.ID, tx.Commit()
}

// charge charges the card of an order. The order is paid, its shipment enqueued and this job complete in one transaction, so each of them happens once.
func (s *Shop) charge(ctx context.Context, job *engine.Job[Charge]) error {
	// The job may run again after the bank has charged: the key tells the bank that it is the same charge.
	if err := s.bank.Charge(ctx, job.ID.String(), job.Args.Cents); err != nil {
		return err
	}
	// README start paid
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET state = 'paid' WHERE id = ?", job.Args.Order); err != nil {
			return err
		}
		if _, err := holdfast.Enqueue(ctx, s.jobs.In(tx), Shipment{Order: job.Args.Order}); err != nil {
			return err
		}
		return job.CompleteIn(ctx, tx)
	})
	// README end
}

// ship marks an order as shipped.
func (s *Shop) ship(ctx context.Context, job *engine.Job[Shipment]) error {
	_, err := s.db.ExecContext(ctx, "UPDATE orders SET state = 'shipped' WHERE id = ? AND state = 'paid'", job.Args.Order)
	return err
}

// report counts the orders by their state. Its result is stored with the job.
func (s *Shop) report(ctx context.Context, job *engine.Job[Report]) error {
	rows, err := s.db.QueryContext(ctx, "SELECT state, count(*) FROM orders GROUP BY state")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	counts := map[string]int{}
	for rows.Next() {
		var state string
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			return err
		}
		counts[state] = n
	}
	job.Result(counts)
	return rows.Err()
}

// inTx runs act in a transaction.
func (s *Shop) inTx(ctx context.Context, act func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := act(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// logEvents is a sink: it receives the events of the subscription "problems".
func (s *Shop) logEvents(_ context.Context, d notify.Delivery) error {
	for _, e := range d.Events {
		s.log.Warn("the shop has a problem", "event", subscription.Type(e), "code", e.Code, "job", e.Job)
	}
	return nil
}
