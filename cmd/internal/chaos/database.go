package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/store"
)

// A database is the database of a run, with the faults that can be injected into it.
type database struct {
	name    string // sqlite or postgres
	address string
	server  *pgtest.Server // nil unless the run started it
}

// prepareDatabase returns the database of a store's address. For "sqlite" and "postgres" it creates a temporary one.
func prepareDatabase(address, dir string) (*database, error) {
	switch {
	case address == "" || address == "sqlite":
		return &database{name: "sqlite", address: filepath.Join(dir, "jobs.db")}, nil
	case address == "postgres":
		s, err := pgtest.Start("", pgtest.Options{Durable: true})
		if err != nil {
			return nil, err
		}
		url, err := s.Create("chaos")
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("cannot create a database on the temporary server: %w", err)
		}
		return &database{name: "postgres", address: url, server: s}, nil
	case strings.HasPrefix(address, "postgres"):
		return &database{name: "postgres", address: address}, nil
	}
	return &database{name: "sqlite", address: strings.TrimPrefix(address, "sqlite:")}, nil
}

// withDatabase creates a folder and a database, opens the store, calls run, and removes all of them afterwards.
func (c *Config) withDatabase(ctx context.Context, run func(dir string, db *database, s store.Store) error) error {
	if err := checkPlatform(); err != nil {
		return err
	}
	c.setDefaults()
	dir, err := os.MkdirTemp("", "holdfast-chaos-")
	if err != nil {
		return fmt.Errorf("cannot create a folder for the run: %w", err)
	}
	defer os.RemoveAll(dir)
	db, err := prepareDatabase(c.Store, dir)
	if err != nil {
		return err
	}
	defer db.close()
	s, err := openWithRetry(ctx, db.address)
	if err != nil {
		return err
	}
	defer s.Close()
	return run(dir, db, s)
}

func (d *database) close() error {
	if d.server == nil {
		return nil
	}
	return d.server.Close()
}

// faults are the faults that can be injected into this database, by the names under which they are counted.
func (d *database) faults() map[string]func(context.Context) error {
	switch {
	case d.server != nil:
		return map[string]func(context.Context) error{"terminate_backend": d.terminate, "restart": d.restart}
	case d.name == "postgres":
		return map[string]func(context.Context) error{"terminate_backend": d.terminate}
	}
	return map[string]func(context.Context) error{"lock": d.lock}
}

// terminate ends every other connection to the database.
func (d *database) terminate(ctx context.Context) error {
	c, err := pgx.Connect(ctx, d.address)
	if err != nil {
		return fmt.Errorf("cannot connect to the database: %w", err)
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	return err
}

// restart crashes the server and starts it again.
func (d *database) restart(context.Context) error { return d.server.Restart(true) }

// lock holds the write lock of the file for 400 ms, longer than a well-behaved process does.
func (d *database) lock(ctx context.Context) error {
	c, err := sqlite.OpenConn(d.address, sqlite.OpenReadWrite|sqlite.OpenWAL)
	if err != nil {
		return fmt.Errorf("cannot open the database file: %w", err)
	}
	defer c.Close()
	c.SetBusyTimeout(5 * time.Second)
	if err := sqlitex.ExecuteTransient(c, "BEGIN IMMEDIATE", nil); err != nil {
		return fmt.Errorf("cannot lock the database file: %w", err)
	}
	sleep(ctx, 400*time.Millisecond)
	return sqlitex.ExecuteTransient(c, "ROLLBACK", nil)
}
