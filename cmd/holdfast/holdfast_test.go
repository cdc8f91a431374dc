package main

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// TestMain lets the test binary act as the command, so that commands that start child processes can be tested.
func TestMain(m *testing.M) {
	if os.Getenv("HOLDFAST_TEST_AS_COMMAND") != "" || os.Args[0] == "holdfast-exec" {
		main()
		return
	}
	pgtest.Main(m)
}

// command runs a command line in this process and returns its exit code and output.
func command(t *testing.T, args ...string) (code int, out, stderr string) {
	t.Helper()
	var outBuffer, errBuffer bytes.Buffer
	code = run(t.Context(), args, &outBuffer, &errBuffer)
	return code, outBuffer.String(), errBuffer.String()
}

// newTestStore makes a store with a failed, a waiting and a scheduled job in it.
func newTestStore(t *testing.T) (address string, failed, waiting holdfast.ID) {
	t.Helper()
	ctx := t.Context()
	address = filepath.Join(t.TempDir(), "jobs.db")
	jobs, err := anystore.Open(ctx, address)
	ok(t, err)
	defer jobs.Close()
	receipts, err := jobs.Enqueue(ctx, []holdfast.Draft{{Kind: "mail", Owner: "acme", Dependency: "gateway"}})
	ok(t, err)
	leases, err := jobs.Claim(ctx, store.Claim{Worker: "w", Queues: []string{"default"}, Limit: 1, Start: 1, Lease: time.Minute})
	ok(t, err)
	_, err = jobs.Settle(ctx, []store.Settlement{{
		Batch: leases[0].Batch, Job: leases[0].ID, Token: leases[0].Token, To: holdfast.Failed, Charge: store.ChargeFailure, Limit: 1, Took: time.Millisecond,
		Failure: &holdfast.Failure{Code: "GW_5XX", Category: "dependency", Message: "The converter is having trouble.", Fingerprint: "f1", Dependency: "gateway"}, Why: "gave up: 1 of 1 attempts used",
	}})
	ok(t, err)
	more, err := jobs.Enqueue(ctx, []holdfast.Draft{{Kind: "mail"}, {Kind: "mail", Delay: time.Hour}})
	ok(t, err)
	return address, receipts[0].ID, more[0].ID
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOperatorCommandsDoWhatTheySay(t *testing.T) {
	address, failed, waiting := newTestStore(t)
	for _, step := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"jobs", "--state", "failed"}, exitOK, "GW_5XX"},
		{[]string{"jobs", "--state", "cancelled"}, exitOK, "no jobs match"},
		{[]string{"jobs", "--dead-letters", "--json"}, exitOK, `"code": "GW_5XX"`},
		{[]string{"jobs", "--limit", "1"}, exitOK, "more: --cursor"},
		{[]string{"story", failed.String()}, exitOK, "gave up: 1 of 1 attempts used"},
		{[]string{"explain", waiting.String()}, exitOK, "no live worker"},
		{[]string{"pause", "--queue", "default", "--actor", "ada", "--reason", "maintenance", "--for", "1h"}, exitOK, "paused for 1h0m0s"},
		{[]string{"explain", waiting.String()}, exitOK, "maintenance"},
		{[]string{"resume", "--queue", "default", "--actor", "ada"}, exitOK, "resumed"},
		{[]string{"retry", failed.String(), "--actor", "ada", "--reason", "fixed", "--owner", "other"}, exitNotFound, ""},
		{[]string{"discard", failed.String(), "--actor", "ada"}, exitUsage, ""},
		{[]string{"retry", failed.String(), "--actor", "ada", "--reason", "fixed"}, exitOK, "queued again"},
		{[]string{"retry", failed.String(), "--actor", "ada", "--reason", "again"}, exitConflict, ""},
		{[]string{"cancel", waiting.String(), "--actor", "ada"}, exitOK, "cancelled"},
		{[]string{"story", waiting.String()}, exitOK, "cancelled by ada"},
		{[]string{"doctor"}, exitOK, "no invariant is broken in 3 jobs"},
	} {
		code, out, stderr := command(t, append(step.args, "--store", address)...)
		if code != step.code || !strings.Contains(out, step.says) {
			t.Errorf("holdfast %s: exit %d, want %d with %q\n%s%s", strings.Join(step.args, " "), code, step.code, step.says, out, stderr)
		}
		if step.code != exitOK && oneLine(stderr) == "" {
			t.Errorf("holdfast %s: wanted one clear line, got %q", strings.Join(step.args, " "), stderr)
		}
	}
}

