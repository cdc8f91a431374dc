//go:build unix

package chaos

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfastdev/holdfast/internal/soak"
)

func TestNothingIsLostInAStormOnSQLite(t *testing.T) {
	runStorm(t, "sqlite", soak.Pick("SQLite: seconds of faults in processes and database", 20, 60))
}

func TestNothingIsLostInAStormOnPostgreSQL(t *testing.T) {
	runStorm(t, "postgres", soak.Pick("PostgreSQL: seconds of faults in processes and database", 10, 60))
}

func runStorm(t *testing.T, store string, seconds int) {
	t.Helper()
	report, err := Run(t.Context(), Config{Command: []string{os.Args[0], asChild}, Store: store, Seconds: seconds, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(report)
	t.Logf("%s", text)
	for i, violation := range report.Troubles {
		if i == 20 {
			break
		}
		t.Error(violation)
	}
	if !report.Clean() {
		t.Errorf("guarantees were violated: %s", text)
	}
	if report.Faults["sigkill"] == 0 || report.Jobs == 0 {
		t.Errorf("no worker was killed, or there were no jobs: %s", text)
	}
}

func TestTheCommandPrintsOneLineOfJSON(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "chaos", "-o", binary, "github.com/holdfastdev/holdfast/cmd/holdfast").CombinedOutput(); err != nil {
		t.Fatalf("cannot build the command: %v\n%s", err, out)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, "chaos", "--store", "sqlite", "--seconds", "2", "--workers", "2", "--lease", "1s")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the run failed: %v\n%s%s", err, out, stderr.String())
	}
	if bytes.Count(out, []byte("\n")) != 1 {
		t.Fatalf("it printed more than one line:\n%s", out)
	}
	var report map[string]any
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"jobs", "faults", "lost", "duplicated", "stale", "early", "slowest_reclaim_ms"} {
		if _, ok := report[key]; !ok {
			t.Errorf("the line has no %q: %s", key, out)
		}
	}
}
