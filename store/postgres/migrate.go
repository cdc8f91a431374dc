package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// migrate migrates the schema to the version of this binary, with one transaction for each step. Any number of processes may do so at the same time.
func (s *Store) migrate(ctx context.Context) error {
	ctx, cancel := withDeadline(ctx, time.Minute)
	defer cancel()
	steps := sqltext.Migrations("postgres")
	var err error
	for n := 0; n <= maxRetries; n++ {
		if err = s.migrateAll(ctx, steps); err == nil || ctx.Err() != nil || !retryable(err, true) {
			break
		}
		backoff(ctx, n+2)
	}
	return explain("open the database", err)
}

// migrateAll applies the missing steps. A schema that is newer than this binary is ErrUnavailable.
func (s *Store) migrateAll(ctx context.Context, steps []string) error {
	version, err := s.version(ctx)
	for err == nil && version < len(steps) {
		version, err = s.migrateNext(ctx, steps)
	}
	if err == nil && version > len(steps) {
		err = &holdfast.Error{Err: holdfast.ErrUnavailable,
			Message: fmt.Sprintf("the database was written by a newer holdfast (schema %d, this binary knows %d): upgrade the binary", version, len(steps))}
	}
	return err
}

// version returns the version of the schema. It needs only the right to read.
func (s *Store) version(ctx context.Context) (version int, err error) {
	var there bool
	if err := s.work.QueryRow(ctx, s.sql["migration_table_exists"]).Scan(&there); err != nil || !there {
		return 0, err
	}
	return version, s.work.QueryRow(ctx, s.sql["migration_version"]).Scan(&version)
}

// migrateNext applies the next step, unless another process applied it while this one waited for the lock.
func (s *Store) migrateNext(ctx context.Context, steps []string) (version int, err error) {
	err = s.runTx(ctx, func(tx pgx.Tx) error {
		for _, name := range []string{"migration_lock", "migration_table"} {
			if _, err := tx.Exec(ctx, s.sql[name]); err != nil {
				return err
			}
		}
		if err := tx.QueryRow(ctx, s.sql["migration_version"]).Scan(&version); err != nil || version >= len(steps) {
			return err
		}
		if err := tx.Conn().PgConn().Exec(ctx, steps[version]).Close(); err != nil {
			return err
		}
		version++
		_, err := tx.Exec(ctx, s.sql["migration_add"], version)
		return err
	})
	return version, err
}
