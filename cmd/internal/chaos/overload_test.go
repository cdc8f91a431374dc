//go:build unix

package chaos

import (
	"encoding/json"
	"testing"

	"github.com/holdfastdev/holdfast/internal/soak"
)

// The speed is only printed, because it depends on the machine: `make chaos` checks it.
var overloadSeconds = soak.Pick("seconds of overload of a server", 3, 20)

func TestAnOverloadedServerRefusesPolitelyLosesNothingAndLetsWorkersRenew(t *testing.T) {
	report, err := Overload(t.Context(), Config{Command: []string{command(t), "chaos", "child"}, Store: "sqlite", Seconds: overloadSeconds, Progress: t.Output()}, 5)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(report)
	t.Logf("%s", text)
	for _, violation := range report.Troubles {
		t.Error(violation)
	}
	if !report.Clean() || report.Renewals < holderCount {
		t.Errorf("guarantees were violated: %s", text)
	}
}
