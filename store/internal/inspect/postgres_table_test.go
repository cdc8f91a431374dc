package inspect

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// postgresTables is a Querier over a new schema on PostgreSQL, without a store. Its triggers are off, so that the
// tables contain exactly what a test inserts.
type postgresTables struct {
	t    testing.TB
	conn *pgx.Conn
}

func openPostgres(t testing.TB) campaigner {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	s := &postgresTables{t, conn}
	for _, step := range sqltext.Migrations(Postgres) {
		s.plant(step.SQL)
	}
	s.plant("SET session_replication_role = replica")
	return s
}

func (s *postgresTables) plant(script string) {
	s.t.Helper()
	if _, err := s.conn.Exec(s.t.Context(), script); err != nil {
		s.t.Fatalf("planting %.300s: %v", script, err)
	}
}

func (s *postgresTables) Now(context.Context) (time.Time, error) { return noon, nil }

func (s *postgresTables) Query(ctx context.Context, text string, args []any, each func(Row) error) error {
	given := make([]any, len(args))
	for n, arg := range args {
		if id, is := arg.(holdfast.ID); is {
			arg = [16]byte(id)
		}
		given[n] = arg
	}
	rows, err := s.conn.Query(ctx, text, given...)
	if err != nil {
		return errors.Join(err, errors.New(text))
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(postgresRow{rows, rows.RawValues()}); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return errors.Join(err, errors.New(text))
	}
	return nil
}

// A postgresRow reads PostgreSQL's values.
type postgresRow struct {
	rows pgx.Rows
	raw  [][]byte
}

func (r postgresRow) scan(i int, into any) {
	if field := r.rows.FieldDescriptions()[i]; !r.Null(i) {
		_ = r.rows.Conn().TypeMap().Scan(field.DataTypeOID, field.Format, r.raw[i], into)
	}
}

func (r postgresRow) Null(i int) bool              { return r.raw[i] == nil }
func (r postgresRow) ID(i int) (id holdfast.ID)    { r.scan(i, (*[16]byte)(&id)); return id }
func (r postgresRow) Text(i int) (s string)        { r.scan(i, &s); return s }
func (r postgresRow) Int(i int) (n int)            { r.scan(i, &n); return n }
func (r postgresRow) Float(i int) (f float64)      { r.scan(i, &f); return f }
func (r postgresRow) Bool(i int) (b bool)          { r.scan(i, &b); return b }
func (r postgresRow) Texts(i int) (texts []string) { r.scan(i, &texts); return texts }

func (r postgresRow) Time(i int) time.Time {
	var t time.Time
	if r.scan(i, &t); t.IsZero() {
		return t
	}
	return t.UTC()
}
