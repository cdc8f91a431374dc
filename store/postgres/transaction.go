package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfastdev/holdfast"
)

const (
	defaultDeadline = 15 * time.Second // of a call whose context has no deadline
	maxRetries      = 5                // after transient errors
)

// A database is what all calls use: the statements, and the connections for work. All its methods are safe for concurrent use.
type database struct {
	sql    map[string]string // the statements by name
	schema schema            // of all tables; sql names it already
	work   connections
	closed atomic.Bool
}

// withDeadline adds a deadline to a context that has none, so that no call waits forever for a database that does not answer.
func withDeadline(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}

// withRetries runs one operation under a deadline and repeats it after transient errors, at most maxRetries times. After an error that rolled the
// transaction back for certain (deadlock, serialization failure) it always repeats. After a lost connection the transaction may have committed, so it
// repeats only if repeatable is set: the operation then has to detect its own earlier effect.
func (d *database) withRetries(ctx context.Context, verb string, repeatable bool, try func(context.Context) error) error {
	if d.closed.Load() {
		return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "could not " + verb + ": the store is closed"}
	}
	ctx, cancel := withDeadline(ctx, defaultDeadline)
	defer cancel()
	for n := 0; ; n++ {
		err := try(ctx)
		if err != nil && ctx.Err() != nil {
			return explain(verb, errors.Join(ctx.Err(), err)) // the driver may report only that the statement was cancelled
		}
		if err == nil || n == maxRetries || !retryable(err, repeatable) {
			return explain(verb, err)
		}
		backoff(ctx, n)
	}
}

// backoff waits before retry n: about 5 ms, doubled each time, with random jitter.
func backoff(ctx context.Context, n int) {
	wait := time.NewTimer(time.Duration(float64(5*time.Millisecond<<n) * (0.5 + rand.Float64())))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// retryable reports whether repeating a failed operation may help and is safe. repeatable says whether the operation may run again although it may
// have committed.
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
		return !errors.As(err, &refusal) || strings.HasPrefix(refusal.Code, "57P") || strings.HasPrefix(refusal.Code, "08") // 08: a pooler that cannot reach its server
	case !errors.As(err, &refusal):
		return repeatable // connection lost. pgconn.SafeToRetry is not used: it can also report true after a lost commit
	case refusal.Code == "40001" || refusal.Code == "40P01" || refusal.Code == "26000" || refusal.Code == "0A000":
		return true // rolled back for certain: serialization failure, deadlock, outdated prepared statement
	}
	return repeatable && (strings.HasPrefix(refusal.Code, "57P") || strings.HasPrefix(refusal.Code, "08"))
}

// errAlreadyFinished means that a job has a finished row already, and the statement that found it cannot skip it.
var errAlreadyFinished = errors.New("a job has an end already")

// mayHaveCommitted reports whether the operation may have taken effect although it returned this error.
func mayHaveCommitted(err error) bool { return retryable(err, true) && !retryable(err, false) }

// explain turns an error of the driver into a holdfast.Error: one line that is safe to show, with the driver's error as its hidden cause. A
// holdfast.Error is returned as it is.
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
		reason = fmt.Sprintf("the database answered: %s (%s)", oneLine(refusal.Message), refusal.Code)
	case errors.As(err, &foreign):
		reason = fmt.Sprintf("the database refused it (%s)", foreign.SQLState())
	case errors.As(err, &connecting):
		reason = "the database cannot be reached: check that it runs and that the address is right"
	}
	return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "could not " + verb + ": " + reason, Cause: &hiddenCause{err}}
}

// unwrapRolledBack removes the rolledBack wrapper.
func unwrapRolledBack(err error) error {
	if u, ok := err.(*rolledBack); ok {
		return u.error
	}
	return err
}

// oneLine replaces all white space by single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// hiddenCause keeps a cause for errors.Is and errors.As without its text, which may contain the database address.
type hiddenCause struct{ err error }

func (h *hiddenCause) Error() string { return "the database driver reported an error" }
func (h *hiddenCause) Unwrap() error { return h.err }

// rolledBack wraps an error that occurred before COMMIT was sent: the transaction has no effect.
type rolledBack struct{ error }

func (u *rolledBack) Unwrap() error { return u.error }

// runTx runs a transaction whose statements are sent one at a time. If use returns an error, the transaction is rolled back and the error is wrapped
// in rolledBack. pgx.BeginFunc is not used because its error does not distinguish this case from a COMMIT whose answer was lost.
func (d *database) runTx(ctx context.Context, use func(pgx.Tx) error) error {
	return d.work.lend(ctx, func(conn *pgx.Conn) error {
		tx, err := conn.Begin(ctx)
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
	})
}

// A pipeline is a transaction whose statements are queued and sent together: the first statements travel with BEGIN, the last ones with COMMIT.
// Queued statements run at the next flush.
type pipeline struct {
	*pgx.Batch
	conn   *pgx.Conn
	schema schema
}

// transact runs a pipelined transaction. If use returns an error, the transaction is rolled back and the error is wrapped in rolledBack. Any other
// error comes from the last flush, which includes COMMIT, so the transaction may have committed.
func (d *database) transact(ctx context.Context, on connections, use func(*pipeline) error) error {
	return on.lend(ctx, func(conn *pgx.Conn) error { return d.transactOn(ctx, conn, use) })
}

func (d *database) transactOn(ctx context.Context, conn *pgx.Conn, use func(*pipeline) error) error {
	p := &pipeline{&pgx.Batch{}, conn, d.schema}
	p.Queue("begin")
	p.Queue(d.sql["configure_planner"])
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

// newBatch returns a batch for statements that run in one round trip and one implicit transaction.
func (d *database) newBatch() *pgx.Batch {
	b := &pgx.Batch{}
	b.Queue(d.sql["configure_planner"])
	return b
}

// flush sends the queued statements in one round trip and runs their result callbacks.
func (p *pipeline) flush(ctx context.Context) error {
	batch := p.Batch
	p.Batch = &pgx.Batch{}
	return p.conn.SendBatch(ctx, batch).Close()
}

// rollback rolls back with a timeout of its own, so that a caller whose context has ended does not cost the pool a connection.
func (p *pipeline) rollback() {
	if conn := p.conn; !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.PgConn().Exec(ctx, "rollback").Close()
	}
}

// queueRow queues a query that returns exactly one row.
func (p *pipeline) queueRow(sql string, args []any, into ...any) {
	p.Queue(sql, args...).QueryRow(func(row pgx.Row) error { return row.Scan(into...) })
}

// queueRows queues a query and calls use for every row, with its columns scanned into into.
func (p *pipeline) queueRows(sql string, args []any, into []any, use func() error) {
	queueRows(p.Batch, sql, args, into, use)
}

// queueRows is pipeline.queueRows for any batch.
func queueRows(b *pgx.Batch, sql string, args []any, into []any, use func() error) {
	b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, into, use)
		return err
	})
}
