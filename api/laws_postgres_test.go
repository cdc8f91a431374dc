package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/store/postgres"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// Where the two databases could differ by what travels: times, texts, JSON, errors and long waits.
func TestAStoreOnPostgreSQLAtAServerKeepsTheLaws(t *testing.T) {
	storetest.Laws(t, storetest.Harness{Open: openFarPostgres}, "enqueue", "keys", "claim", "settle", "fence", "note", "record", "await", "member", "inspect")
}

// standstill puts a clock that stands still in the place of the database's own.
const standstill = `
CREATE TABLE standstill (at timestamptz NOT NULL);
INSERT INTO standstill VALUES ('2031-05-17 09:00:00+00');
CREATE OR REPLACE FUNCTION holdfast_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM standstill'`

// A table is a database, with the test's own connection to it.
type table struct {
	testing.TB
	url  string
	conn *pgx.Conn
}

func openFarPostgres(t testing.TB) *storetest.Subject {
	b := &table{TB: t, url: pgtest.Database(t)}
	near := b.open()
	conn, err := pgx.Connect(context.Background(), b.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	b.conn = conn
	b.run(standstill)
	wipe := b.deletes()
	return &storetest.Subject{
		Store: far(t, near), Near: near, Begin: b.begin,
		Corrupt: func(string, holdfast.ID, string) error {
			return fmt.Errorf("rows are damaged in the laws of the store itself")
		},
		Reopen: func() holdfast.Store { return far(t, b.open()) },
		Advance: func(d time.Duration) {
			b.run(fmt.Sprintf("UPDATE standstill SET at = at + interval '%d microseconds'", d.Microseconds()))
		},
		Wipe: func() { b.run(wipe) },
	}
}

func (b *table) run(text string) {
	if _, err := b.conn.Exec(context.Background(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
		b.Fatalf("%.60s: %v", text, err)
	}
}

func (b *table) open() holdfast.Store {
	store, err := postgres.Open(context.Background(), postgres.Config{URL: b.url})
	if err != nil {
		b.Fatalf("open: %v", err)
	}
	b.Cleanup(func() { _ = store.Close() })
	return store
}

// deletes is the text that empties every table but the lanes, which stores may remember, and has the feed begin anew.
func (b *table) deletes() string {
	rows, err := b.conn.Query(context.Background(), "SELECT tablename::text FROM pg_tables WHERE tablename LIKE 'holdfast\\_%' AND tablename NOT IN ('holdfast_lane', 'holdfast_migration', 'holdfast_feed')")
	if err != nil {
		b.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.Fatal(err)
	}
	return "DELETE FROM " + strings.Join(names, "; DELETE FROM ") +
		"; UPDATE holdfast_feed SET head = 0, purged = 0, concluded = 0, link = 0, hash = NULL, anchor = 0, anchored = NULL"
}

func (b *table) begin() (any, func(bool) error) {
	tx, err := b.conn.Begin(context.Background())
	if err != nil {
		b.Fatalf("begin: %v", err)
	}
	return tx, func(commit bool) error {
		if commit {
			return tx.Commit(context.Background())
		}
		return tx.Rollback(context.Background())
	}
}
