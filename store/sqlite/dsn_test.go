package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

type purchase struct{ Customer int }

func (purchase) Kind() string { return "purchase" }

// A shop keeps its orders in the store's file, as a newcomer would write it: every order and its job are one transaction.
func TestTransactionsOfAHandleOpenedByDSNWaitForTheirTurn(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ok := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "jobs of 100% of #1.db")
	jobs, err := sqlite.Open(ctx, sqlite.Config{Path: file})
	ok(err)
	defer jobs.Close()
	db, err := sql.Open("sqlite", sqlite.DSN(file))
	ok(err)
	defer db.Close()
	_, err = db.ExecContext(ctx, "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, shipped INTEGER DEFAULT 0)")
	ok(err)

	const customers, orders = 50, 4
	var shipped atomic.Int64
	all := make(chan struct{})
	e, err := engine.New(jobs, engine.Config{Slots: 10})
	ok(err)
	engine.Handle(e, func(ctx context.Context, job *engine.Job[purchase]) error {
		_, err := db.ExecContext(ctx, "UPDATE orders SET shipped = shipped + 1 WHERE id = (SELECT min(id) FROM orders WHERE customer = ? AND shipped = 0)", job.Args.Customer)
		if err != nil {
			t.Errorf("a handler cannot write: %v", err)
		}
		if shipped.Add(1) == customers*orders {
			close(all)
		}
		return err
	})
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(running) }()

	var shoppers sync.WaitGroup
	for customer := range customers {
		shoppers.Go(func() {
			for range orders {
				if err := buy(ctx, db, jobs, customer); err != nil {
					t.Errorf("customer %d cannot order: %v", customer, err)
				}
			}
		})
	}
	shoppers.Wait()
	if t.Failed() {
		t.FailNow()
	}
	select {
	case <-all:
	case <-ctx.Done():
		t.Fatalf("only %d of %d orders were shipped", shipped.Load(), customers*orders)
	}
	stop()
	ok(<-ended)
	var left int
	ok(db.QueryRowContext(ctx, "SELECT count(*) FROM orders WHERE shipped <> 1").Scan(&left))
	if left != 0 {
		t.Fatalf("%d orders were not shipped once", left)
	}
}

func buy(ctx context.Context, db *sql.DB, jobs store.Store, customer int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (customer) VALUES (?)", customer); err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	if _, err := holdfast.Enqueue(ctx, jobs.In(tx), purchase{customer}); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return tx.Commit()
}
