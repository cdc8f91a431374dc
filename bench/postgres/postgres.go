// Package postgres is shared by the contenders on PostgreSQL: it reads the position of the write-ahead log, and holds a snapshot as a forgotten transaction or a long
// backup does.
package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// A Server is a PostgreSQL server. It opens a connection for each query, so that it does not compete with the contender's connections.
type Server struct{ URL string }

// WAL returns the position of the write-ahead log, in bytes.
func (s Server) WAL(ctx context.Context) (n int64, err error) {
	err = s.ask(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint", &n)
	return n, err
}

// Snapshot opens a transaction with a snapshot of the database, which keeps rows that are deleted from now on, until release is called.
func (s Server) Snapshot(ctx context.Context) (release func(), err error) {
	c, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return nil, err
	}
	var n int
	tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err == nil {
		err = tx.QueryRow(ctx, "SELECT count(*) FROM pg_class").Scan(&n) // the first query takes the snapshot
	}
	if err != nil {
		c.Close(ctx)
		return nil, err
	}
	return func() { c.Close(ctx) }, nil
}

// Version returns the server's version and its settings for durability.
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
