package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// In returns the store as the caller's transaction sees it: a pgx.Tx, or an *sql.Tx of any PostgreSQL driver.
func (s *Store) In(tx any) store.Tx { return txStore{s, tx} }

// A txStore writes in the caller's transaction. If it refuses a call, the transaction is as it was before the call and can still be used.
type txStore struct {
	s  *Store
	tx any
}

// maxDraftsPerStatement is how many drafts one statement in a caller's transaction inserts.
const maxDraftsPerStatement = 500

func (g txStore) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	q, err := g.session(ctx)
	if err != nil {
		return nil, err
	}
	if len(drafts) == 0 {
		return []holdfast.Receipt{}, nil
	}
	entries, err := g.s.prepare(ctx, g.s.beside, drafts, rule.Drafts)
	if err != nil {
		return nil, err
	}
	if err := g.s.size.check(ctx, g.s.beside, g.s.sql); err != nil {
		return nil, err
	}
	ctx, cancel := withDeadline(ctx, defaultDeadline)
	defer cancel()
	receipts, err := g.insert(ctx, q, entries)
	return receipts, explain("enqueue", err)
}

// session returns the caller's transaction, or ErrInvalid if its type is not supported.
func (g txStore) session(ctx context.Context) (session, error) {
	switch tx := g.tx.(type) {
	case pgx.Tx:
		return pgxTxSession(ctx, tx)
	case *sql.Tx:
		return sqlSession{tx}, nil
	}
	return nil, &holdfast.Error{Err: holdfast.ErrInvalid,
		Message: fmt.Sprintf("a transaction of type %T: give a pgx.Tx or an *sql.Tx of a PostgreSQL database", g.tx)}
}

// pgxTxSession returns a session that prepares no statements by name if the connection goes through a pooler, whatever the caller's pool does with
// the caller's own statements.
func pgxTxSession(ctx context.Context, tx pgx.Tx) (session, error) {
	conn := tx.Conn()
	if conn == nil { // a wrapper of the caller around another transaction
		return pgxSession{tx}, nil
	}
	viaPooler, err := pooled(ctx, conn.PgConn())
	if err != nil {
		return nil, explain("enqueue", err)
	}
	if viaPooler {
		return pgxSession{unprepared{tx}}, nil
	}
	return pgxSession{tx}, nil
}

// unprepared sends statements without preparing them by name.
type unprepared struct{ execQuerier }

func (u unprepared) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return u.execQuerier.Exec(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
}

func (u unprepared) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return u.execQuerier.Query(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
}

// insert writes the entries. If the call can be refused, it uses a savepoint: a refused call must leave nothing behind, and a failed statement would
// otherwise abort the caller's transaction.
func (g txStore) insert(ctx context.Context, q session, entries []entry) ([]holdfast.Receipt, error) {
	guarded := slices.ContainsFunc(entries, func(e entry) bool { return e.given || e.mayConflict() })
	if guarded {
		if err := q.exec(ctx, "SAVEPOINT holdfast_enqueue"); err != nil {
			return nil, err
		}
	}
	receipts, fresh, err := g.write(ctx, q, entries)
	switch {
	case !guarded:
		return receipts, err
	case err == nil:
		return receipts, q.exec(ctx, "RELEASE SAVEPOINT holdfast_enqueue")
	}
	if back := q.exec(ctx, "ROLLBACK TO SAVEPOINT holdfast_enqueue"); back == nil {
		_ = q.exec(ctx, "RELEASE SAVEPOINT holdfast_enqueue")
	}
	return nil, g.s.explainDuplicate(ctx, q, fresh, err) // entries that matched existing jobs were not inserted
}

// write inserts the entries, and also returns those that had to be inserted.
func (g txStore) write(ctx context.Context, q session, entries []entry) (receipts []holdfast.Receipt, fresh []entry, err error) {
	a, err := g.s.admit(ctx, q, entries, false)
	if err != nil {
		return nil, entries, err
	}
	if err := a.write(ctx, nil, holdfast.ID{}); err != nil {
		return nil, a.fresh, err
	}
	changed := a.changed()
	g.s.planner.noteCallerTx(changed)
	return a.receipts, a.fresh, g.notify(ctx, q, changed)
}

// notify wakes workers of new jobs. The notification is part of the caller's transaction, because the jobs become visible with its commit.
func (g txStore) notify(ctx context.Context, q session, fresh []entry) error {
	for _, queue := range queuesOf(fresh) {
		if err := q.query(ctx, g.s.sql["notify"], []any{callerTxWake + " " + queue}, func(func(...any) error) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// queuesOf returns the queues in which entries are claimable at once.
func queuesOf(entries []entry) []string {
	var queues []string
	for _, e := range entries {
		if e.Delay == 0 && len(e.edges) == 0 && !slices.Contains(queues, e.Queue) {
			queues = append(queues, e.Queue)
		}
	}
	return queues
}

// pgxSession is a transaction or connection of pgx.
type pgxSession struct{ execQuerier }

// An execQuerier is what pgx transactions, pools and connections have in common.
type execQuerier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (n pgxSession) exec(ctx context.Context, sql string, args ...any) error {
	_, err := n.Exec(ctx, sql, args...)
	return err
}

func (n pgxSession) query(ctx context.Context, sql string, args []any, each func(scan func(...any) error) error) error {
	rows, err := n.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// sqlSession is a transaction of database/sql.
type sqlSession struct{ *sql.Tx }

func (f sqlSession) exec(ctx context.Context, sql string, args ...any) error {
	_, err := f.ExecContext(ctx, sql, args...)
	return err
}

func (f sqlSession) query(ctx context.Context, sql string, args []any, each func(scan func(...any) error) error) error {
	rows, err := f.QueryContext(ctx, sql, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
