package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/inspect"
)

// readDeadline is longer than others, because an integrity check reads everything.
const readDeadline = 5 * time.Minute

// A querier lets the inspector read over the store's connections.
type querier struct{ s *Store }

func (q querier) Query(ctx context.Context, sql string, args []any, each func(inspect.Row) error) error {
	return q.query(ctx, "configure_planner_inspect", sql, args, each)
}

// QueryWhole is Query for a statement that reads whole tables.
func (q querier) QueryWhole(ctx context.Context, sql string, args []any, each func(inspect.Row) error) error {
	return q.query(ctx, "configure_planner_whole", sql, args, each)
}

// query runs a statement under the planner settings of the statement named settings.
func (q querier) query(ctx context.Context, settings, sql string, args []any, each func(inspect.Row) error) error {
	arguments := uuidArgs(args)
	ctx, cancel := withDeadline(ctx, readDeadline)
	defer cancel()
	seen := false // once a row was passed on, the query is not repeated
	var stopped error
	err := q.s.withRetries(ctx, "read", true, func(ctx context.Context) error {
		send := &pgx.Batch{}
		send.Queue(q.s.sql[settings])
		send.Queue(q.s.schema.qualify(sql), arguments...)
		return q.s.work.lend(ctx, func(conn *pgx.Conn) error {
			answers := conn.SendBatch(ctx, send)
			defer func() { _ = answers.Close() }()
			if _, err := answers.Exec(); err != nil {
				return err
			}
			rows, err := answers.Query()
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				seen = true
				if stopped = each(row{rows, rows.RawValues()}); stopped != nil {
					return nil
				}
			}
			if err := rows.Err(); err != nil && seen {
				return explain("read", err)
			} else if err != nil {
				return err
			}
			return nil
		})
	})
	if stopped != nil {
		return stopped
	}
	return err
}

func (q querier) Now(ctx context.Context) (now time.Time, err error) {
	err = q.s.withRetries(ctx, "read the clock", true, func(ctx context.Context) error {
		return q.s.work.queryRow(ctx, q.s.sql["now"], nil, &now)
	})
	return now.UTC(), err
}

// A row reads columns one at a time. NULL, or a value of another type, reads as the zero value.
type row struct {
	rows pgx.Rows
	raw  [][]byte
}

func (r row) scan(i int, into any) {
	if r.Null(i) {
		return
	}
	field := r.rows.FieldDescriptions()[i]
	_ = r.rows.Conn().TypeMap().Scan(field.DataTypeOID, field.Format, r.raw[i], into)
}

func (r row) Null(i int) bool             { return i < 0 || i >= len(r.raw) || r.raw[i] == nil }
func (r row) ID(i int) (id holdfast.ID)   { r.scan(i, (*[16]byte)(&id)); return id }
func (r row) Text(i int) (s string)       { r.scan(i, &s); return s }
func (r row) Float(i int) (f float64)     { r.scan(i, &f); return f }
func (r row) Bool(i int) (b bool)         { r.scan(i, &b); return b }
func (r row) Texts(i int) (list []string) { r.scan(i, &list); return list }

func (r row) Int(i int) int {
	var n int64
	r.scan(i, &n)
	return int(n)
}

func (r row) Time(i int) time.Time {
	var t time.Time
	r.scan(i, &t)
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}
