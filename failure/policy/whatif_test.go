package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var monday = time.Date(2026, 5, 4, 8, 0, 0, 0, time.UTC)

// recorded is a job whose attempts failed with a code, one a minute, each taking a second; it completed after that or failed.
func recorded(kind string, end holdfast.State, codes ...string) store.History {
	h := store.History{Job: holdfast.Job{Kind: kind, State: end, Generation: 1, CreatedAt: monday}}
	at := monday
	for i, code := range codes {
		a := store.Attempt{
			Token: i + 1, Generation: 1, StartedAt: at, EndedAt: at.Add(time.Second), To: holdfast.Queued, Charge: store.ChargeFailure,
			DueAt: at.Add(time.Minute), Failure: &holdfast.Failure{Code: code},
		}
		if i == len(codes)-1 && end == holdfast.Failed {
			a.To = holdfast.Failed
		}
		h.Attempts = append(h.Attempts, a)
		at = at.Add(time.Minute)
	}
	if end == holdfast.Complete {
		h.Job.StartedAt, h.Job.FinishedAt = at, at.Add(2*time.Second)
	}
	return h
}

func only(t *testing.T, r WhatIfReport) Difference {
	t.Helper()
	if len(r.Differences) != 1 || len(r.Assumptions) == 0 {
		t.Fatalf("%+v", r)
	}
	return r.Differences[0]
}

func TestAStricterPolicyEndsEarlierAndCostsWhatItCosts(t *testing.T) {
	s := parsed(t, `defaults: {max_attempts: 2, backoff: {shape: fixed, delay: 10s}}`)
	r := WhatIf(s, []store.History{
		recorded("convert", holdfast.Failed, "GW_5XX", "GW_5XX", "GW_5XX", "GW_5XX"),
		recorded("convert", holdfast.Complete, "GW_5XX", "GW_5XX"),
		recorded("convert", holdfast.Complete, "GW_5XX"),
		recorded("convert", holdfast.Complete),
	})
	if r.Jobs != 4 || r.Failed != 3 {
		t.Errorf("%d looked at, %d failed", r.Jobs, r.Failed)
	}
	d := only(t, r)
	want := Difference{
		Kind: "convert", Code: "GW_5XX", Jobs: 3, AttemptsThen: 9, AttemptsNow: 6, Saved: 3, Earlier: 1, Lost: 1,
		EndThen: (181 + 122 + 62) * time.Second / 3, EndNow: (12 + 12 + 13) * time.Second / 3,
	}
	if d != want {
		t.Errorf("got  %+v\nwant %+v", d, want)
	}
}

func TestAMorePatientPolicyContinuesWithTheLastFailure(t *testing.T) {
	s := parsed(t, `kinds: {convert: {max_attempts: 5, backoff: {shape: fixed, delay: 10s}}}`)
	d := only(t, WhatIf(s, []store.History{recorded("convert", holdfast.Failed, "GW_5XX", "GW_5XX")}))
	if d.AttemptsNow != 5 || d.Later != 1 || d.Further != 3 || d.Saved != 0 || d.EndNow != 45*time.Second {
		t.Errorf("%+v", d)
	}
}

func TestInstructionsOfTheHandlerAreRepeated(t *testing.T) {
	s := parsed(t, `defaults: {max_attempts: 5, retry_after_cap: 1h, backoff: {shape: fixed, delay: 10s}}`)
	never := recorded("convert", holdfast.Failed, "GW_5XX")
	never.Attempts[0].Why = "classified GW_5XX by the handler; never retried: the handler said so"
	if d := only(t, WhatIf(s, []store.History{never})); d.AttemptsNow != 1 || d.Later != 0 {
		t.Errorf("%+v", d)
	}
	asked := recorded("convert", holdfast.Complete, "RATE_LIMITED")
	asked.Attempts[0].Why = "classified RATE_LIMITED by HTTP status; attempt 2 of 3 in 59s by the other side's Retry-After"
	if d := only(t, WhatIf(s, []store.History{asked})); d.EndNow != d.EndThen {
		t.Errorf("%+v", d)
	}
}

func TestGenerationsAreJudgedApartAndCrashesByTheirOwnCount(t *testing.T) {
	s := parsed(t, `defaults: {max_attempts: 1, max_crashes: 2, crash_backoff: {shape: fixed, delay: 1s}}`)
	h := recorded("convert", holdfast.Failed, "GW_5XX", "GW_5XX")
	h.Attempts[1].Generation, h.Attempts[0].To = 2, holdfast.Failed
	h.Job.Generation = 2
	h.Events = []store.Event{{Name: "manual retry", Generation: 2, At: monday.Add(30 * time.Second)}}
	d := only(t, WhatIf(s, []store.History{h}))
	if d.Jobs != 2 || d.AttemptsThen != 2 || d.AttemptsNow != 2 || d.Earlier+d.Later != 0 || d.EndThen != (1+31)*time.Second/2 {
		t.Errorf("%+v", d)
	}
	crashed := recorded("convert", holdfast.Complete, "LOST_WORKER", "LOST_WORKER")
	for i := range crashed.Attempts {
		crashed.Attempts[i].Charge = store.ChargeCrash
	}
	if d := only(t, WhatIf(s, []store.History{crashed})); d.Lost != 1 || d.AttemptsNow != 2 {
		t.Errorf("%+v", d)
	}
	waiting := recorded("convert", holdfast.Queued, "GW_5XX")
	if d := only(t, WhatIf(parsed(t, "{}"), []store.History{waiting})); d.AttemptsNow != 1 || d.Earlier+d.Later+d.Lost != 0 {
		t.Errorf("a job that has not ended: %+v", d)
	}
}

func TestWhatIfWarnsOfCodesThatNothingDefines(t *testing.T) {
	s := parsed(t, "codes: {PRESS_JAM: {category: input, blame: user, retryable: false, http_status: 422, message: The press is jammed., remedy: Clear it.}}")
	twice := recorded("convert", holdfast.Failed, "OLD_CODE", "GW_5XX", "OLD_CODE")
	r := WhatIf(s, []store.History{twice, recorded("convert", holdfast.Failed, "OLD_CODE"), recorded("convert", holdfast.Failed, "PRESS_JAM"), recorded("convert", holdfast.Complete)})
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "nothing defines the code OLD_CODE (jobs that failed with it: 2)") {
		t.Errorf("%q", r.Warnings)
	}
}

func TestASimulationWarnsOfACodeThatNothingDefines(t *testing.T) {
	hour := Outage{To: time.Hour}
	for code, want := range map[string]int{"": 0, "GW_5XX": 0, "OLD_CODE": 1} {
		if r := Simulate(parsed(t, "{}"), Scenario{Code: code, Outage: hour}); len(r.Warnings) != want {
			t.Errorf("%q: %q", code, r.Warnings)
		}
	}
	if r := Simulate(parsed(t, "{}"), Scenario{Code: "OLD_CODE"}); len(r.Warnings) != 0 {
		t.Errorf("without an outage nothing fails: %q", r.Warnings)
	}
}