// oneLine returns the text if it is exactly one line, and otherwise nothing.
func oneLine(stderr string) string {
	line, rest, _ := strings.Cut(stderr, "\n")
	if rest != "" {
		return ""
	}
	return line
}

func TestInvalidUsageIsReportedInOneLine(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		ok(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	newer, _, _ := newTestStore(t)
	execSQL(t, newer, "INSERT INTO holdfast_migration (version, at) VALUES (99, 0)")
	for _, refused := range []struct {
		what string
		args []string
		code int
		says string
	}{
		{"an unknown scheme", []string{"doctor", "--store", "mysql://host/db"}, exitUsage, "there is no store for the scheme"},
		{"a missing file", []string{"doctor", "--store", filepath.Join(dir, "nope.db")}, exitUnavailable, "there is no store"},
		{"a folder", []string{"doctor", "--store", dir}, exitUnavailable, "directory"},
		{"a file that is something else", []string{"doctor", "--store", file("junk.db", strings.Repeat("junk", 2000))}, exitUnavailable, "not an SQLite database"},
		{"a newer schema", []string{"doctor", "--store", newer}, exitUnavailable, "upgrade this program"},
		{"a database that is not there", []string{"doctor", "--store", "postgres://u:hunter2@127.0.0.1:1/x"}, exitUnavailable, "cannot be reached"},
		{"no store at all", []string{"doctor", "--store", ""}, exitUsage, "--store"},
		{"a job id that is none", []string{"explain", "--store", newer, "17"}, exitUsage, "not a job id"},
		{"too few arguments", []string{"explain"}, exitUsage, "expected JOB"},
		{"an unknown command", []string{"nonsense"}, exitUsage, "unknown command"},
		{"an unknown flag", []string{"jobs", "--bogus"}, exitUsage, "--bogus"},
	} {
		code, _, stderr := command(t, refused.args...)
		if code != refused.code || !strings.Contains(oneLine(stderr), refused.says) {
			t.Errorf("%s: exit %d and %q, want %d and one line with %q", refused.what, code, stderr, refused.code, refused.says)
		}
		if strings.Contains(stderr, "hunter2") {
			t.Errorf("%s: the password is in %q", refused.what, stderr)
		}
	}
}

// execSQL changes the database directly.
func execSQL(t *testing.T, address, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", address)
	ok(t, err)
	defer db.Close()
	_, err = db.Exec(statement)
	ok(t, err)
}

func TestDoctorFindsARowThatWasChangedByHand(t *testing.T) {
	for what, statement := range map[string]string{
		"a job that vanished from its place": "DELETE FROM holdfast_ready",
		"a kind that is not its lane's":      "UPDATE holdfast_job SET kind = 'other'",
		"arguments that are no JSON":         "UPDATE holdfast_job SET args = '{oops'",
		"a job that lost its facts":          "DELETE FROM holdfast_job",
		"a token set back":                   "UPDATE holdfast_finished SET token = 0",
		"a failure counted away":             "UPDATE holdfast_finished SET failures = 0",
	} {
		address, _, _ := newTestStore(t)
		execSQL(t, address, statement)
		code, out, stderr := command(t, "doctor", "--store", address)
		if code != exitError || !strings.Contains(out, "BROKEN INVARIANT") {
			t.Errorf("%s: exit %d\n%s%s", what, code, out, stderr)
		}
	}
}
