//go:build unix

package chaos

import (
	"encoding/json"
	"flag"
	"testing"
)

// What depends on the speed of a machine is only printed, unless the run is long.
var overloadSeconds = flag.Int("chaos.overload", 3, "how long a server is offered ten times of what it can take")

func TestAnOverloadedServerRefusesPolitelyLosesNothingAndLetsWorkersRenew(t *testing.T) {
	each := 5
	if *overloadSeconds >= 30 {
		each = 500
	}
	report, err := Overload(t.Context(), Config{Command: []string{command(t), "chaos", "child"}, Store: "sqlite", Seconds: *overloadSeconds, Progress: t.Output()}, each)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(report)
	t.Logf("%s", text)
	for _, trouble := range report.Troubles {
		t.Error(trouble)
	}
	if !report.Clean() || report.Renewals < holders {
		t.Errorf("promises were broken: %s", text)
	}
	if *overloadSeconds >= 30 && report.Ratio < 0.9 {
		t.Errorf("under overload it did %.0f %% of what it can do", 100*report.Ratio)
	}
}
