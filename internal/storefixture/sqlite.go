// Package storefixture makes the stores on which the conformance tests run: real ones, with a clock that only the test advances, and with access to their rows that
// no user has.
package storefixture

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // a different driver than the store uses, as an application might have

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// A file is one store with its clock, and a separate connection for the test.
type file struct {
	testing.TB
	path string
	now  atomic.Int64
	db   *sql.DB
	wipe string
}

// SQLite makes a store in a file for this test.
func SQLite(t testing.TB) *storetest.Subject {
	f := &file{TB: t, path: filepath.Join(t.TempDir(), "jobs.db")}
	f.now.Store(time.Date(2031, 5, 17, 9, 0, 0, 0, time.UTC).UnixMicro())
	backend := f.open()
	db, err := sql.Open("sqlite", "file:"+f.path+"?_txlock=immediate&_pragma=busy_timeout(30000)&_pragma=synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	f.db = db
	f.wipe = f.deletes()
	return &storetest.Subject{
		Store: backend, Reopen: f.open, Corrupt: f.corrupt, Begin: f.begin,
		Advance: func(d time.Duration) { f.now.Add(d.Microseconds()) },
		Wipe: func() {
			if _, err := f.db.Exec(f.wipe); err != nil {
				f.Fatalf("wipe: %v", err)
			}
		},
	}
}

func (f *file) open() store.Store {
	backend, err := sqlite.Open(context.Background(), sqlite.Config{Path: f.path, Clock: func() time.Time { return time.UnixMicro(f.now.Load()).UTC() }})
	if err != nil {
		f.Fatalf("open: %v", err)
	}
	f.Cleanup(func() { _ = backend.Close() })
	return backend
}

// deletes returns the statements that empty every table except the lanes, which stores may cache.
func (f *file) deletes() string {
	rows, err := f.db.Query("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'holdfast_%' AND name NOT IN ('holdfast_lane', 'holdfast_migration', 'holdfast_feed')")
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	text := "BEGIN IMMEDIATE;"
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			f.Fatal(err)
		}
		text += "DELETE FROM " + name + ";"
	}
	return text + "UPDATE holdfast_feed SET head = 0, purged = 0, advanced = 0, followed = 0, link = 0, hash = NULL, anchor = 0, anchored = NULL;COMMIT"
}

// corrupt changes a column of a row, as no user can; a column without a name deletes the row.
func (f *file) corrupt(column string, id holdfast.ID, value string) error {
	if column == storetest.SQL {
		_, err := f.db.Exec(value)
		return err
	}
	table, name, hasName := strings.Cut(column, ".")
	key := "job"
	if table == "job" {
		key = "id"
	}
	text, args := fmt.Sprintf("DELETE FROM holdfast_%s WHERE %s = ?1", table, key), []any{id[:]}
	if hasName {
		text = fmt.Sprintf("UPDATE holdfast_%s SET %s = ?2 WHERE %s = ?1", table, name, key)
		args = append(args, any(value))
		if value == storetest.Null {
			args[1] = nil
		}
	}
	result, err := f.db.Exec(text, args...)
	if err != nil {
		return err
	}
	if n, _ := result.RowsAffected(); n != 1 {
		return fmt.Errorf("%s of %v: %d rows", column, id, n)
	}
	return nil
}

// begin starts a transaction of the application's, and returns it and a function that ends it.
func (f *file) begin() (any, func(bool) error) {
	tx, err := f.db.Begin()
	if err != nil {
		f.Fatalf("begin: %v", err)
	}
	return tx, func(commit bool) error {
		if commit {
			return tx.Commit()
		}
		return tx.Rollback()
	}
}
