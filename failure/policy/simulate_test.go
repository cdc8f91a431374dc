package policy

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast"
)

// linesOf returns a trial as lines of text, without the reasons of failure.Decide.
func linesOf(trial Simulation) string {
	var lines []string
	for _, l := range trial.Lines {
		lines = append(lines, fmt.Sprintf("%v #%d %s %v", l.At, l.Attempt, l.What, l.Delay))
	}
	return strings.Join(append(lines, fmt.Sprintf("%s after %v", trial.End, trial.After)), "\n")
}

const simple = `
defaults: {max_attempts: 4, backoff: {shape: table, delays: [10s, 1m, 5m]}}
kinds: {short: {max_attempts: 2}, promised: {retry_within: 30s}}
owners: {patient: {max_attempts: 9}}
codes: {GW_4XX: {retryable: false}}
dependencies: {gateway: {breaker: {open_for: 20s, open_max: 40s}}, hasty: {breaker: {mode: fail-fast, code: GW_5XX}}}
queues: {bulk: {no_retries: {from: "09:00", to: "17:00"}}}
`

func TestAnAttemptRunsWhenThePolicySaysAndTheJobEndsAsDecided(t *testing.T) {
	s := parsed(t, simple)
	for name, c := range map[string]struct {
		scene Scenario
		want  string
	}{
		"no outage":   {Scenario{Take: time.Second}, "0s #1 completes 0s\ncomplete after 1s"},
		"it recovers": {Scenario{Take: time.Second, Outage: Outage{0, time.Minute}}, "0s #1 fails 10s\n11s #2 fails 1m0s\n1m12s #3 completes 0s\ncomplete after 1m13s"},
		"it gives up": {Scenario{Kind: "short", Outage: Outage{0, time.Hour}}, "0s #1 fails 10s\n10s #2 gives up 0s\nfailed after 10s"},
		"patience":    {Scenario{Kind: "short", Owner: "patient", Outage: Outage{0, time.Minute}}, "0s #1 fails 10s\n10s #2 fails 1m0s\n1m10s #3 completes 0s\ncomplete after 1m10s"},
		"final":       {Scenario{Code: "GW_4XX", Outage: Outage{0, time.Hour}}, "0s #1 gives up 0s\nfailed after 0s"},
		"later on":    {Scenario{Outage: Outage{time.Minute, time.Hour}}, "0s #1 completes 0s\ncomplete after 0s"},
		"a window": {
			Scenario{Queue: "bulk", Outage: Outage{0, time.Minute}, At: time.Date(2026, 5, 4, 16, 0, 0, 0, time.UTC)},
			"0s #1 fails 10s\n10s #1 is held 59m50s\n1h0m0s #2 completes 0s\ncomplete after 1h0m0s",
		},
		"a first attempt passes a window": {Scenario{Queue: "bulk", At: time.Date(2026, 5, 4, 16, 0, 0, 0, time.UTC)}, "0s #1 completes 0s\ncomplete after 0s"},
	} {
		trial := Simulate(s, c.scene)
		if got := linesOf(trial); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
		if trial.Attempts == 0 || len(trial.Assumptions) == 0 {
			t.Errorf("%s: %d attempts, %d assumptions", name, trial.Attempts, len(trial.Assumptions))
		}
	}
	trial := Simulate(s, Scenario{Outage: Outage{0, time.Minute}, Code: "GW_5XX"})
	if why := trial.Lines[0].Why; why != "classified GW_5XX by the handler; attempt 2 of 4 in 10s by table of delays" {
		t.Errorf("the reason is not Decide's own: %s", why)
	}
}

