// Package database gives an application tables of its own in the database that has its jobs, so that one transaction can write both: an SQLite file, or PostgreSQL.
//
// Statements are written once, for both databases: with ? for arguments, instants as microseconds since 1970 in columns of type BIGINT, and truth values as 0 and 1.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver for PostgreSQL
	_ "modernc.org/sqlite"             // the driver for SQLite

	"github.com/holdfastdev/holdfast/store/anystore"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// ErrNoRow is what One returns when no row was found.
var ErrNoRow = sql.ErrNoRows

// A DB is the application's own handle on the database of its jobs. It is safe for concurrent use.
type DB struct {
	write, read *sql.DB
	postgres    bool
}

// Open opens the database at the address of a store, which must exist: open the store first. Close it before the store.
func Open(ctx context.Context, address string) (*DB, error) {
	file, err := anystore.File(address)
	if err != nil {
		return nil, err
	}
	if file == "" {
		db, err := sql.Open("pgx", address)
		if err != nil {
			return nil, errors.New("DATABASE_URL is not an address of PostgreSQL: use postgres://user@host/database")
		}
		db.SetMaxOpenConns(8)
		db.SetMaxIdleConns(4)
		return &DB{db, db, true}, db.PingContext(ctx)
	}
	dsn := sqlite.DSN(address)
	write, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	read, err := sql.Open("sqlite", strings.Replace(dsn, "_txlock=immediate", "_txlock=deferred", 1))
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	write.SetMaxOpenConns(1) // SQLite has one writer: the others wait in Go instead of at the lock
	read.SetMaxOpenConns(4)
	return &DB{write, read, false}, errors.Join(write.PingContext(ctx), read.PingContext(ctx))
}

// Close closes the handle.
func (d *DB) Close() error {
	if d.write == d.read {
		return d.write.Close()
	}
	return errors.Join(d.read.Close(), d.write.Close())
}

// A Schema is the history of the tables of one package: each step is a few statements, which run once. Steps are appended and never changed.
type Schema struct {
	Name  string
	Steps []string
}

// Migrate runs the steps of a schema that this database has not had yet. Several processes may do it at the same time.
func (d *DB) Migrate(ctx context.Context, s Schema) error {
	create := `CREATE TABLE IF NOT EXISTS app_schema (name TEXT PRIMARY KEY, version BIGINT NOT NULL)`
	err := d.Write(ctx, func(tx *Tx) error {
		if d.postgres {
			if err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(7046029254386353131)`); err != nil {
				return err
			}
		}
		if err := tx.Exec(ctx, create); err != nil {
			return err
		}
		version := 0
		if err := tx.One(ctx, `SELECT version FROM app_schema WHERE name = ?`, []any{s.Name}, &version); err != nil && !errors.Is(err, ErrNoRow) {
			return err
		}
		if version > len(s.Steps) {
			return fmt.Errorf("the tables of %s are of a newer version of this program: install that version", s.Name)
		}
		for _, step := range s.Steps[version:] {
			if err := tx.Exec(ctx, step); err != nil {
				return err
			}
		}
		return tx.Exec(ctx, `INSERT INTO app_schema (name, version) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET version = excluded.version`, s.Name, len(s.Steps))
	})
	if err != nil {
		return fmt.Errorf("the tables of %s cannot be made: %w", s.Name, err)
	}
	return nil
}

// writeTries is how often a transaction is tried that the database refuses because of others at the same time.
const writeTries = 10

// Write runs act in a transaction, which is committed if act returns nil. It may run act again, if the database refuses the transaction because of others at the
// same time: act must have no effects but those of the transaction.
func (d *DB) Write(ctx context.Context, act func(tx *Tx) error) error {
	for try := 1; ; try++ {
		err := d.writeOnce(ctx, act)
		if err == nil || try == writeTries || !repeatable(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(time.Duration(try*try) * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (d *DB) writeOnce(ctx context.Context, act func(tx *Tx) error) error {
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := act(&Tx{Tx: tx, querier: querier{tx, d.postgres}}); err != nil {
		return err
	}
	return tx.Commit()
}

// repeatable reports whether the same transaction may succeed if it is tried again: a serialization failure, a deadlock.
func repeatable(err error) bool {
	refused := (*pgconn.PgError)(nil)
	return errors.As(err, &refused) && (refused.Code == "40001" || refused.Code == "40P01")
}

// Conflict reports whether a statement was refused because a row with its key exists.
func Conflict(err error) bool {
	refused := (*pgconn.PgError)(nil)
	if errors.As(err, &refused) {
		return refused.Code == "23505"
	}
	return err != nil && strings.Contains(err.Error(), "UNIQUE constraint failed")
}

// One reads one row outside of a transaction. The error is ErrNoRow if there is none.
func (d *DB) One(ctx context.Context, query string, args []any, into ...any) error {
	return querier{d.read, d.postgres}.One(ctx, query, args, into...)
}

// Each calls use for each row, outside of a transaction. use scans it.
func (d *DB) Each(ctx context.Context, query string, args []any, use func(scan func(into ...any) error) error) error {
	return querier{d.read, d.postgres}.Each(ctx, query, args, use)
}

// A Tx is a transaction. Its *sql.Tx is what Store.In and Job.CompleteIn take.
type Tx struct {
	*sql.Tx
	querier
}

// Exec runs a statement.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) error {
	_, err := t.Changed(ctx, query, args...)
	return err
}

// Changed runs a statement and returns how many rows it changed.
func (t *Tx) Changed(ctx context.Context, query string, args ...any) (int, error) {
	result, err := t.Tx.ExecContext(ctx, t.rewrite(query), args...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// A querier reads.
type querier struct {
	from interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}
	postgres bool
}

// One reads one row. The error is ErrNoRow if there is none.
func (q querier) One(ctx context.Context, query string, args []any, into ...any) error {
	return q.from.QueryRowContext(ctx, q.rewrite(query), args...).Scan(into...)
}

// Each calls use for each row. use scans it.
func (q querier) Each(ctx context.Context, query string, args []any, use func(scan func(into ...any) error) error) error {
	rows, err := q.from.QueryContext(ctx, q.rewrite(query), args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := use(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// rewrite numbers the arguments for PostgreSQL. Statements have no question mark in their literals.
func (q querier) rewrite(query string) string {
	if !q.postgres {
		return query
	}
	var text strings.Builder
	n := 0
	for part := range strings.SplitSeq(query, "?") {
		if n > 0 {
			text.WriteString("$" + strconv.Itoa(n))
		}
		text.WriteString(part)
		n++
	}
	return text.String()
}

// Micros returns an instant as it is stored; 0 for the zero time.
func Micros(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}

// Time returns a stored instant.
func Time(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
