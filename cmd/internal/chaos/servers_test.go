//go:build unix

package chaos

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfastdev/holdfast/internal/soak"
)

var farSeconds = soak.Pick("seconds in which servers are killed on each store", 6, 60)

// command builds the holdfast command, so that the servers are real ones.
func command(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "chaos", "-o", binary, "github.com/holdfastdev/holdfast/cmd/holdfast").CombinedOutput(); err != nil {
		t.Fatalf("cannot build the command: %v\n%s", err, out)
	}
	return binary
}

func TestNothingIsLostWhileTheServerIsKilledOnSQLite(t *testing.T) { killServers(t, "sqlite", 1) }

func TestNothingIsLostWhileTwoServersAreKilledOnPostgreSQL(t *testing.T) {
	killServers(t, "postgres", 2)
}

func killServers(t *testing.T, store string, servers int) {
	t.Helper()
	report, err := Run(t.Context(), Config{Command: []string{command(t), "chaos", "child"}, Store: store, Seconds: farSeconds, Workers: 2, Servers: servers, Progress: t.Output()})
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
	if !report.Clean() || report.Faults["sigkill_server"] == 0 {
		t.Errorf("guarantees were violated, or no server was killed: %s", text)
	}
}
