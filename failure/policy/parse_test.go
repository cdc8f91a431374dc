package policy

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// whole contains every setting of a file.
const whole = `# how we try
defaults:
  max_attempts: 5
  give_up_after: 24h
  backoff: {shape: exponential, base: 5s, factor: 2, cap: 1h, jitter: 20%}
  retry_after_cap: 1h
  max_crashes: 3
  crash_backoff: {shape: fixed, delay: 0s}
  retry_within: 15m
  no_retries: [{from: "23:00", to: "01:00"}]
codes:
  RATE_LIMITED: {max_attempts: 10, backoff: {shape: table, delays: [5s, 15s, 45s]}}
  GW_4XX: {retryable: false}
kinds:
  convert:
    max_attempts: 4
    learned: true
    min_success_rate: 3%
    cost: 2.5
    codes: {GW_5XX: {max_attempts: 7, give_up_after: 2d, backoff: {delay: 1m, jitter: full}}}
    limit: {at_most: 8, per_second: 5}
  "mail.*": {cost: 1}
owners:
  acme:
    max_attempts: 2
    retry_within: 5m
    share: 3
    enqueue: {per_second: 10, burst: 50}
    budget: {retries_per_day: 1000, retries_per_month: 20000, cost_per_day: 500, zone: Europe/Berlin}
  "*":
    limit: {at_most: 20}
    enqueue: {per_second: 2}
    give_up_after: 1h
dependencies:
  gateway:
    breaker: {window: 30, span: 2m, min_calls: 12, failure_rate: 40%, slow_call: 5s, slow_rate: 0.7, open_for: 20s, open_max: 5m, probes: 3, successes: 4, ramp: 1m, mode: fail-fast, code: GW_5XX, off: false}
    budget: {ratio: 10%, floor: 6, burst: 50}
    limit: {at_most: 4, per_second: 10, burst: 20}
    probe: {url: "http://gateway/healthz", every: 7s}
  "s3:*": {breaker: {min_calls: 5}, budget: {off: true}}
  "s3:cold": {breaker: {open_for: 1m}}
queues:
  bulk: {limit: {at_most: 50}, no_retries: [{from: "09:00", to: "17:00", zone: Europe/Berlin, days: [mon-fri]}, {from: 9:30, to: "24:00", days: sat}]}
`

func parsed(t *testing.T, text string) *Set {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("a sound file was refused:\n%v", err)
	}
	return s
}

