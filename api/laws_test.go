package api_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // for what a test does to the rows beneath

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store/sqlite"
	"github.com/holdfastdev/holdfast/store/storetest"
)

func TestAStoreAtAServerKeepsTheLaws(t *testing.T) {
	storetest.Laws(t, storetest.Harness{Open: openFar})
}

var silent = slog.New(slog.NewTextHandler(io.Discard, nil))

// far serves a store and answers with the client's view of it.
func far(t testing.TB, near holdfast.Store, change ...func(*server.Config)) *api.Store {
	t.Helper()
	cfg := server.Config{Store: near, Desk: ops.New(near, ops.Config{}), Open: true, Log: silent}
	for _, f := range change {
		f(&cfg)
	}
	srv, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(srv)
	web.Config = srv.HTTP("")
	web.Start()
	c, err := api.Dial(web.URL, api.Config{Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		_ = srv.Close()
		web.CloseClientConnections()
		web.Close()
	})
	return c.Store()
}

// A bench is one file, its clock, and a connection of the test's own.
type bench struct {
	testing.TB
	path string
	now  atomic.Int64
	db   *sql.DB
	wipe string
}

func openFar(t testing.TB) *storetest.Subject {
	b := &bench{TB: t, path: filepath.Join(t.TempDir(), "jobs.db")}
	b.now.Store(time.Date(2031, 5, 17, 9, 0, 0, 0, time.UTC).UnixMicro())
	near := b.open()
	db, err := sql.Open("sqlite", "file:"+b.path+"?_txlock=immediate&_pragma=busy_timeout(30000)&_pragma=synchronous(0)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	b.db = db
	b.wipe = b.deletes()
	return &storetest.Subject{
		Store: far(t, near), Near: near, Corrupt: b.corrupt, Begin: b.begin,
		Reopen:  func() holdfast.Store { return far(t, b.open()) },
		Advance: func(d time.Duration) { b.now.Add(d.Microseconds()) },
		Wipe: func() {
			if _, err := b.db.Exec(b.wipe); err != nil {
				b.Fatalf("wipe: %v", err)
			}
		},
	}
}

func (b *bench) open() holdfast.Store {
	store, err := sqlite.Open(context.Background(), sqlite.Config{Path: b.path, Clock: func() time.Time { return time.UnixMicro(b.now.Load()).UTC() }})
	if err != nil {
		b.Fatalf("open: %v", err)
	}
	b.Cleanup(func() { _ = store.Close() })
	return store
}

// deletes is the text that empties every table but the lanes, which stores may remember.
func (b *bench) deletes() string {
	rows, err := b.db.Query("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'holdfast_%' AND name NOT IN ('holdfast_lane', 'holdfast_migration', 'holdfast_feed')")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	text := "BEGIN IMMEDIATE;"
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			b.Fatal(err)
		}
		text += "DELETE FROM " + name + ";"
	}
	return text + "UPDATE holdfast_feed SET head = 0, purged = 0, concluded = 0, link = 0, hash = NULL, anchor = 0, anchored = NULL;COMMIT"
}

func (b *bench) corrupt(column string, id holdfast.ID, value string) error {
	table, name, one := strings.Cut(column, ".")
	key := "job"
	if table == "job" {
		key = "id"
	}
	text, args := fmt.Sprintf("DELETE FROM holdfast_%s WHERE %s = ?1", table, key), []any{id[:]}
	if one {
		text = fmt.Sprintf("UPDATE holdfast_%s SET %s = ?2 WHERE %s = ?1", table, name, key)
		args = append(args, any(value))
		if value == storetest.Null {
			args[1] = nil
		}
	}
	result, err := b.db.Exec(text, args...)
	if err != nil {
		return err
	}
	if n, _ := result.RowsAffected(); n != 1 {
		return fmt.Errorf("%s of %v: %d rows", column, id, n)
	}
	return nil
}

func (b *bench) begin() (any, func(bool) error) {
	tx, err := b.db.Begin()
	if err != nil {
		b.Fatalf("begin: %v", err)
	}
	return tx, func(commit bool) error {
		if commit {
			return tx.Commit()
		}
		return tx.Rollback()
	}
}
