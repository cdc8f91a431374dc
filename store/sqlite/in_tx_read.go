package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/inspect"
)

// Jobs lists jobs as the application's transaction sees them.
func (b *txStore) Jobs(ctx context.Context, f store.Filter) ([]holdfast.Job, string, error) {
	tx, err := b.callerTx()
	if err != nil {
		return nil, "", err
	}
	return b.store.Inspector.On(callerQuerier{b.store, tx}).Jobs(ctx, f)
}

// callerTx returns the application's transaction, or ErrInvalid if its type is not supported.
func (b *txStore) callerTx() (*sql.Tx, error) {
	if tx, ok := b.tx.(*sql.Tx); ok && tx != nil {
		return tx, nil
	}
	return nil, invalid("a transaction of type %T: pass a *sql.Tx on the same SQLite file", b.tx)
}

// A callerQuerier lets the inspector read in the application's transaction.
type callerQuerier struct {
	store *Store
	tx    *sql.Tx
}

// Now returns the store's time.
func (q callerQuerier) Now(context.Context) (time.Time, error) { return q.store.now(), nil }

// Query runs one statement in the transaction, and calls each for every row.
func (q callerQuerier) Query(ctx context.Context, text string, args []any, each func(inspect.Row) error) error {
	rows, err := q.tx.QueryContext(ctx, positionalParams(text), driverArgs(args)...)
	if err != nil {
		return unavailable("the transaction could not be read: roll it back and try again", err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, targets := make(valueRow, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		if err := each(values); err != nil {
			return err
		}
	}
	return rows.Err()
}

// A valueRow is a row as database/sql returns it: int64, float64, string, []byte or nil in each column. A value of another type than asked for reads as the
// zero value.
type valueRow []any

func (r valueRow) Null(i int) bool { return r[i] == nil }

func (r valueRow) ID(i int) (id holdfast.ID) {
	if b, ok := r[i].([]byte); ok && len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

func (r valueRow) Text(i int) string {
	switch v := r[i].(type) {
	case string:
		return strings.ToValidUTF8(v, "\uFFFD")
	case []byte:
		if len(v) == len(holdfast.ID{}) {
			return r.ID(i).String()
		}
		return strings.ToValidUTF8(string(v), "\uFFFD")
	}
	return ""
}

func (r valueRow) int64(i int) int64 {
	n, _ := r[i].(int64)
	return n
}

func (r valueRow) Int(i int) int   { return int(r.int64(i)) }
func (r valueRow) Bool(i int) bool { return r.int64(i) != 0 }

func (r valueRow) Float(i int) float64 {
	if f, ok := r[i].(float64); ok {
		return f
	}
	return float64(r.int64(i))
}

func (r valueRow) Time(i int) time.Time {
	if micros, ok := r[i].(int64); ok {
		return instant(micros)
	}
	return time.Time{}
}

func (r valueRow) Texts(i int) (texts []string) {
	if text := r.Text(i); text != "" && json.Unmarshal([]byte(text), &texts) != nil {
		return nil
	}
	return texts
}
