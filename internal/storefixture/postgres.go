package storefixture

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

// A base is one database, with the test's own connection to it.
type base struct {
	testing.TB
	url  string
	conn *pgx.Conn
	wipe string
}

// standstill puts a clock that stands still in the place of the database's own.
const standstill = `
CREATE TABLE standstill (at timestamptz NOT NULL);
INSERT INTO standstill VALUES ('2031-05-17 09:00:00+00');
CREATE OR REPLACE FUNCTION holdfast_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM standstill'`

// Postgres makes a store in a database of the test's own.
func Postgres(t testing.TB) *storetest.Subject { return PostgresAt(t, pgtest.Database(t)) }

// PostgresAt makes a store in an empty database.
func PostgresAt(t testing.TB, url string) *storetest.Subject {
	b := &base{TB: t, url: url}
	store := b.open()
	conn, err := pgx.Connect(context.Background(), b.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	b.conn = conn
	b.run(standstill)
	b.wipe = b.deletes()
	return &storetest.Subject{
		Store: store, Reopen: b.open, Corrupt: b.corrupt, Begin: b.begin,
		Advance: func(d time.Duration) {
			b.run(fmt.Sprintf("UPDATE standstill SET at = at + interval '%d microseconds'", d.Microseconds()))
		},
		Wipe: func() { b.run(b.wipe) },
	}
}

// run executes texts on the test's own connection, several at once if need be.
func (b *base) run(text string) {
	if _, err := b.conn.Exec(context.Background(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
		b.Fatalf("%.60s: %v", text, err)
	}
}

func (b *base) open() holdfast.Store {
	store, err := postgres.Open(context.Background(), postgres.Config{URL: b.url})
	if err != nil {
		b.Fatalf("open: %v", err)
	}
	b.Cleanup(func() { _ = store.Close() })
	return store
}

// deletes is the text that empties every table but the lanes, which stores may remember, and has the feed begin anew.
func (b *base) deletes() string {
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

func (b *base) corrupt(column string, id holdfast.ID, value string) error {
	if column == storetest.SQL {
		_, err := b.conn.Exec(context.Background(), value, pgx.QueryExecModeSimpleProtocol)
		return err
	}
	table, name, one := strings.Cut(column, ".")
	key := "job"
	if table == "job" {
		key = "id"
	}
	text, args := fmt.Sprintf("DELETE FROM holdfast_%s WHERE %s = $1", table, key), []any{pgx.QueryExecModeSimpleProtocol, id.String()}
	if one {
		text = fmt.Sprintf("UPDATE holdfast_%s SET %s = $2 WHERE %s = $1", table, name, key)
		args = append(args, any(value))
		if value == storetest.Null {
			args[2] = nil
		}
	}
	tag, err := b.conn.Exec(context.Background(), text, args...)
	if err != nil {
		return err
	}
	if tag.RowsAffected() != 1 {
		return fmt.Errorf("%s of %v: %d rows", column, id, tag.RowsAffected())
	}
	return nil
}

func (b *base) begin() (any, func(bool) error) {
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
