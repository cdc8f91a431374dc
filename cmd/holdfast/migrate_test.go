package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// expectCommand runs a command and compares its exit code and its output.
func expectCommand(t *testing.T, code int, says string, args ...string) string {
	t.Helper()
	got, out, stderr := command(t, args...)
	if got != code || !strings.Contains(out+stderr, says) {
		t.Fatalf("holdfast %s: exit %d, want %d and %q\n%s%s", strings.Join(args, " "), got, code, says, out, stderr)
	}
	return out
}

func TestCommandsThatLookMigrateNothing(t *testing.T) {
	url := pgtest.Database(t)
	conn, err := pgx.Connect(t.Context(), url)
	ok(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	for _, line := range []string{"queues", "jobs", "doctor", "migrate sql", "workers"} {
		command(t, append(strings.Fields(line), "--store", url)...)
	}
	expectCommand(t, exitUnavailable, "holdfast migrate up", "queues", "--store", url)
	expectCommand(t, exitError, "no tables", "migrate", "--store", url)
	var tables int
	ok(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'holdfast%'").Scan(&tables))
	if tables != 0 {
		t.Fatalf("%d tables were created", tables)
	}

	script := expectCommand(t, exitOK, "CREATE TABLE", "migrate", "sql", "--store", url)
	_, err = conn.Exec(t.Context(), script, pgx.QueryExecModeSimpleProtocol)
	ok(t, err)
	expectCommand(t, exitOK, "up to date", "migrate", "--store", url)
	expectCommand(t, exitOK, "healthy", "doctor", "--store", url)
}

func TestMigrateUpCreatesTheTables(t *testing.T) {
	url := pgtest.Database(t)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	for _, address := range []string{url, url + separator + "schema=work", filepath.Join(t.TempDir(), "jobs.db")} {
		expectCommand(t, exitError, "no tables", "migrate", "--store", address)
		expectCommand(t, exitOK, "up to date", "migrate", "up", "--store", address)
		expectCommand(t, exitOK, "up to date", "migrate", "up", "--store", address)
		if script := expectCommand(t, exitOK, "", "migrate", "sql", "--store", address); script != "" {
			t.Errorf("there is something to migrate after 'migrate up': %s", script)
		}
		s, err := anystore.OpenExisting(t.Context(), address)
		ok(t, err)
		ok(t, s.Close())
	}
}

func TestAnOlderOrNewerSchemaIsNamedInOneLine(t *testing.T) {
	url := pgtest.Database(t)
	expectCommand(t, exitOK, "", "migrate", "up", "--store", url)
	conn, err := pgx.Connect(t.Context(), url)
	ok(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(t.Context(), "INSERT INTO holdfast_migration (version) VALUES (999)")
	ok(t, err)
	for _, line := range []string{"queues", "migrate", "migrate up"} {
		code, out, stderr := command(t, append(strings.Fields(line), "--store", url)...)
		if code != exitUnavailable || out != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "newer holdfast") {
			t.Errorf("%s: exit %d\n%s%s", line, code, out, stderr)
		}
	}
}

func TestTablesThatANewerReleaseHasMigratedAreUsedIfItsStepsAllowIt(t *testing.T) {
	url, file := pgtest.Database(t), filepath.Join(t.TempDir(), "jobs.db")
	expectCommand(t, exitOK, "", "migrate", "up", "--store", url)
	expectCommand(t, exitOK, "", "migrate", "up", "--store", file)
	conn, err := pgx.Connect(t.Context(), url)
	ok(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(t.Context(), "INSERT INTO holdfast_migration (version, needs) VALUES (99, 5)")
	ok(t, err)
	execSQL(t, file, "INSERT INTO holdfast_migration (version, at, needs) VALUES (99, 0, 5)")
	for _, address := range []string{url, file} {
		for _, line := range []string{"migrate", "migrate up"} {
			expectCommand(t, exitOK, "version 99: migrated by a newer release; this program knows version ", append(strings.Fields(line), "--store", address)...)
		}
		if script := expectCommand(t, exitOK, "", "migrate", "sql", "--store", address); script != "" {
			t.Errorf("there is something to migrate: %s", script)
		}
		expectCommand(t, exitOK, "healthy", "doctor", "--store", address)
		expectCommand(t, exitOK, "", "queues", "--store", address)
	}
}

func TestOpenExistingCreatesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	if _, err := anystore.OpenExisting(t.Context(), path); err == nil || !strings.Contains(err.Error(), "check the path") {
		t.Errorf("error: %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file was created: %v", err)
	}
}