func TestABreakerHoldsTheJobAndSparesItsAttempts(t *testing.T) {
	s := parsed(t, simple)
	scene := Scenario{Dependency: "gateway", Code: "GW_5XX", Outage: Outage{0, 10 * time.Minute}, Traffic: 5, Take: time.Second}
	without := Simulate(s, scene)
	if without.End != holdfast.Failed {
		t.Errorf("without a breaker four attempts are too few for ten minutes: %s", linesOf(without))
	}
	scene.Breaker = true
	with := Simulate(s, scene)
	if with.End != holdfast.Complete || with.Attempts > 3 || with.After > 12*time.Minute || !strings.Contains(linesOf(with), "is held") {
		t.Errorf("with a breaker it should wait, and complete soon after the outage: %s", linesOf(with))
	}
	if held := with.Lines[1]; held.What != "is held" || held.Delay < 10*time.Minute-11*time.Second || held.Why != "breaker open, until probe 16 succeeds" {
		t.Errorf("one line for one hold: %+v", with.Lines)
	}
	scene.Outage.To = 100 * 24 * time.Hour
	if forever := Simulate(s, scene); forever.End != holdfast.Queued || len(forever.Lines) != 3 || forever.Attempts != 1 {
		t.Errorf("an outage that does not end: %s", linesOf(forever))
	}
}

func TestABreakerThatFailsFastFailsTheJobWithItsCode(t *testing.T) {
	s := parsed(t, simple)
	trial := Simulate(s, Scenario{Dependency: "hasty", Outage: Outage{0, time.Hour}, Traffic: 50, Take: time.Second, Breaker: true})
	last := trial.Lines[len(trial.Lines)-1]
	if trial.End != holdfast.Failed || last.What != "gives up" || !strings.Contains(last.Why, "GW_5XX") && !strings.Contains(last.Why, "open") {
		t.Errorf("%s: %s", linesOf(trial), last.Why)
	}
}

func TestALateStartIsReported(t *testing.T) {
	s := parsed(t, simple)
	trial := Simulate(s, Scenario{Kind: "promised", Queue: "bulk", Outage: Outage{0, time.Minute}, At: time.Date(2026, 5, 4, 16, 0, 0, 0, time.UTC)})
	if !strings.Contains(linesOf(trial), "1h0m0s #1 is late") {
		t.Error(linesOf(trial))
	}
}

func TestASimulationEndsAndIsDeterminedByItsSeed(t *testing.T) {
	s := parsed(t, whole)
	rapid.Check(t, func(t *rapid.T) {
		scene := Scenario{
			Kind: rapid.SampledFrom([]string{"", "convert", "mail.x"}).Draw(t, "kind"), Owner: rapid.SampledFrom([]string{"", "acme", "zoe"}).Draw(t, "owner"),
			Queue: rapid.SampledFrom([]string{"", "bulk"}).Draw(t, "queue"), Dependency: rapid.SampledFrom([]string{"", "gateway", "s3:cold"}).Draw(t, "dependency"),
			Code: rapid.SampledFrom([]string{"", "GW_4XX", "RATE_LIMITED", "odd"}).Draw(t, "code"), Take: rapid.SampledFrom([]time.Duration{-1, 0, time.Second, time.Hour}).Draw(t, "take"), Outage: Outage{rapid.SampledFrom([]time.Duration{-1, 0, 0, 0, 5 * time.Second}).Draw(t, "from"), rapid.SampledFrom([]time.Duration{-1, 10 * time.Second, 5 * time.Minute, 3 * time.Hour, 36 * time.Hour}).Draw(t, "to")},
			Breaker: rapid.Bool().Draw(t, "breaker"), Traffic: rapid.SampledFrom([]float64{0, 0.001, 5, 1e12, math.Inf(1)}).Draw(t, "traffic"), Seed: rapid.Uint64().Draw(t, "seed"),
		}
		if rapid.Bool().Draw(t, "at a time") {
			scene.At = time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC)
		}
		first, again := Simulate(s, scene), Simulate(s, scene)
		if linesOf(first) != linesOf(again) {
			t.Fatalf("not the same twice:\n%s\n%s", linesOf(first), linesOf(again))
		}
		if first.Attempts < 1 || first.Lines[len(first.Lines)-1].What == "fails" {
			t.Fatalf("the end is not known:\n%s", linesOf(first))
		}
		before := time.Duration(0)
		for _, l := range first.Lines {
			if l.At < before {
				t.Fatalf("time goes backwards: %s", linesOf(first))
			}
			before = l.At
		}
	})
}
