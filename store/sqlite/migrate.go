package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast/store/internal/sqltext"
)

// migrate migrates the schema from its present version to this binary's, all steps in one transaction. The version is
// in a table, as on PostgreSQL: the user_version pragma belongs to the application whose tables may share the file.
func migrate(s *session) (err error) {
	steps := sqltext.Migrations("sqlite")
	version, err := schemaVersion(s)
	if err != nil || version == len(steps) {
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
	if version, err = schemaVersion(s); err != nil {
		return err
	}
	if err := s.runScript("CREATE TABLE IF NOT EXISTS holdfast_migration (version INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT"); err != nil {
		return err
	}
	for ; version < len(steps); version++ {
		if err := s.runScript(steps[version]); err != nil {
			return fmt.Errorf("schema step %d: %w", version+1, err)
		}
		if err := s.runScript(fmt.Sprintf("INSERT INTO holdfast_migration (version, at) VALUES (%d, %d)", version+1, time.Now().UnixMicro())); err != nil {
			return err
		}
	}
	return s.runScript("COMMIT")
}

// schemaVersion returns the version of the schema, and refuses one that this binary does not know.
func schemaVersion(s *session) (int, error) {
	there, err := s.queryValue("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'holdfast_migration'")
	if err != nil || there == "0" {
		return 0, err
	}
	text, err := s.queryValue("SELECT coalesce(max(version), 0) FROM holdfast_migration")
	if err != nil {
		return 0, err
	}
	version, _ := strconv.Atoi(text)
	if known := len(sqltext.Migrations("sqlite")); version > known {
		return 0, unavailable(fmt.Sprintf("the database was written by a newer holdfast (schema %d, this binary knows %d): upgrade the binary", version, known), nil)
	}
	return version, nil
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
