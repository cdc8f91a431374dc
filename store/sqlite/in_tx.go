package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// In returns the store as the application's own *sql.Tx on the same file sees it: the jobs exist if and when that
// transaction commits. Open the handle with [DSN] and the pure-Go driver (modernc.org/sqlite): two different builds of
// SQLite in one process release each other's file locks. The first Enqueue refuses a transaction of another type.
func (s *Store) In(tx any) store.Tx {
	return &txStore{store: s, tx: tx}
}

// A txStore enqueues in the application's transaction.
type txStore struct {
	store *Store
	tx    any
}

// Enqueue adds the drafts to the application's transaction, all or none. After a refusal the transaction can still be
// used.
func (b *txStore) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	prepared, err := prepareAll(drafts, rule.Drafts)
	if err == nil {
		err = b.store.space.check()
	}
	if _, ok := b.tx.(*sql.Tx); ok && len(drafts) == 0 || err != nil {
		return nil, err
	}
	var receipts []holdfast.Receipt
	err = b.inSavepoint(ctx, func(to *callerTx) (err error) {
		receipts, err = enqueue(to, b.store.now().UnixMicro(), prepared)
		return err
	})
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// A callerTx is an executor on the application's transaction. It uses only SQL that every driver understands. Lanes are
// looked up in that transaction and not remembered, because it may never commit.
type callerTx struct {
	ctx context.Context
	tx  *sql.Tx
}

func (f *callerTx) exec(name string, args ...any) (int, error) {
	result, err := f.tx.ExecContext(f.ctx, statements[name], driverArgs(args)...)
	if err != nil {
		return 0, err
	}
	changed, err := result.RowsAffected()
	return int(changed), err
}

func (f *callerTx) add(name string, row ...any) (bool, error) {
	added, err := f.exec(name, row...)
	return added > 0, err
}

// emitQueued writes the page of the new jobs at once.
func (f *callerTx) emitQueued(now int64, receipts []holdfast.Receipt) error {
	if heard, err := f.one("check_queued_listener", nil, new(int)); err != nil || !heard {
		return err
	}
	p := page{name: store.EventQueued, at: now}
	for i := range receipts {
		if !receipts[i].Existing {
			p.jobs, p.tokens = append(p.jobs, receipts[i].ID[:]...), append(p.tokens, 0)
		}
	}
	if len(p.tokens) == 0 {
		return nil
	}
	return writePages(f, []page{p})
}

func (f *callerTx) one(name string, args []any, into ...any) (bool, error) {
	targets := make([]any, len(into))
	for i, target := range into {
		if id, ok := target.(*holdfast.ID); ok {
			target = (*idColumn)(id)
		}
		targets[i] = target
	}
	err := f.tx.QueryRowContext(f.ctx, statements[name], driverArgs(args)...).Scan(targets...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (f *callerTx) lane(w laneKey) (int64, error) {
	var id int64
	if found, err := f.one("lane_find", []any{w.queue, w.kind, w.owner, w.dependency}, &id); found || err != nil {
		return id, err
	}
	return makeLane(f, w)
}

// explain returns a refusal of the store unchanged, and reports any other error as a failure of the application's
// transaction.
func (f *callerTx) explain(err error) error {
	if refusal := (*holdfast.Error)(nil); errors.As(err, &refusal) {
		return refusal
	}
	return unavailable("the transaction could not be changed: roll it back and try again", err)
}

// driverArgs converts arguments to types that database/sql knows.
func driverArgs(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case holdfast.ID:
			arg = v[:]
		case *holdfast.ID:
			arg = v[:]
		case *int64:
			arg = *v
		case *string:
			arg = *v
		case json.RawMessage:
			arg = string(v)
		case int:
			arg = int64(v)
		case bool:
			arg = int64(0)
			if v {
				arg = int64(1)
			}
		}
		out[i] = arg
	}
	return out
}

// An idColumn scans the sixteen bytes of an id.
type idColumn holdfast.ID

// Scan implements sql.Scanner.
func (c *idColumn) Scan(value any) error {
	b, ok := value.([]byte)
	if !ok || len(b) != len(c) {
		return fmt.Errorf("an id of %T: expected 16 bytes", value)
	}
	copy(c[:], b)
	return nil
}
