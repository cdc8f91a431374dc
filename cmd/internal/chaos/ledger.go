package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// roleBookkeeper is the role of a worker whose handler writes a row of its own and completes its job in one transaction.
const roleBookkeeper = "bookkeeper"

// An entryScript is a job that adds its id to the table chaos_ledger.
type entryScript struct{}

func (entryScript) Kind() string { return "chaos.entry" }

// createLedger creates the table of the application. It has no constraint that would prevent a second row.
const createLedger = "CREATE TABLE chaos_ledger (job text NOT NULL)"

// openLedger opens the application's own handle on the database of the store.
func openLedger(address string) (*sql.DB, error) {
	if strings.HasPrefix(address, "postgres") {
		return sql.Open("pgx", address)
	}
	return sql.Open("sqlite", sqlite.DSN(address))
}

// runBookkeeper runs a worker until ctx ends. Handlers sometimes forget the commit, return an error after it, or end the process at any step.
func runBookkeeper(ctx context.Context, p childSpec, s store.Store) error {
	db, err := openLedger(p.Store)
	if err != nil {
		return err
	}
	defer db.Close()
	e, err := engine.New(s, engine.Config{
		Name: fmt.Sprintf("bookkeeper-%d", p.N), Slots: 6, Lease: p.Lease, Grace: 300 * time.Millisecond, Poll: 200 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError + 1})), // errors of this run are on purpose
	})
	if err != nil {
		return err
	}
	policy := policy(unlimitedCrashes)
	policy.MaxAttempts = 1000
	engine.Handle(e, func(ctx context.Context, job *engine.Job[entryScript]) error { return writeEntry(ctx, db, job) }, engine.KindOptions{Policy: policy})
	if err := e.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

var errOnPurpose = errors.New("the handler fails on purpose")

// writeEntry adds the row of a job, enqueues another one and completes the job, all in one transaction. Which step goes wrong is random.
func writeEntry(ctx context.Context, db *sql.DB, job *engine.Job[entryScript]) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	wrong := rand.IntN(40)
	exitIf := func(n int) {
		if wrong == n {
			os.Exit(exitKilled)
		}
	}
	exitIf(0)
	if _, err := tx.ExecContext(ctx, "INSERT INTO chaos_ledger (job) VALUES ('"+job.ID.String()+"')"); err != nil {
		return err
	}
	exitIf(1)
	next, err := holdfast.NewDraft(script{Do: doNothing, Parent: job.ID})
	if err != nil {
		return err
	}
	if err := job.Enqueue(next); err != nil {
		return err
	}
	if err := job.CompleteIn(ctx, tx); err != nil {
		return err
	}
	exitIf(2)
	switch wrong {
	case 3, 4:
		return nil // the commit is forgotten
	case 5:
		return errOnPurpose
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	exitIf(6)
	if wrong < 10 {
		return errOnPurpose
	}
	return nil
}
