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

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
)

// A ground is the database a run stands on, and what can be done to it.
type ground struct {
	name    string // sqlite or postgres
	address string
	server  *pgtest.Server // when the run owns it
}

// prepare finds the ground named by a store's address: "sqlite" and "postgres" alone are thrown away afterwards.
func prepare(address, dir string) (*ground, error) {
	switch {
	case address == "" || address == "sqlite":
		return &ground{name: "sqlite", address: filepath.Join(dir, "jobs.db")}, nil
	case address == "postgres":
		s, err := pgtest.Start("", pgtest.Options{Durable: true})
		if err != nil {
			return nil, err
		}
		url, err := s.Create("chaos")
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("the throw-away server has no database: %w", err)
		}
		return &ground{name: "postgres", address: url, server: s}, nil
	case strings.HasPrefix(address, "postgres"):
		return &ground{name: "postgres", address: address}, nil
	}
	return &ground{name: "sqlite", address: strings.TrimPrefix(address, "sqlite:")}, nil
}

// onGround makes the folder, the ground and the store for a run, and leaves nothing of them behind.
func (c *Config) onGround(ctx context.Context, run func(dir string, g *ground, s holdfast.Store) error) error {
	if err := able(); err != nil {
		return err
	}
	c.fill()
	dir, err := os.MkdirTemp("", "holdfast-chaos-")
	if err != nil {
		return fmt.Errorf("no folder for the run: %w", err)
	}
	defer os.RemoveAll(dir)
	g, err := prepare(c.Store, dir)
	if err != nil {
		return err
	}
	defer g.close()
	s, err := openPatiently(ctx, g.address)
	if err != nil {
		return err
	}
	defer s.Close()
	return run(dir, g, s)
}

func (g *ground) close() error {
	if g.server == nil {
		return nil
	}
	return g.server.Close()
}

// faults are what can befall this ground, by the name under which it is counted.
func (g *ground) faults() map[string]func(context.Context) error {
	switch {
	case g.server != nil:
		return map[string]func(context.Context) error{"terminate_backend": g.terminate, "restart": g.restart}
	case g.name == "postgres":
		return map[string]func(context.Context) error{"terminate_backend": g.terminate}
	}
	return map[string]func(context.Context) error{"lock": g.lock}
}

// terminate ends every other connection to the database.
func (g *ground) terminate(ctx context.Context) error {
	c, err := pgx.Connect(ctx, g.address)
	if err != nil {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	return err
}

// restart lets the server crash, and starts it again.
func (g *ground) restart(context.Context) error { return g.server.Restart(true) }

// lock keeps the file from everybody who wants to write, longer than a polite process would.
func (g *ground) lock(ctx context.Context) error {
	c, err := sqlite.OpenConn(g.address, sqlite.OpenReadWrite|sqlite.OpenWAL)
	if err != nil {
		return fmt.Errorf("the file cannot be opened: %w", err)
	}
	defer c.Close()
	c.SetBusyTimeout(5 * time.Second)
	if err := sqlitex.ExecuteTransient(c, "BEGIN IMMEDIATE", nil); err != nil {
		return fmt.Errorf("the file cannot be locked: %w", err)
	}
	pause(ctx, 400*time.Millisecond)
	return sqlitex.ExecuteTransient(c, "ROLLBACK", nil)
}
