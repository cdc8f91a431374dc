package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/inspect"
)

// Jobs lists jobs as the caller's transaction sees them.
func (g txStore) Jobs(ctx context.Context, f store.Filter) ([]holdfast.Job, string, error) {
	q, err := g.session(ctx)
	if err != nil {
		return nil, "", err
	}
	return g.s.Inspector.On(callerQuerier{g.s, q}).Jobs(ctx, f)
}

// A callerQuerier lets the inspector read in the caller's transaction.
type callerQuerier struct {
	s *Store
	q session
}

func (q callerQuerier) Now(ctx context.Context) (now time.Time, err error) {
	err = q.q.query(ctx, q.s.sql["now"], nil, func(scan func(...any) error) error { return scan(&now) })
	return now.UTC(), explain("read the clock", err)
}

// Query runs one statement in the transaction, and calls each for every row.
func (q callerQuerier) Query(ctx context.Context, text string, args []any, each func(inspect.Row) error) error {
	ctx, cancel := withDeadline(ctx, readDeadline)
	defer cancel()
	var stopped error
	err := q.q.rows(ctx, q.s.schema.qualify(text), args, func(r inspect.Row) error {
		stopped = each(r)
		return stopped
	})
	if stopped != nil {
		return stopped
	}
	return explain("read", err)
}

// rows runs a statement and calls each for every row.
func (n pgxSession) rows(ctx context.Context, text string, args []any, each func(inspect.Row) error) error {
	rows, err := n.Query(ctx, text, uuidArgs(args)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(row{rows, rows.RawValues()}); err != nil {
			return err
		}
	}
	return rows.Err()
}

// uuidArgs converts ids to a type that pgx sends as a uuid.
func uuidArgs(args []any) []any {
	converted := make([]any, len(args))
	for i, arg := range args {
		if id, ok := arg.(holdfast.ID); ok {
			arg = pgtype.UUID{Bytes: id, Valid: true}
		}
		converted[i] = arg
	}
	return converted
}

// rows runs a statement and calls each for every row. It uses only what every driver for PostgreSQL can do.
func (f sqlSession) rows(ctx context.Context, text string, args []any, each func(inspect.Row) error) error {
	sent := make([]any, len(args))
	for i, arg := range args {
		if id, ok := arg.(holdfast.ID); ok {
			arg = id.String()
		}
		sent[i] = arg
	}
	rows, err := f.QueryContext(ctx, text, sent...)
	if err != nil {
		return err
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

// A valueRow is a row as database/sql returns it. Drivers differ in whether a uuid, an array or a JSON value is a string or bytes. A value of another type than
// asked for reads as the zero value.
type valueRow []any

func (r valueRow) Null(i int) bool { return r[i] == nil }

func (r valueRow) Text(i int) string {
	switch v := r[i].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

func (r valueRow) ID(i int) (id holdfast.ID) {
	switch v := r[i].(type) {
	case [16]byte:
		return v
	case []byte:
		if len(v) == len(id) {
			copy(id[:], v)
			return id
		}
	}
	id, _ = holdfast.ParseID(r.Text(i))
	return id
}

func (r valueRow) Int(i int) int {
	switch v := r[i].(type) {
	case int64:
		return int(v)
	case float64:
		return int(v)
	}
	return 0
}

func (r valueRow) Float(i int) float64 {
	if f, ok := r[i].(float64); ok {
		return f
	}
	return float64(r.Int(i))
}

func (r valueRow) Bool(i int) bool {
	b, _ := r[i].(bool)
	return b
}

func (r valueRow) Time(i int) time.Time {
	at, _ := r[i].(time.Time)
	if at.IsZero() {
		return time.Time{}
	}
	return at.UTC()
}

func (r valueRow) Texts(i int) (texts []string) {
	if text := r.Text(i); text != "" && pgtype.NewMap().Scan(pgtype.TextArrayOID, pgx.TextFormatCode, []byte(text), &texts) != nil {
		return nil
	}
	return texts
}