func TestEverySettingOfAFileIsRead(t *testing.T) {
	s := parsed(t, whole)
	if s.Text() != whole {
		t.Error("the text is not what was parsed")
	}
	p := s.For("convert", "")
	want := failure.Policy{
		MaxAttempts: 4, GiveUpAfter: 24 * time.Hour, MaxCrashes: 3, RetryAfterCap: time.Hour, RetryWithin: 15 * time.Minute, Learned: true, MinSuccessRate: 0.03,
		Backoff: failure.Exponential{Base: 5 * time.Second, Factor: 2, Cap: time.Hour, Jitter: failure.Jitter{Percent: 20}}, CrashBackoff: failure.Fixed(0),
	}
	codes := p.Codes
	p.Codes = nil
	if got := fmt.Sprintf("%+v", p); got != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %s\nwant %+v", got, want)
	}
	gw := codes["GW_5XX"]
	if gw.MaxAttempts != 7 || gw.GiveUpAfter != 48*time.Hour || gw.Backoff != (failure.Spread{Of: failure.Fixed(time.Minute), Jitter: failure.Jitter{Full: true}}) {
		t.Errorf("GW_5XX: %+v", gw)
	}
	if final := codes["GW_4XX"].Retryable; final == nil || *final {
		t.Errorf("GW_4XX is still retryable")
	}
	b := s.Breaker("gateway")
	if got := fmt.Sprintf("%+v", b); got != "{Window:30 Span:2m0s MinCalls:12 FailureRate:0.4 SlowCall:5s SlowRate:0.7 OpenFor:20s OpenMax:5m0s Probes:3 Successes:4 Ramp:1m0s FailFast:true Code:GW_5XX Disabled:false}" {
		t.Errorf("breaker: %s", got)
	}
	if b := s.Breaker("s3:cold"); b.MinCalls != 5 || b.OpenFor != time.Minute {
		t.Errorf("settings that a name lacks come from its pattern: %+v", b)
	}
	if budget, on := s.Budget("gateway"); !on || budget != (failure.Budget{Ratio: 0.1, Floor: 6, Burst: 50}) {
		t.Errorf("budget: %+v, %v", budget, on)
	}
	if _, on := s.Budget("s3:warm"); on {
		t.Error("the budget of s3:* is off")
	}
	if probe, ok := s.Probe("gateway"); !ok || probe != (Probe{"http://gateway/healthz", 7 * time.Second}) {
		t.Errorf("probe: %+v", probe)
	}
	if got := fmt.Sprint(s.Share("acme"), s.Share("other"), s.Shares(), s.Cost("convert"), s.Cost("mail.welcome"), s.Cost("x")); got != "3 1 map[acme:3] 2.5 1 0" {
		t.Errorf("shares and costs: %s", got)
	}
	berlin, _ := time.LoadLocation("Europe/Berlin")
	if got, ok := s.OwnerBudget("acme"); !ok || got.Zone.String() != berlin.String() || got.RetriesPerDay != 1000 || got.RetriesPerMonth != 20000 || got.CostPerDay != 500 {
		t.Errorf("owner budget: %+v", got)
	}
	rate, ok := s.EnqueueRate("acme")
	each, _ := s.EnqueueRate("anybody")
	if !ok || rate != (store.Rate{PerSecond: 10, Burst: 50, Level: 50}) || each != (store.Rate{PerSecond: 2, Burst: 2, Level: 2}) {
		t.Errorf("enqueue: %+v, %+v", rate, each)
	}
}

