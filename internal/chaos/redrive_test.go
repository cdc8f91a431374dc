//go:build unix

package chaos

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var deadLetters = flag.Int("chaos.redrive", 3000, "how many dead letters are redriven while workers are killed")

func TestEveryDeadLetterIsRedrivenOnceOnSQLite(t *testing.T)     { harass(t, "sqlite") }
func TestEveryDeadLetterIsRedrivenOnceOnPostgreSQL(t *testing.T) { harass(t, "postgres") }

func harass(t *testing.T, store string) {
	t.Helper()
	report, err := Redrive(t.Context(), Config{Command: []string{os.Args[0], asChild}, Store: store, Workers: 3, Progress: t.Output()}, *deadLetters)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(report)
	t.Logf("%s", text)
	for _, trouble := range report.Troubles {
		t.Error(trouble)
	}
	if !report.Clean() {
		t.Errorf("promises were broken: %s", text)
	}
}
