package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// migrate migrates the schema from its present version to this binary's, all steps in one transaction. The version is
// in a table, as on PostgreSQL: the user_version pragma belongs to the application whose tables may share the file.
func migrate(s *session) (err error) {
	steps := sqltext.Migrations("sqlite")
	missing, err := missingSteps(s, steps)
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := s.runScript("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil && !s.conn.AutocommitEnabled() {
			_ = s.runScript("ROLLBACK")
		}
	}()
	// Another process may have been faster: only the version that is read under the lock counts.
	if missing, err = missingSteps(s, steps); err != nil {
		return err
	}
	if err := s.runScript(versionTable); err != nil {
		return err
	}
	for _, step := range missing {
		if err := s.runScript(step.SQL); err != nil {
			return fmt.Errorf("schema step %d: %w", step.Version, err)
		}
		if err := s.runScript(fmt.Sprintf("INSERT INTO holdfast_migration (version, at) VALUES (%d, %d)", step.Version, time.Now().UnixMicro())); err != nil {
			return err
		}
	}
	return s.runScript("COMMIT")
}

// missingSteps returns the steps that the file still needs, and refuses a schema that this binary cannot use.
func missingSteps(s *session, steps []sqltext.Migration) ([]sqltext.Migration, error) {
	version, err := schemaVersion(s)
	if err != nil {
		return nil, err
	}
	return sqltext.Missing(steps, version)
}

// schemaOf returns the version of the tables and the statements that are missing.
func schemaOf(s *session) (store.Schema, error) {
	steps := sqltext.Migrations("sqlite")
	version, err := schemaVersion(s)
	if err != nil {
		return store.Schema{}, err
	}
	missing, err := sqltext.Missing(steps, version)
	if err != nil {
		return store.Schema{}, err
	}
	return store.Schema{Version: version, Latest: sqltext.Latest(steps), SQL: script(missing)}, nil
}

// versionTable creates the table of versions.
const versionTable = "CREATE TABLE IF NOT EXISTS holdfast_migration (version INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT"

// script returns the statements of steps, with a record of each.
func script(steps []sqltext.Migration) string {
	if len(steps) == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "BEGIN IMMEDIATE;\n%s;\n", versionTable)
	for _, step := range steps {
		fmt.Fprintf(&text, "%s\nINSERT INTO holdfast_migration (version, at) VALUES (%d, CAST(unixepoch('subsec') * 1000000 AS INTEGER));\n", strings.TrimSpace(step.SQL), step.Version)
	}
	text.WriteString("COMMIT;\n")
	return text.String()
}

// checkCurrent refuses tables that are not of this program's version.
func checkCurrent(s *session) error {
	found, err := schemaOf(s)
	if err != nil {
		return err
	}
	return found.Current()
}

// ReadSchema returns the version of the tables of a file, and the statements that lead to this program's version, for an administrator who runs them. It changes
// nothing. A file that does not exist has version 0.
func ReadSchema(ctx context.Context, cfg Config) (found store.Schema, err error) {
	if err := checkPath(cfg.Path); err != nil {
		return found, err
	}
	if _, err := os.Stat(cfg.Path); errors.Is(err, fs.ErrNotExist) {
		steps := sqltext.Migrations("sqlite")
		return store.Schema{Latest: sqltext.Latest(steps), SQL: script(steps)}, nil
	}
	err = retryWhileBusy(ctx, func() error {
		conn, err := sqlite.OpenConn(cfg.Path, sqlite.OpenReadWrite) // a reader of a write-ahead log must take part in its locks
		if err != nil {
			return err
		}
		s := &session{conn: conn, prepared: map[string]*sqlite.Stmt{}}
		defer func() { _ = s.close() }()
		if err := s.runScript("PRAGMA query_only = ON"); err != nil {
			return err
		}
		found, err = schemaOf(s)
		return err
	})
	return found, explain(err)
}

// schemaVersion returns the version of the schema, or 0 if there is none.
func schemaVersion(s *session) (int, error) {
	there, err := s.queryValue("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'holdfast_migration'")
	if err != nil || there == "0" {
		return 0, err
	}
	text, err := s.queryValue("SELECT coalesce(max(version), 0) FROM holdfast_migration")
	version, _ := strconv.Atoi(text)
	return version, err
}

// How long to wait for a lock that another process holds: a call waits long before it fails, and Open reports the
// problem sooner.
const (
	callLockWait = 30 * time.Second
	openLockWait = 10 * time.Second
)

// retryWhileBusy repeats a step of opening while another process holds the lock.
func retryWhileBusy(ctx context.Context, act func() error) error {
	pause, start := time.Duration(0), time.Now()
	for {
		err := act()
		if !busy(err) || time.Since(start) > openLockWait {
			return err
		}
		pause = nextPause(pause)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// nextPause returns the next pause between two tries for a lock: from about one millisecond to about fifty, with
// jitter, so that processes that collided once do not keep colliding.
func nextPause(pause time.Duration) time.Duration {
	next := min(max(2*pause, time.Millisecond), 40*time.Millisecond)
	return next - next/4 + rand.N(next/2)
}
