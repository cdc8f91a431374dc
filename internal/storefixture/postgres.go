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
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// A database is one PostgreSQL database, with a separate connection for the test.
type database struct {
	testing.TB
	cfg    postgres.Config
	conn   *pgx.Conn // its search_path leads to the tables
	caller *pgx.Conn // of the application; its search_path is the default
	wipe   string
}

// fixedClock replaces the database's clock with one that only the test advances.
const fixedClock = `
CREATE TABLE fixed_clock (at timestamptz NOT NULL);
INSERT INTO fixed_clock VALUES ('2031-05-17 09:00:00+00');
CREATE OR REPLACE FUNCTION holdfast_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM fixed_clock'`

// tables is a database with the tables of an empty store.
var tables = pgtest.Template{Prepare: func(url string) error {
	s, err := postgres.Open(context.Background(), postgres.Config{URL: url})
	if err != nil {
		return err
	}
	return s.Close()
}}

// Database returns the URL of a database for this test that has the tables of an empty store.
func Database(t testing.TB) string {
	t.Helper()
	return tables.Database(t)
}

// Postgres makes a store in a database for this test.
func Postgres(t testing.TB) *storetest.Subject { return PostgresAt(t, Database(t)) }

// PostgresAt makes a store in a database without jobs.
func PostgresAt(t testing.TB, url string) *storetest.Subject {
	return PostgresWith(t, url, postgres.Config{URL: url})
}

// PostgresWith makes a store with a configuration in a database without jobs, which url names.
func PostgresWith(t testing.TB, url string, cfg postgres.Config) *storetest.Subject {
	d := &database{TB: t, cfg: cfg}
	db := d.open()
	d.conn, d.caller = connect(t, url), connect(t, url)
	clock := fixedClock
	if cfg.Schema != "" {
		d.run("SET search_path = " + cfg.Schema)
		clock = strings.ReplaceAll(clock, "fixed_clock", cfg.Schema+".fixed_clock")
	}
	d.run(clock)
	d.wipe = d.deletes()
	return &storetest.Subject{
		Store: db, Reopen: d.open, Corrupt: d.corrupt, Begin: d.begin,
		Advance: func(by time.Duration) {
			d.run(fmt.Sprintf("UPDATE fixed_clock SET at = at + (%d) * interval '1 microsecond'", by.Microseconds()))
		},
		Wipe: func() { d.run(d.wipe) },
	}
}

// connect opens a connection for the time of the test.
func connect(t testing.TB, url string) *pgx.Conn {
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// run executes one or more statements on the test's connection.
func (d *database) run(text string) {
	if _, err := d.conn.Exec(context.Background(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
		d.Fatalf("%.60s: %v", text, err)
	}
}

func (d *database) open() store.Store {
	db, err := postgres.Open(context.Background(), d.cfg)
	if err != nil {
		d.Fatalf("open: %v", err)
	}
	d.Cleanup(func() { _ = db.Close() })
	return db
}

// deletes returns the statements that empty every table except the lanes, which stores may cache, and that reset the feed.
func (d *database) deletes() string {
	rows, err := d.conn.Query(context.Background(), "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'holdfast\\_%' AND tablename NOT IN ('holdfast_lane', 'holdfast_migration', 'holdfast_feed')")
	if err != nil {
		d.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		d.Fatal(err)
	}
	return "DELETE FROM " + strings.Join(names, "; DELETE FROM ") +
		"; UPDATE holdfast_feed SET head = 0, purged = 0, advanced = 0, followed = 0, link = 0, hash = NULL, anchor = 0, anchored = NULL"
}

// corrupt changes a column of a row, as no user can; a column without a name deletes the row.
func (d *database) corrupt(column string, id holdfast.ID, value string) error {
	if column == storetest.SQL {
		_, err := d.conn.Exec(context.Background(), value, pgx.QueryExecModeSimpleProtocol)
		return err
	}
	table, name, hasName := strings.Cut(column, ".")
	key := "job"
	if table == "job" {
		key = "id"
	}
	text, args := fmt.Sprintf("DELETE FROM holdfast_%s WHERE %s = $1", table, key), []any{pgx.QueryExecModeSimpleProtocol, id.String()}
	if hasName {
		text = fmt.Sprintf("UPDATE holdfast_%s SET %s = $2 WHERE %s = $1", table, name, key)
		args = append(args, any(value))
		if value == storetest.Null {
			args[2] = nil
		}
	}
	tag, err := d.conn.Exec(context.Background(), text, args...)
	if err != nil {
		return err
	}
	if tag.RowsAffected() != 1 {
		return fmt.Errorf("%s of %v: %d rows", column, id, tag.RowsAffected())
	}
	return nil
}

// begin starts a transaction of the application, and returns it and a function that ends it. An application that shares its *sql.DB with the store begins it there.
func (d *database) begin() (any, func(bool) error) {
	if d.cfg.DB != nil {
		tx, err := d.cfg.DB.BeginTx(context.Background(), nil)
		if err != nil {
			d.Fatalf("begin: %v", err)
		}
		return tx, func(commit bool) error {
			if commit {
				return tx.Commit()
			}
			return tx.Rollback()
		}
	}
	tx, err := d.caller.Begin(context.Background())
	if err != nil {
		d.Fatalf("begin: %v", err)
	}
	return tx, func(commit bool) error {
		if commit {
			return tx.Commit(context.Background())
		}
		return tx.Rollback(context.Background())
	}
}
