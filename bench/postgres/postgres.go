// Package postgres is what the contenders on PostgreSQL have in common: asking the server how much it logs, and holding a
// snapshot as a forgotten transaction or a long backup would.
package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A Server is known by its URL. It opens a connection for every question, so that it never competes with a contender's own.
type Server struct{ URL string }

// WAL is how far the write-ahead log has come, in bytes.
func (s Server) WAL(ctx context.Context) (n int64, err error) {
	err = s.ask(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint", &n)
	return n, err
}

// Snapshot opens a transaction that sees the database as it is now, and so keeps everything deleted from now on, until release.
func (s Server) Snapshot(ctx context.Context) (release func(), err error) {
	c, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return nil, err
	}
	var n int
	tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err == nil {
		err = tx.QueryRow(ctx, "SELECT count(*) FROM pg_class").Scan(&n) // the snapshot is taken by the first question
	}
	if err != nil {
		c.Close(ctx)
		return nil, err
	}
	return func() { c.Close(ctx) }, nil
}

// Version is what the server calls itself, with what decides about durability.
func (s Server) Version(ctx context.Context) string {
	var version, commit, fsync string
	err := s.ask(ctx, "SELECT current_setting('server_version'), current_setting('synchronous_commit'), current_setting('fsync')", &version, &commit, &fsync)
	if err != nil {
		return "PostgreSQL (unknown)"
	}
	return fmt.Sprintf("PostgreSQL %s, synchronous_commit=%s, fsync=%s", version, commit, fsync)
}

func (s Server) ask(ctx context.Context, question string, answers ...any) error {
	c, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return c.QueryRow(ctx, question).Scan(answers...)
}
