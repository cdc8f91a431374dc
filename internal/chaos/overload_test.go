//go:build unix

package chaos

import (
	"encoding/json"
	"flag"
	"testing"
)

// Results that depend on the speed of the machine are only printed, unless the run is long.
var overloadSeconds = flag.Int("chaos.overload", 3, "duration of the overload in seconds")

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
	for _, violation := range report.Troubles {
		t.Error(violation)
	}
	if !report.Clean() || report.Renewals < holderCount {
		t.Errorf("guarantees were violated: %s", text)
	}
	if *overloadSeconds >= 30 && report.Ratio < 0.9 {
		t.Errorf("goodput under overload is %.0f %% of the peak", 100*report.Ratio)
	}
}
