package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/inspect"
	"zombiezen.com/go/sqlite"
)

// How many connections read, and how many statements each keeps prepared.
const (
	readers     = 4
	maxPrepared = 64
)

// A reader is a small pool of connections for reading. They see committed rows only, and never wait for the writer. It
// is safe for concurrent use.
type reader struct {
	path   string
	idle   chan *session // nil: the connection is not open yet
	closed chan struct{}
}

func newReader(path string, size int) *reader {
	r := &reader{path: path, idle: make(chan *session, size), closed: make(chan struct{})}
	for range size {
		r.idle <- nil
	}
	return r
}

// close waits for the reads in progress and closes the connections.
func (r *reader) close() (err error) {
	close(r.closed)
	for range cap(r.idle) {
		if s := <-r.idle; s != nil {
			err = errors.Join(err, s.close())
		}
	}
	return err
}

// with calls read with a connection of the pool. ctx interrupts the read. A connection that fails is replaced.
func (r *reader) with(ctx context.Context, read func(*session) error) (err error) {
	var s *session
	select {
	case <-r.closed:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	case s = <-r.idle:
	}
	defer func() { r.idle <- s }()
	if s == nil {
		if s, err = r.open(); err != nil {
			return err
		}
	}
	s.conn.SetInterrupt(ctx.Done())
	err = read(s)
	s.conn.SetInterrupt(nil)
	if broken(err) {
		_ = s.close()
		s = nil
	}
	if ctx.Err() != nil && sqlite.ErrCode(err) == sqlite.ResultInterrupt {
		err = ctx.Err()
	}
	return err
}

// open opens a connection for reading. The file is opened for writing nevertheless: a reader of a write-ahead log must
// take part in its locks.
func (r *reader) open() (*session, error) {
	conn, err := sqlite.OpenConn(r.path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	conn.SetBusyTimeout(5 * time.Second) // readers wait only for the recovery of the log after a crash
	s := &session{conn: conn, prepared: map[string]*sqlite.Stmt{}}
	if err := s.runScript("PRAGMA query_only = ON; PRAGMA cache_size = -2048; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF"); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

// queryText runs a statement by its text and calls each for every row. The first maxPrepared texts of a connection stay
// prepared: they are the ones that come again.
func (s *session) queryText(text string, args []any, each func(*sqlite.Stmt) error) error {
	st := s.prepared[text]
	if st == nil {
		fresh, _, err := s.conn.PrepareTransient(positionalParams(text))
		if err != nil {
			return fmt.Errorf("%w in: %s", err, text)
		}
		if st = fresh; len(s.prepared) < maxPrepared {
			s.prepared[text] = st
		} else {
			defer st.Finalize()
		}
	}
	if err := st.ClearBindings(); err != nil {
		return err
	}
	defer st.Reset()
	for i, arg := range args {
		bind(st, i+1, arg)
	}
	for {
		more, err := st.Step()
		if err != nil || !more {
			return err
		}
		if err := each(st); err != nil {
			return err
		}
	}
}

// A querier lets the inspector read on the store's reading connections.
type querier struct{ store *Store }

// Now returns the store's time.
func (q *querier) Now(context.Context) (time.Time, error) { return q.store.now(), nil }

// Query runs one statement on committed rows, and calls each for every row.
func (q *querier) Query(ctx context.Context, sql string, args []any, each func(inspect.Row) error) error {
	var refused error // an error of each is returned unchanged
	err := q.store.reader.with(ctx, func(s *session) error {
		err := s.queryText(sql, args, func(st *sqlite.Stmt) error {
			refused = each(row{st})
			return refused
		})
		if refused != nil {
			return nil
		}
		return err
	})
	if refused != nil {
		return refused
	}
	return explain(err)
}

// A row reads the columns of a row. A value of another type than asked for reads as the zero value.
type row struct{ st *sqlite.Stmt }

func (r row) Null(i int) bool      { return r.st.ColumnIsNull(i) }
func (r row) ID(i int) holdfast.ID { return columnID(r.st, i) }
func (r row) Int(i int) int        { return r.st.ColumnInt(i) }
func (r row) Float(i int) float64  { return r.st.ColumnFloat(i) }
func (r row) Bool(i int) bool      { return r.st.ColumnInt64(i) != 0 }
func (r row) Time(i int) time.Time { return columnTime(r.st, i) }

// Text returns a text. An id is returned in its canonical form.
func (r row) Text(i int) string {
	if r.st.ColumnType(i) == sqlite.TypeBlob && r.st.ColumnLen(i) == len(holdfast.ID{}) {
		return columnID(r.st, i).String()
	}
	return strings.ToValidUTF8(r.st.ColumnText(i), "\uFFFD")
}

func (r row) Texts(i int) (texts []string) {
	if text := r.st.ColumnText(i); text != "" && json.Unmarshal([]byte(text), &texts) != nil {
		return nil
	}
	return texts
}