func TestTheFileInTheDocumentationIsSound(t *testing.T) {
	text, err := os.ReadFile("../../docs/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	parsed(t, string(text))
}

func TestLimitsAndWindowsBecomeHoldsThatAStoreAccepts(t *testing.T) {
	s := parsed(t, whole)
	var lines []string
	for _, h := range s.Holds() {
		scope, name := h.Scope()
		lines = append(lines, fmt.Sprintf("%s %s %d %v %s %s", scope, name, h.AtMost, h.Rate != nil, h.Source, h.Actor))
		if err := h.Check(); err != nil {
			t.Errorf("%s %s: %v", scope, name, err)
		}
	}
	want := "kind convert 8 true limit policy\nowner * 20 false limit policy\ndependency gateway 4 true limit policy\nqueue bulk 50 false limit policy"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	monday := time.Date(2026, 5, 4, 8, 30, 0, 0, time.UTC) // 10:30 in Berlin
	holds := s.WindowHolds(monday)
	if len(holds) != 1 || holds[0].Queue != "bulk" || !holds[0].Retries || holds[0].For != 6*time.Hour+30*time.Minute || holds[0].Check() != nil {
		t.Errorf("monday morning: %+v", holds)
	}
	holds = s.WindowHolds(monday.Add(15 * time.Hour)) // 23:30 UTC
	if len(holds) != 1 || holds[0].Queue != "*" || holds[0].For != 90*time.Minute || holds[0].Check() != nil {
		t.Errorf("monday night: %+v", holds)
	}
	if holds = s.WindowHolds(monday.Add(10 * time.Hour)); len(holds) != 0 {
		t.Errorf("monday evening: %+v", holds)
	}
}

func TestWindowsThatFollowEachOtherMakeOneHold(t *testing.T) {
	s := parsed(t, `queues: {bulk: {no_retries: [{from: "12:00", to: "13:00"}, {from: "10:00", to: "12:00"}, {from: "15:00", to: "16:00"}]}}`)
	holds := s.WindowHolds(time.Date(2026, 5, 4, 11, 0, 0, 0, time.UTC))
	if len(holds) != 1 || holds[0].For != 2*time.Hour || !strings.Contains(holds[0].Reason, "from 10:00 to 12:00 UTC") {
		t.Errorf("%+v", holds)
	}
	always := parsed(t, `defaults: {no_retries: {from: "00:00", to: "24:00"}}`)
	if holds := always.WindowHolds(time.Date(2026, 5, 4, 11, 0, 0, 0, time.UTC)); len(holds) != 1 || holds[0].For < 24*time.Hour || holds[0].For > 8*24*time.Hour {
		t.Errorf("a window that never ends: %+v", holds)
	}
}

func TestTheNearestWordWins(t *testing.T) {
	s := parsed(t, whole)
	for _, c := range []struct {
		kind, owner, code string
		attempts          int
	}{
		{"other", "", "UNKNOWN", 5}, {"other", "", "RATE_LIMITED", 10}, {"convert", "", "UNKNOWN", 4}, {"convert", "", "RATE_LIMITED", 4},
		{"convert", "", "GW_5XX", 7}, {"convert", "acme", "GW_5XX", 2}, {"other", "acme", "RATE_LIMITED", 2}, {"convert", "zoe", "GW_5XX", 7},
	} {
		p := s.For(c.kind, c.owner)
		job := store.Lease{}
		job.Failures = c.attempts - 2
		for n := c.attempts - 1; n <= c.attempts; n++ {
			v := failure.Decide(failure.Rules{Policy: p}, job, failure.Outcome{Err: failure.WithCode(errors.New("x"), c.code)})
			if (v.To == holdfast.Failed) != (n == c.attempts) {
				t.Errorf("%s of %q with %s: after %d failures it is %s: %s", c.kind, c.owner, c.code, n, v.To, v.Why)
			}
			job.Failures++
		}
	}
	if p := s.For("convert", "acme"); p.RetryWithin != 5*time.Minute || p.GiveUpAfter != time.Hour || !p.Learned {
		t.Errorf("owner over pattern over kind over defaults: %+v", p)
	}
	if s.Key("convert", "zoe") != s.Key("convert", "yan") || s.Key("convert", "acme") == s.Key("convert", "zoe") {
		t.Error("keys tell apart what is the same, or the other way round")
	}
}

func TestSettingsInGoApplyWhereTheFileSetsNothing(t *testing.T) {
	yes := true
	own := failure.Policy{MaxAttempts: 9, MaxCrashes: 8, Codes: map[string]failure.Override{"GW_4XX": {Retryable: &yes, MaxAttempts: 6}}}
	p := parsed(t, `defaults: {max_crashes: 2}`).Over(Own{Engine: own}, "convert", "acme")
	if p.MaxAttempts != 9 || p.MaxCrashes != 2 || p.Codes["GW_4XX"].MaxAttempts != 6 || p.Codes["GW_4XX"].Retryable != &yes {
		t.Errorf("%+v", p)
	}
	p = parsed(t, whole).Over(Own{Engine: own}, "other", "")
	if p.MaxAttempts != 5 || *p.Codes["GW_4XX"].Retryable || p.Codes["GW_4XX"].MaxAttempts != 5 {
		t.Errorf("settings of the file take precedence: %+v", p)
	}
	if own.Codes["GW_4XX"].MaxAttempts != 6 {
		t.Error("the application's own policy was changed")
	}
	for _, silent := range []*Set{nil, {}, parsed(t, "{}")} {
		if p := silent.Over(Own{Engine: own}, "k", "o"); p.MaxAttempts != 9 || len(p.Codes) != 1 {
			t.Errorf("an empty set: %+v", p)
		}
		_, limited := silent.EnqueueRate("o")
		_, on := silent.Budget("d")
		if p := silent.For("k", "o"); p.MaxAttempts != 0 || p.Codes != nil || limited || !on || len(silent.Holds())+len(silent.Windows()) > 0 || silent.Share("o") != 1 {
			t.Errorf("an empty set: %+v", p)
		}
	}
}
