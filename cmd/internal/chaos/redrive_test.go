//go:build unix

package chaos

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/holdfastdev/holdfast/internal/soak"
)

var deadLetters = soak.Pick("dead letters that are redriven while workers are killed", 1000, 10_000)

func TestEveryDeadLetterIsRedrivenOnceOnSQLite(t *testing.T)     { redriveWhileKilling(t, "sqlite") }
func TestEveryDeadLetterIsRedrivenOnceOnPostgreSQL(t *testing.T) { redriveWhileKilling(t, "postgres") }

func redriveWhileKilling(t *testing.T, store string) {
	t.Helper()
	report, err := Redrive(t.Context(), Config{Command: []string{os.Args[0], asChild}, Store: store, Workers: 3, Progress: t.Output()}, deadLetters)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(report)
	t.Logf("%s", text)
	for _, violation := range report.Troubles {
		t.Error(violation)
	}
	if !report.Clean() {
		t.Errorf("guarantees were violated: %s", text)
	}
}
