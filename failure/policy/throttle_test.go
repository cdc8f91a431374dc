package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

const throttled = `
defaults: {max_attempts: 2, backoff: {delay: 10s}, throttle: free}
kinds: {paid: {throttle: attempt}, hasty: {give_up_after: 5m}, strict: {throttle_trips_breaker: true}}
`

func TestASimulatedThrottleSpendsNoAttempt(t *testing.T) {
	s := parsed(t, throttled)
	scene := Scenario{Code: "RATE_LIMITED", RetryAfter: 90 * time.Second, Outage: Outage{0, 4 * time.Minute}}
	free := "0s #1 is throttled 1m30s\n1m30s #2 is throttled 1m30s\n3m0s #3 is throttled 1m30s\n4m30s #4 completes 0s\ncomplete after 4m30s"
	if got := linesOf(Simulate(s, scene)); got != free {
		t.Errorf("free:\n%s", got)
	}
	scene.Kind = "paid"
	if got := linesOf(Simulate(s, scene)); got != "0s #1 fails 1m30s\n1m30s #2 gives up 0s\nfailed after 1m30s" {
		t.Errorf("by attempts:\n%s", got)
	}
	scene.Kind, scene.Outage.To = "hasty", time.Hour
	if got := linesOf(Simulate(s, scene)); !strings.HasSuffix(got, "4m30s #4 gives up 0s\nfailed after 4m30s") {
		t.Errorf("beyond the give-up time:\n%s", got)
	}
	scene.Dependency, scene.Breaker, scene.Traffic, scene.Outage.To = "gateway", true, 50, 4*time.Minute
	scene.Kind = ""
	if got := linesOf(Simulate(s, scene)); got != free {
		t.Errorf("a breaker sees no bad call in it:\n%s", got)
	}
	scene.Kind = "strict"
	if got := linesOf(Simulate(s, scene)); !strings.Contains(got, "is held") {
		t.Errorf("although the policy says so:\n%s", got)
	}
}

func TestWhatIfKnowsThrottles(t *testing.T) {
	start := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	job := holdfast.Job{ID: holdfast.ID{1}, Kind: "call", State: holdfast.Failed, Generation: 1, CreatedAt: start}
	limited := func(n int, to holdfast.State, why string) store.Attempt {
		at := start.Add(time.Duration(n) * 90 * time.Second)
		return store.Attempt{Token: n + 1, Generation: 1, StartedAt: at, EndedAt: at, To: to, Charge: store.ChargeFailure, DueAt: at.Add(90 * time.Second), Why: why,
			Failure: &holdfast.Failure{Code: "RATE_LIMITED", Category: "throttled", Message: "later", Context: map[string]string{"http_status": "429"}}}
	}
	asked := "classified RATE_LIMITED by HTTP status 429; attempt 2 of 3 in 1m30s by the other side's Retry-After"
	spent := store.History{Job: job, Attempts: []store.Attempt{limited(0, holdfast.Queued, asked), limited(1, holdfast.Queued, asked)}}
	spent.Job.State, spent.Job.FinishedAt = holdfast.Complete, start.Add(3*time.Minute)
	d := WhatIf(parsed(t, throttled), []store.History{spent}).Differences[0]
	if d.AttemptsThen != 3 || d.AttemptsNow != 1 || d.Lost != 0 {
		t.Errorf("what spent attempts then would be free: %+v", d)
	}
	free := spent
	free.Attempts = []store.Attempt{limited(5, holdfast.Queued, "throttled: waits 1m30s by the other side's Retry-After; no attempt spent")}
	free.Attempts[0].Charge, free.Attempts[0].Repeats = store.ChargeRelease, 4
	free.Attempts[0].Failure.Context["throttled"] = "1m30s"
	d = WhatIf(parsed(t, throttled), []store.History{free}).Differences[0]
	if d.AttemptsThen != 1 || d.AttemptsNow != 1 || d.Lost != 0 {
		t.Errorf("what was free is free: %+v", d)
	}
	d = WhatIf(parsed(t, "defaults: {max_attempts: 3, throttle: attempt}"), []store.History{free}).Differences[0]
	if d.AttemptsThen != 1 || d.AttemptsNow != 3 || d.Lost != 1 {
		t.Errorf("what was free would have been lost: %+v", d)
	}
}
