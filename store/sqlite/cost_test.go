package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// budget is what a job may cost: bytes about a tenth above what it does cost, and numbers that can be counted exactly
// hardly above it, so that one more statement in a batch is noticed. A change that makes a job cheaper lowers the
// figure here. Only statements on the writing connection are counted: all callers wait for it.
var budget = map[string]storetest.Cost{
	"enqueue alone":          {Statements: 5, Transactions: 1, Rows: 2, Bytes: 9100},
	"enqueue one by one":     {Statements: 5.1, Transactions: 1, Rows: 2, Bytes: 12300},
	"enqueue in bulk":        {Statements: 0.128, Transactions: 0.00055, Rows: 2, Bytes: 370},
	"claim and complete":     {Statements: 0.0975, Transactions: 0.0042, Rows: 2.01, Bytes: 250},
	"fail once and complete": {Statements: 0.32, Transactions: 0.0084, Rows: 5.1, Bytes: 1050},
}

func TestAJobCostsNoMoreThanItsBudget(t *testing.T) { storetest.Costs(t, openMeter, budget) }

// openMeter returns a meter for a new file. The write-ahead log is empty when the work begins and is not checkpointed
// before it ends, so its length is what was written.
func openMeter(t testing.TB) storetest.Meter {
	path := filepath.Join(t.TempDir(), "jobs.db")
	return func(ready, work func(store.Store)) (spent storetest.Cost) {
		var statements, commits atomic.Int64
		db, err := Open(context.Background(), Config{Path: path, Trace: func(statement string) {
			statements.Add(1)
			if statement == "commit" {
				commits.Add(1)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		emptyLog(t, path)
		ready(db)
		rows := db.rowsWritten(t)
		statements.Store(0)
		commits.Store(0)
		work(db)
		spent.Statements, spent.Transactions = float64(statements.Load()), float64(commits.Load())
		spent.Rows = float64(db.rowsWritten(t) - rows)
		spent.Bytes = logBytes(t, path)
		return spent
	}
}

// rowsWritten counts the rows that the writing connection has changed since it was opened.
func (s *Store) rowsWritten(t testing.TB) (rows int) {
	t.Helper()
	err := s.writer.write(context.Background(), func(x *tx) error {
		text, err := x.queryValue("SELECT total_changes()")
		if err == nil {
			rows, err = strconv.Atoi(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// emptyLog checkpoints the write-ahead log and empties it.
func emptyLog(t testing.TB, path string) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := &session{conn: conn}
	if busy, err := s.queryValue("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil || busy != "0" {
		t.Fatalf("the log cannot be emptied: %v %v", busy, err)
	}
}

func logBytes(t testing.TB, path string) float64 {
	t.Helper()
	info, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const soon = 3900 * 4096 // the store checkpoints its log a little later, and then its length is not what was written
	if info.Size() > soon {
		t.Fatalf("the log has %d bytes, which is near the point where the store begins it anew: measure fewer jobs", info.Size())
	}
	return float64(info.Size())
}
