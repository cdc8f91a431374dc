package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfastdev/holdfast"
)

const (
	defaultDeadline = 15 * time.Second // of every call whose context has none
	maxRetries      = 5                // of a call that met a passing trouble
)

// within bounds a call, unless its caller has done so: nothing waits for a silent database forever.
func withDeadline(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// ask runs one verb under a deadline. A trouble that passes (a deadlock, a lost connection) is met by asking again; after a
// lost connection only if the verb may be repeated although the first time may have taken effect.
func (s *Store) withRetries(ctx context.Context, verb string, repeatable bool, try func(context.Context) error) error {
	if s.closed.Load() {
		return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "could not " + verb + ": the store is closed"}
	}
	ctx, cancel := withDeadline(ctx, defaultDeadline)
	defer cancel()
	for n := 0; ; n++ {
		err := try(ctx)
		if err != nil && ctx.Err() != nil {
			return explain(verb, errors.Join(ctx.Err(), err)) // the driver may only know that the statement was cancelled
		}
		if err == nil || n == maxRetries || !retryable(err, repeatable) {
			return explain(verb, err)
		}
		backoff(ctx, n)
	}
}

// pause waits a little longer each time, and never in step with others.
func backoff(ctx context.Context, n int) {
	wait := time.NewTimer(time.Duration(float64(5*time.Millisecond<<n) * (0.5 + rand.Float64())))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// passes reports whether asking again may help, and is safe.
func retryable(err error, repeatable bool) bool {
	var ours *holdfast.Error
	var before *rolledBack
	if errors.As(err, &ours) {
		return false
	}
	if errors.Is(err, errAlreadyFinished) {
		return true
	}
	repeatable = repeatable || errors.As(err, &before)
	var refusal *pgconn.PgError
	var connecting *pgconn.ConnectError
	switch {
	case errors.As(err, &connecting):
		return !errors.As(err, &refusal) || strings.HasPrefix(refusal.Code, "57P") || strings.HasPrefix(refusal.Code, "08") // 08: a pooler without its server
	case !errors.As(err, &refusal):
		return repeatable // the connection broke; the driver is too sure of when, after a lost commit, to ask it
	case refusal.Code == "40001" || refusal.Code == "40P01" || refusal.Code == "26000" || refusal.Code == "0A000":
		return true // rolled back for certain: serialization, deadlock, a cached statement that is out of date
	}
	return repeatable && (strings.HasPrefix(refusal.Code, "57P") || strings.HasPrefix(refusal.Code, "08"))
}

// errTwice is a job that was found to have an end already, by a statement that does not allow for it.
var errAlreadyFinished = errors.New("a job has an end already")

// unsure reports whether the call may have taken effect although it failed.
func mayHaveCommitted(err error) bool { return retryable(err, true) && !retryable(err, false) }

// explain makes an error of ours from one of the driver's: one line for people, the rest as its cause.
func explain(verb string, err error) error {
	var ours *holdfast.Error
	if err == nil || errors.As(err, &ours) {
		return unwrapRolledBack(err)
	}
	var refusal *pgconn.PgError
	var foreign interface{ SQLState() string }
	var connecting *pgconn.ConnectError
	reason := "the connection to the database was lost"
	switch {
	case errors.Is(err, context.Canceled):
		reason = "the caller stopped waiting"
	case errors.Is(err, context.DeadlineExceeded):
		reason = "the database did not answer in time"
	case errors.As(err, &refusal):
		reason = fmt.Sprintf("the database says: %s (%s)", oneLine(refusal.Message), refusal.Code)
	case errors.As(err, &foreign):
		reason = fmt.Sprintf("the database refuses it (%s)", foreign.SQLState())
	case errors.As(err, &connecting):
		reason = "the database cannot be reached: check that it runs and that the address is right"
	}
	return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "could not " + verb + ": " + reason, Cause: &hiddenCause{err}}
}

// bare takes off what this package wrapped around an error of ours.
func unwrapRolledBack(err error) error {
	if u, ok := err.(*rolledBack); ok {
		return u.error
	}
	return err
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// hidden is a cause for errors.Is that never shows its text, which may name the address.
type hiddenCause struct{ err error }

func (h *hiddenCause) Error() string { return "the database driver reported an error" }
func (h *hiddenCause) Unwrap() error { return h.err }

// undone is a failure before the commit was asked for: nothing has taken effect.
type rolledBack struct{ error }

func (u *rolledBack) Unwrap() error { return u.error }

// converse runs one transaction in which every statement waits for the one before. If use fails nothing of it remains,
// which the driver's own helper does not tell from a commit whose answer was lost.
func (s *Store) runTx(ctx context.Context, use func(pgx.Tx) error) error {
	tx, err := s.work.Begin(ctx)
	if err != nil {
		return &rolledBack{err}
	}
	if err := use(tx); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = tx.Rollback(ctx)
		return &rolledBack{err}
	}
	return tx.Commit(ctx)
}

// A pipe is one transaction whose first words travel with its BEGIN and whose last travel with its COMMIT: what is queued
// is sent by the next flush.
type pipeline struct {
	*pgx.Batch
	conn *pgxpool.Conn
}

// transact runs one transaction. If use fails nothing of it remains.
func (s *Store) transact(ctx context.Context, pool *pgxpool.Pool, use func(*pipeline) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return &rolledBack{err}
	}
	defer conn.Release() // which closes a connection that is still in a transaction
	p := &pipeline{&pgx.Batch{}, conn}
	p.Queue("begin")
	p.Queue(s.sql["configure_planner"])
	if err := use(p); err != nil {
		p.rollback()
		return &rolledBack{err}
	}
	p.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return errors.New("the transaction was rolled back")
		}
		return nil
	})
	if err := p.flush(ctx); err != nil {
		p.rollback()
		return err
	}
	return nil
}

// flush sends what is queued, in one round trip, and hands out the answers.
func (p *pipeline) flush(ctx context.Context) error {
	batch := p.Batch
	p.Batch = &pgx.Batch{}
	return p.conn.SendBatch(ctx, batch).Close()
}

// abandon rolls back in its own time, so that a caller who ran out of it does not cost a connection.
func (p *pipeline) rollback() {
	if conn := p.conn.Conn(); !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.PgConn().Exec(ctx, "rollback").Close()
	}
}

// one queues a query that answers with exactly one row.
func (p *pipeline) queueRow(sql string, args []any, into ...any) {
	p.Queue(sql, args...).QueryRow(func(row pgx.Row) error { return row.Scan(into...) })
}

// each queues a query and calls use for every row, with the columns in into.
func (p *pipeline) queueRows(sql string, args []any, into []any, use func() error) {
	p.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, into, use)
		return err
	})
}
