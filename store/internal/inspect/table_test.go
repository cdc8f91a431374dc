package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// noon is when everything in these tests happens; planted instants are microseconds before or after it.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// tables is a Querier over a new schema in memory, without a store, so that a test can insert any row.
type tables struct {
	t    testing.TB
	conn *sqlite.Conn
	now  time.Time
}

func openTables(t testing.TB) *tables {
	t.Helper()
	conn, err := sqlite.OpenConn(":memory:", sqlite.OpenReadWrite, sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s := &tables{t: t, conn: conn, now: noon}
	for _, step := range sqltext.Migrations(SQLite) {
		s.plant(step.SQL)
	}
	return s
}

// plant runs a script, in which NOON stands for the time of these tests.
func (s *tables) plant(script string) {
	s.t.Helper()
	script = "PRAGMA ignore_check_constraints = ON;\n" + script
	if err := sqlitex.ExecuteScript(s.conn, replaceNoon(script), nil); err != nil {
		s.t.Fatalf("planting %.300s: %v", script, err)
	}
}

func (s *tables) Now(context.Context) (time.Time, error) { return s.now, nil }

func (s *tables) Query(_ context.Context, text string, args []any, each func(Row) error) error {
	stmt, err := s.conn.Prepare(text)
	if err != nil {
		return fmt.Errorf("%w in %s", err, text)
	}
	defer func() { _ = stmt.Reset() }()
	for n, arg := range args {
		name := fmt.Sprintf("$%d", n+1)
		switch v := arg.(type) {
		case holdfast.ID:
			stmt.SetBytes(name, v[:])
		case time.Time:
			stmt.SetInt64(name, v.UnixMicro())
		case string:
			stmt.SetText(name, v)
		case int:
			stmt.SetInt64(name, int64(v))
		default:
			return fmt.Errorf("argument %T", arg)
		}
	}
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return err
		}
		if err := each(row{stmt}); err != nil {
			return err
		}
	}
}

// A row reads SQLite's values.
type row struct{ stmt *sqlite.Stmt }

func (r row) Null(i int) bool     { return r.stmt.ColumnIsNull(i) }
func (r row) Text(i int) string   { return r.stmt.ColumnText(i) }
func (r row) Int(i int) int       { return r.stmt.ColumnInt(i) }
func (r row) Float(i int) float64 { return r.stmt.ColumnFloat(i) }
func (r row) Bool(i int) bool     { return r.stmt.ColumnInt(i) != 0 }

func (r row) ID(i int) (id holdfast.ID) {
	if r.stmt.ColumnLen(i) == len(id) {
		r.stmt.ColumnBytes(i, id[:])
	}
	return id
}

func (r row) Time(i int) time.Time {
	if r.Null(i) {
		return time.Time{}
	}
	return time.UnixMicro(r.stmt.ColumnInt64(i)).UTC()
}

func (r row) Texts(i int) (texts []string) {
	_ = json.Unmarshal([]byte(r.Text(i)), &texts)
	return texts
}
