package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast/internal/pgtest"
)

// TestAServerRunsUnderTheRoleOfTheDeployFiles follows docs/upgrading.md: one role migrates, another one runs a server and commands.
func TestAServerRunsUnderTheRoleOfTheDeployFiles(t *testing.T) {
	admin := pgtest.Database(t)
	conn, err := pgx.Connect(t.Context(), admin)
	ok(t, err)
	script, err := os.ReadFile(filepath.Join("..", "..", "deploy", "postgres-roles.sql"))
	ok(t, err)
	exec := func(text string) {
		_, err := conn.Exec(context.Background(), text, pgx.QueryExecModeSimpleProtocol)
		ok(t, err)
	}
	exec(string(script))
	t.Cleanup(func() {
		exec("DROP OWNED BY holdfast_migrator CASCADE")
		exec("DROP OWNED BY holdfast_runner; DROP ROLE holdfast_migrator, holdfast_runner")
		_ = conn.Close(context.Background())
	})
	as := func(role string) string {
		u, err := url.Parse(admin)
		ok(t, err)
		query := u.Query()
		query.Set("schema", "jobs")
		u.User, u.RawQuery = url.User(role), query.Encode()
		return u.String()
	}
	migrator, runner := as("holdfast_migrator"), as("holdfast_runner")
	expectCommand(t, exitError, "no tables", "migrate", "--store", runner)
	expectCommand(t, exitUnavailable, "permission denied", "migrate", "up", "--store", runner)
	expectCommand(t, exitOK, "up to date", "migrate", "up", "--store", migrator)
	expectCommand(t, exitOK, "up to date", "migrate", "up", "--store", runner)

	gateway := httptest.NewServer(http.NotFoundHandler())
	defer gateway.Close()
	served := startServe(t, nil, "--store", runner, "--auth", "off", "--http-allow", "127.0.0.0/8", "--http-ports", "*")
	job := strings.TrimSpace(strings.TrimPrefix(expectCommand(t, exitOK, "", "enqueue", "http", "--args", `{"url": "`+gateway.URL+`"}`, "--server", served.url), "enqueued "))
	waitUntil(t, "the job fails", func() bool {
		_, out, _ := command(t, "job", job, "--server", served.url)
		return strings.Contains(out, "failed")
	})
	expectCommand(t, exitOK, "", "discard", job, "--reason", "tried", "--store", runner)
	expectCommand(t, exitOK, "healthy", "doctor", "--store", runner)
	if code := served.stop(t); code != exitOK {
		t.Errorf("the server stopped with %d", code)
	}
	_, err = conn.Exec(t.Context(), "SET ROLE holdfast_runner; CREATE TABLE jobs.mine ()", pgx.QueryExecModeSimpleProtocol)
	if err == nil {
		t.Error("the role can create tables: the test proves nothing")
	}
	exec("RESET ROLE")
}
