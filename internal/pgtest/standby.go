package pgtest

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby starts a second server that follows this one, and has this one wait for it at every commit: what is acknowledged from then on is on both.
func (s *Server) Standby() (*Server, error) {
	follower := &Server{options: s.options, found: s.found, temporary: true}
	var err error
	if follower.dir, err = temporaryDir(); err != nil {
		return nil, err
	}
	if err = handOver(follower.dir); err == nil {
		err = follower.copyOf(s)
	}
	if err == nil {
		err = follower.startOnFreePort()
	}
	if err == nil {
		err = s.synchronise()
	}
	if err != nil {
		follower.Close()
		return nil, err
	}
	return follower, nil
}

// copyOf takes over the other server's data, with the instruction to follow it.
func (s *Server) copyOf(other *Server) error {
	program := filepath.Join(filepath.Dir(s.found.postgres), "pg_basebackup"+suffix())
	if !present(program) {
		found, err := exec.LookPath("pg_basebackup")
		if err != nil {
			return fmt.Errorf("pgtest: there is no pg_basebackup beside the server: install PostgreSQL's client programs: %w", err)
		}
		program = found
	}
	cmd := exec.Command(program, "-D", s.data(), "-d", strings.Replace(other.URL("postgres"), "/postgres?", "/?", 1), "-R", "-X", "stream", "-c", "fast", "--no-sync")
	cmd.Dir, cmd.Env = s.dir, environment()
	if err := asServerUser(cmd); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: the standby has no copy of the data: %w\n%s", err, out)
	}
	return nil
}

// synchronise has commits wait for the standby, and returns when they do.
func (s *Server) synchronise() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return fmt.Errorf("pgtest: the primary does not answer: %w", err)
	}
	defer c.Close(ctx)
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if _, err := c.Exec(ctx, statement); err != nil {
			return fmt.Errorf("pgtest: the primary does not wait for its standby: %w", err)
		}
	}
	for state := ""; state != "sync"; {
		err := c.QueryRow(ctx, "SELECT coalesce(max(sync_state), '') FROM pg_stat_replication").Scan(&state)
		if err != nil {
			return fmt.Errorf("pgtest: the standby does not follow: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("pgtest: the standby did not follow within %v", patience)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// Promote makes a standby the server that takes writes, and returns when it does.
func (s *Server) Promote() error {
	if err := run(s.URL("postgres"), "SELECT pg_promote(true, 60)"); err != nil {
		return fmt.Errorf("pgtest: the standby is not promoted: %w", err)
	}
	return nil
}

// Both is where a database is found on whichever of two servers takes writes.
func Both(s, other *Server, database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/%s?sslmode=disable&target_session_attrs=read-write&connect_timeout=2", s.port, other.port, database)
}
