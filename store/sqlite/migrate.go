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
func migrate(s *session) error { return migrateTo(s, sqltext.Migrations("sqlite")) }

func migrateTo(s *session, steps []sqltext.Migration) (err error) {
	if _, missing, err := missingSteps(s, steps); err != nil || len(missing) == 0 {
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
	applied, missing, err := missingSteps(s, steps)
	if err != nil {
		return err
	}
	if err := s.runScript(versionTable(applied)); err != nil {
		return err
	}
	for _, step := range missing {
		if err := s.runScript(step.SQL); err != nil {
			return fmt.Errorf("schema step %d: %w", step.Version, err)
		}
		if err := s.runScript(versionRow(step, strconv.FormatInt(time.Now().UnixMicro(), 10))); err != nil {
			return err
		}
	}
	return s.runScript("COMMIT")
}

// missingSteps returns the steps that were applied to the file and those that it still needs, and refuses tables that this binary cannot use.
func missingSteps(s *session, steps []sqltext.Migration) (stepsApplied, []sqltext.Migration, error) {
	applied, err := appliedSteps(s)
	if err != nil {
		return applied, nil, err
	}
	missing, err := sqltext.Missing(steps, applied.Applied)
	return applied, missing, err
}

// schemaOf returns the version of the tables and the statements that are missing.
func schemaOf(s *session, steps []sqltext.Migration) (store.Schema, error) {
	applied, missing, err := missingSteps(s, steps)
	if err != nil {
		return store.Schema{}, err
	}
	return store.Schema{Version: applied.Version, Needs: applied.Needs, Latest: sqltext.Latest(steps), SQL: script(applied, missing)}, nil
}

// versionTable returns the statement that makes the table of versions as this program writes it. needs is the lowest version that a program must know to use
// tables with the step; NULL: the step itself. The first tables had no column needs.
func versionTable(applied stepsApplied) string {
	switch {
	case applied.Version == 0:
		return "CREATE TABLE IF NOT EXISTS holdfast_migration (version INTEGER PRIMARY KEY, at INTEGER NOT NULL, needs INTEGER) STRICT;\n"
	case !applied.hasNeeds:
		return "ALTER TABLE holdfast_migration ADD COLUMN needs INTEGER;\n"
	}
	return ""
}

// versionRow returns the statement that records a step.
func versionRow(step sqltext.Migration, at string) string {
	return fmt.Sprintf("INSERT INTO holdfast_migration (version, at, needs) VALUES (%d, %s, %d)", step.Version, at, step.Needs)
}

// script returns the statements of steps, with a record of each.
func script(applied stepsApplied, steps []sqltext.Migration) string {
	if len(steps) == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "BEGIN IMMEDIATE;\n%s", versionTable(applied))
	for _, step := range steps {
		fmt.Fprintf(&text, "%s\n%s;\n", strings.TrimSpace(step.SQL), versionRow(step, "CAST(unixepoch('subsec') * 1000000 AS INTEGER)"))
	}
	text.WriteString("COMMIT;\n")
	return text.String()
}

// checkCurrent refuses tables that this program cannot use as they are.
func checkCurrent(s *session) error {
	found, err := schemaOf(s, sqltext.Migrations("sqlite"))
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
	steps := sqltext.Migrations("sqlite")
	if _, err := os.Stat(cfg.Path); errors.Is(err, fs.ErrNotExist) {
		return store.Schema{Latest: sqltext.Latest(steps), SQL: script(stepsApplied{}, steps)}, nil
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
		found, err = schemaOf(s, steps)
		return err
	})
	return found, explain(err)
}

// stepsApplied is what the table of versions says, and whether it has the column needs.
type stepsApplied struct {
	sqltext.Applied
	hasNeeds bool
}

// appliedSteps returns which steps were applied. The version is read before the column is looked for: a step that adds the column is recorded with it.
func appliedSteps(s *session) (found stepsApplied, err error) {
	there, err := s.queryValue("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'holdfast_migration'")
	if err != nil || there == "0" {
		return found, err
	}
	text, err := s.queryValue("SELECT coalesce(max(version), 0) FROM holdfast_migration")
	if err != nil {
		return found, err
	}
	found.Version, _ = strconv.Atoi(text)
	found.Needs = found.Version
	column, err := s.queryValue("SELECT count(*) FROM pragma_table_info('holdfast_migration') WHERE name = 'needs'")
	if err != nil || column == "0" {
		return found, err
	}
	found.hasNeeds = true
	text, err = s.queryValue("SELECT coalesce(max(coalesce(needs, version)), 0) FROM holdfast_migration")
	found.Needs, _ = strconv.Atoi(text)
	return found, err
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
