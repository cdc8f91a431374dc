package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

var dollarParam = regexp.MustCompile(`\$([0-9]+)`)

// positionalParams writes $1 as ?1. SQLite treats $1 as a named parameter and ?1 as a position.
func positionalParams(sql string) string { return dollarParam.ReplaceAllString(sql, "?$1") }

// statements maps the name of a statement to its text. Each insert also has forms that insert several rows at once,
// under the name that multiRowName gives.
var statements = func() map[string]string {
	all := sqltext.Load("sqlite")
	for name, text := range sqltext.Load("sqlite") {
		all[name] = positionalParams(text)
		for _, rows := range rowCounts {
			all[multiRowName(name, rows)] = multiRowInsert(all[name], rows)
		}
	}
	return all
}()

// A session is one connection with its prepared statements. It must be used by one goroutine at a time.
type session struct {
	conn     *sqlite.Conn
	prepared map[string]*sqlite.Stmt
	trace    func(statement string) // nil: not traced
}

// statement returns a prepared statement by its name.
func (s *session) statement(name string) (*sqlite.Stmt, error) {
	if s.trace != nil {
		s.trace(name)
	}
	if st := s.prepared[name]; st != nil {
		return st, nil
	}
	text, ok := statements[name]
	if !ok {
		return nil, fmt.Errorf("there is no statement %q", name)
	}
	st, _, err := s.conn.PrepareTransient(text)
	if err == nil {
		s.prepared[name] = st
	}
	return st, err
}

// exec runs a statement that returns no rows, and returns how many rows it changed.
func (s *session) exec(name string, args ...any) (int, error) {
	st, err := s.statement(name)
	if err != nil {
		return 0, err
	}
	for i, arg := range args {
		bind(st, i+1, arg)
	}
	if _, err = st.Step(); err != nil {
		return 0, err
	}
	if err = st.Reset(); err != nil {
		return 0, err
	}
	return s.conn.Changes(), nil
}

// rows calls each for every row of a statement. each must not run the same statement.
func (s *session) rows(name string, args []any, each func(*sqlite.Stmt) error) error {
	st, err := s.statement(name)
	if err != nil {
		return err
	}
	for i, arg := range args {
		bind(st, i+1, arg)
	}
	for {
		more, err := st.Step()
		if err != nil {
			return err
		}
		if !more {
			return st.Reset()
		}
		if err := each(st); err != nil {
			_ = st.Reset()
			return err
		}
	}
}

// one reads the first row of a statement into the targets, and reports whether there is one.
func (s *session) one(name string, args []any, into ...any) (found bool, err error) {
	st, err := s.statement(name)
	if err != nil {
		return false, err
	}
	for i, arg := range args {
		bind(st, i+1, arg)
	}
	if found, err = st.Step(); err != nil {
		return false, err
	}
	if found {
		for i, target := range into {
			scan(st, i, target)
		}
	}
	return found, st.Reset()
}

// idsPerQuery is how many ids a statement with a list of ids has.
const idsPerQuery = 16

// rowsByID runs a statement with a list of ids, idsPerQuery ids at a time, and calls each for every row. each may be
// nil if the statement returns no rows.
func (s *session) rowsByID(name string, jobs []holdfast.ID, each func(*sqlite.Stmt) error) error {
	for len(jobs) > 0 {
		args := make([]any, idsPerQuery)
		n := min(idsPerQuery, len(jobs))
		for i := range n {
			args[i] = jobs[i]
		}
		jobs = jobs[n:]
		if err := s.rows(name, args, each); err != nil {
			return err
		}
	}
	return nil
}

// close finalizes the prepared statements and closes the connection.
func (s *session) close() error {
	for _, st := range s.prepared {
		_ = st.Finalize() // repeats the error of the last run, which was reported then
	}
	return s.conn.Close()
}

// runScript runs the statements of a text that is needed once.
func (s *session) runScript(text string) error {
	for text = strings.TrimSpace(text); text != ""; {
		st, rest, err := s.conn.PrepareTransient(text)
		if err != nil {
			return err
		}
		if s.trace != nil {
			s.trace(text[:len(text)-rest])
		}
		_, err = st.Step()
		if ended := st.Finalize(); err == nil {
			err = ended
		}
		if err != nil {
			return err
		}
		text = strings.TrimSpace(text[len(text)-rest:])
	}
	return nil
}

// queryValue returns the first value of the first row, as PRAGMA statements return it.
func (s *session) queryValue(text string) (answer string, err error) {
	st, _, err := s.conn.PrepareTransient(text)
	if err != nil {
		return "", err
	}
	defer st.Finalize()
	if found, err := st.Step(); err != nil || !found {
		return "", err
	}
	return st.ColumnText(0), nil
}

// bind sets a parameter of a statement. An absent optional value is nil. Callers that bind many values pass pointers to
// values that do not change meanwhile: that avoids a heap allocation each.
func bind(st *sqlite.Stmt, i int, value any) {
	switch v := value.(type) {
	case nil:
		st.BindNull(i)
	case holdfast.ID:
		st.BindBytes(i, v[:])
	case *holdfast.ID:
		st.BindBytes(i, v[:])
	case int:
		st.BindInt64(i, int64(v))
	case int64:
		st.BindInt64(i, v)
	case *int64:
		st.BindInt64(i, *v)
	case string:
		st.BindText(i, v)
	case *string:
		st.BindText(i, *v)
	case holdfast.State:
		st.BindText(i, string(v))
	case store.Charge:
		st.BindText(i, string(v))
	case []byte:
		st.BindBytes(i, v)
	case json.RawMessage:
		st.BindText(i, string(v))
	case bool:
		st.BindBool(i, v)
	case float64:
		st.BindFloat(i, v)
	case time.Time:
		st.BindInt64(i, v.UnixMicro())
	default:
		panic(fmt.Sprintf("no statement takes an argument of type %T", value))
	}
}

// scan reads a column into a target.
func scan(st *sqlite.Stmt, i int, target any) {
	switch t := target.(type) {
	case *holdfast.ID:
		*t = columnID(st, i)
	case *int:
		*t = st.ColumnInt(i)
	case *int64:
		*t = st.ColumnInt64(i)
	case *bool:
		*t = st.ColumnInt64(i) != 0
	case *string:
		*t = st.ColumnText(i)
	case *[]byte:
		*t = make([]byte, st.ColumnLen(i))
		st.ColumnBytes(i, *t)
	default:
		panic(fmt.Sprintf("no column is read into a value of type %T", target))
	}
}

// columnID reads an id. A column that is not sixteen bytes long reads as the zero id.
func columnID(st *sqlite.Stmt, i int) (id holdfast.ID) {
	if st.ColumnLen(i) == len(id) {
		st.ColumnBytes(i, id[:])
	}
	return id
}

// highestID sorts after every id: it is longer.
var highestID = bytes.Repeat([]byte{0xff}, len(holdfast.ID{})+1)

// columnTime reads an instant. A column that is not an integer, such as NULL, reads as the zero time.
func columnTime(st *sqlite.Stmt, i int) time.Time {
	if st.ColumnType(i) != sqlite.TypeInteger {
		return time.Time{}
	}
	return instant(st.ColumnInt64(i))
}

// instant converts stored microseconds to a time in UTC.
func instant(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// nullIfEmpty returns NULL for an empty text.
func nullIfEmpty(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// clean makes a text storable in every database: valid UTF-8 without NUL.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}
