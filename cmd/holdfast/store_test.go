package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// serveOnce runs serve in a child process, in an empty folder, until it ends.
func serveOnce(t *testing.T, args ...string) (code int, out, dir string) {
	t.Helper()
	ctx, enough := context.WithTimeout(t.Context(), testTimeout)
	defer enough()
	dir = t.TempDir()
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env, cmd.Dir = append(os.Environ(), "HOLDFAST_TEST_AS_COMMAND=1"), dir
	text, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(text), dir
}

func TestServeOnAStoreThatCannotBeOpenedSaysOneLine(t *testing.T) {
	t.Parallel()
	notes := filepath.Join(t.TempDir(), "notes.txt")
	ok(t, os.WriteFile(notes, []byte(strings.Repeat("no database\n", 500)), 0o600))
	for name, c := range map[string]struct {
		store string
		code  int
		says  string
	}{
		"the folder is missing":  {filepath.Join(t.TempDir(), "no", "jobs.db"), exitUnavailable, "directory does not exist"},
		"no SQLite file":         {notes, exitUnavailable, "not an SQLite database"},
		"a folder":               {t.TempDir(), exitUnavailable, "is a directory"},
		"no permission":          {"/proc/jobs.db", exitUnavailable, "cannot be created"},
		"the database is down":   {"postgres://ada:SECRETPW@127.0.0.1:1/jobs?connect_timeout=2", exitUnavailable, "cannot be reached"},
		"keywords":               {"host=127.0.0.1 password=SECRETPW", exitUsage, "postgres://"},
		"no slashes":             {"postgres:ada:SECRETPW@x", exitUsage, "postgres://"},
		"a port that is no port": {"postgres://ada:SECRETPW@x:y/jobs", exitUsage, "postgres://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, dir := serveOnce(t, "--store", c.store)
			if code != c.code || strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, "holdfast: ") || !strings.Contains(out, c.says) || strings.Contains(out, "SECRETPW") {
				t.Errorf("exit %d:\n%s\nwanted %d and one line with %q", code, out, c.code, c.says)
			}
			if made, _ := filepath.Glob(filepath.Join(dir, "*")); len(made) > 0 {
				t.Errorf("it created %q", made)
			}
		})
	}
}

func TestNoCommandPrintsThePasswordOfAnAddress(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, address := range []string{"host=127.0.0.1 password=SECRETPW", "postgres:ada:SECRETPW@x", "postgres://ada:SECRETPW@x:y/jobs"} {
		t.Setenv("HOLDFAST_STORE", address)
		for _, line := range []string{"config", "config --json", "jobs", "doctor --json", "restore notes.txt --store '" + address + "'", "jobs --store '" + address + "'", "backup notes.db"} {
			if _, out, stderr := command(t, splitArgs(line)...); strings.Contains(out+stderr, "SECRETPW") {
				t.Errorf("%s with %s: %s", line, address, out+stderr)
			}
		}
	}
	if made, _ := filepath.Glob("*"); len(made) > 0 {
		t.Errorf("it created %q", made)
	}
}

func TestNoPasswordOfAServerIsPrinted(t *testing.T) {
	for _, address := range []string{"http://ada:SECRETPW@127.0.0.1:1", "http//ada:SECRETPW@127.0.0.1", "hf_57a88aad6b60_SECRETPW"} {
		t.Setenv("HOLDFAST_SERVER", address)
		for _, line := range []string{"config", "config --json", "jobs", "jobs --json --server '" + address + "'"} {
			if _, out, stderr := command(t, splitArgs(line)...); strings.Contains(out+stderr, "SECRETPW") {
				t.Errorf("%s with %s: %s", line, address, out+stderr)
			}
		}
	}
}

func TestAStoreThatOthersCanReadIsNamed(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // file permissions are inherited there
	}
	address, _, _ := newTestStore(t)
	ok(t, os.Chmod(filepath.Dir(address), 0o755))
	if code, _, stderr := command(t, "doctor", "--store", address); code != exitOK || stderr != "" {
		t.Fatalf("a private store: %d %s", code, stderr)
	}
	ok(t, os.Chmod(address, 0o644))
	if code, _, stderr := command(t, "doctor", "--store", address); code != exitOK || !strings.Contains(stderr, "warning: every user of this machine can access "+address) {
		t.Errorf("%d %s", code, stderr)
	}
	var log bytes.Buffer
	set, err := settings(serveCommand())
	ok(t, err)
	ok(t, set.Set("listen", "127.0.0.1:0"))
	s := &serverProcess{set: set, logOutput: &log}
	defer s.close()
	ok(t, s.open(t.Context(), address))
	if !strings.Contains(log.String(), "store_exposed") {
		t.Errorf("the log of serve: %s", log.String())
	}
	ok(t, os.Chmod(filepath.Dir(address), 0o700))
	if _, _, stderr := command(t, "doctor", "--store", address); stderr != "" {
		t.Errorf("in a private folder: %s", stderr)
	}
}
