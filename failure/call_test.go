package failure

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var errGateway = &HTTPError{Status: 502}

func TestOnlyAttemptsThatShowSomethingAboutTheDependencyAreCalls(t *testing.T) {
	cases := []struct {
		name    string
		outcome Outcome
		want    Call
	}{
		{"complete", Outcome{}, GoodCall},
		{"the dependency's fault", Outcome{Err: errGateway}, BadCall},
		{"the dependency's fault for good", Outcome{Err: NeverRetry(errGateway)}, BadCall},
		{"throttled", Outcome{Err: &HTTPError{Status: 429, RetryAfter: 5 * time.Second}}, BadCall},
		{"unreachable", Outcome{Err: WithCode(errPlain, "NETWORK_ERROR")}, BadCall},
		{"timed out", Outcome{Event: TimedOut, Err: context.DeadlineExceeded}, BadCall},
		{"timed out without returning", Outcome{Event: TimedOut}, BadCall},
		{"timed out, but the handler gave a code", Outcome{Event: TimedOut, Err: WithCode(errPlain, "TOO_LARGE")}, NoCall},
		{"a panic with the dependency's error", Outcome{Event: Panicked, Err: WithCode(errPlain, "GW_5XX")}, BadCall},
		{"a user's fault", Outcome{Err: WithCode(errPlain, "TOO_LARGE")}, NoCall},
		{"our fault", Outcome{Err: WithCode(errPlain, "IO_ERROR")}, NoCall},
		{"an unknown error", Outcome{Err: errPlain}, NoCall},
		{"an unknown code", Outcome{Err: WithCode(errPlain, "MINE_ALONE")}, NoCall},
		{"a user's fault that names the dependency", Outcome{Err: On(WithCode(errPlain, "GW_4XX"), "gateway")}, NoCall},
		{"a result that cannot be kept", Outcome{Result: []byte("{")}, NoCall},
		{"a snooze", Outcome{Err: Snooze(time.Second)}, NoCall},
		{"a snooze over the dependency's error", Outcome{Err: fmt.Errorf("%w: %w", Snooze(time.Second), errGateway)}, NoCall},
		{"a panic", Outcome{Event: Panicked, Err: errPlain}, NoCall},
		{"goexit", Outcome{Event: Exited}, NoCall},
		{"a lost worker", Outcome{Event: Lost}, NoCall},
		{"a lost lease", Outcome{Event: Interrupted, Err: holdfast.ErrLeaseLost}, NoCall},
		{"a shutdown", Outcome{Event: Interrupted, Err: errGateway}, NoCall},
		{"an expiry", Outcome{Event: Expired}, NoCall},
		{"a cancel", Outcome{Event: CancelledByRequest, Err: errGateway}, NoCall},
		{"unreadable", Outcome{Event: Unreadable, Err: errGateway}, NoCall},
		{"unhandled", Outcome{Event: Unhandled}, NoCall},
		{"unsettleable", Outcome{Event: Unsettleable}, NoCall},
		{"uncommitted", Outcome{Event: Uncommitted, Err: errGateway}, NoCall},
		{"failed fast", Outcome{Event: FastFailed, Code: "GW_5XX"}, NoCall},
		{"held", Outcome{Event: Held}, NoCall},
	}
	for _, c := range cases {
		v := Decide(Rules{Dependency: "gateway"}, lease(0, 0), c.outcome)
		if v.Call != c.want || c.want != NoCall && v.Dependency != "gateway" {
			t.Errorf("%s: call %d on %q, want %d", c.name, v.Call, v.Dependency, c.want)
		}
	}
	if v := Decide(Rules{}, lease(0, 0), Outcome{Event: TimedOut}); v.Call != NoCall {
		t.Error("time ran out on a dependency that is not there")
	}
}

func TestTheDependencyComesFromTheHandlerThenTheRuleThenTheJobThenTheKind(t *testing.T) {
	rule := func(error) (Class, bool) { return Class{Code: "GW_5XX", Rule: "x", Dependency: "by rule"}, true }
	cases := []struct {
		rules Rules
		own   string
		err   error
		want  string
	}{
		{Rules{Dependency: "by kind", Classify: rule}, "by job", On(errGateway, "by handler"), "by handler"},
		{Rules{Dependency: "by kind", Classify: rule}, "by job", errGateway, "by rule"},
		{Rules{Dependency: "by kind"}, "by job", errGateway, "by job"},
		{Rules{Dependency: "by kind"}, "", errGateway, "by kind"},
		{Rules{}, "", errGateway, ""},
	}
	for _, c := range cases {
		job := lease(0, 0)
		job.Dependency = c.own
		v := Decide(c.rules, job, Outcome{Err: c.err})
		if v.Dependency != c.want || v.Failure.Dependency != c.want || v.Call != BadCall {
			t.Errorf("verdict %q, record %q, want %q", v.Dependency, v.Failure.Dependency, c.want)
		}
	}
	job := lease(0, 0)
	job.Dependency = "by job"
	if v := Decide(Rules{Dependency: "by kind"}, job, Outcome{}); v.Dependency != "by job" {
		t.Errorf("complete: %q", v.Dependency)
	}
	if v := Decide(Rules{Dependency: "by kind"}, job, Outcome{Event: FastFailed, Code: "NOT_READY"}); v.Failure.Dependency != "by job" {
		t.Errorf("failed fast: %q", v.Failure.Dependency)
	}
}

func TestAHandlerCanHoldAWholeDependency(t *testing.T) {
	rules := Rules{Dependency: "gateway", Policy: Policy{RetryAfterCap: 10 * time.Minute}}
	cases := []struct {
		name       string
		rules      Rules
		err        error
		hold       time.Duration
		dependency string
	}{
		{"its own", rules, HoldDependency(errPlain, time.Minute), time.Minute, "gateway"},
		{"through wrapping", rules, fmt.Errorf("x: %w", errors.Join(errPlain, HoldDependency(errPlain, time.Minute))), time.Minute, "gateway"},
		{"another", rules, On(HoldDependency(errPlain, time.Minute), "smtp"), time.Minute, "smtp"},
		{"capped", rules, HoldDependency(errPlain, time.Hour), 10 * time.Minute, "gateway"},
		{"the outermost wins", rules, HoldDependency(HoldDependency(errPlain, time.Minute), time.Second), time.Second, "gateway"},
		{"without a failure", rules, HoldDependency(Snooze(time.Second), time.Minute), time.Minute, "gateway"},
		{"for good", rules, NeverRetry(HoldDependency(errPlain, time.Minute)), time.Minute, "gateway"},
		{"for no time", rules, HoldDependency(errPlain, -1), 0, "gateway"},
		{"none to hold", Rules{}, HoldDependency(errPlain, time.Minute), 0, ""},
		{"no hold", rules, errPlain, 0, ""},
	}
	for _, c := range cases {
		if v := Decide(c.rules, lease(0, 0), Outcome{Err: c.err}); v.Hold != c.hold || v.Dependency != c.dependency {
			t.Errorf("%s: %v on %q", c.name, v.Hold, v.Dependency)
		}
	}
	if HoldDependency(nil, time.Minute) != nil {
		t.Error("there is nothing to say about no error")
	}
	if v := Decide(rules, lease(0, 0), Outcome{Err: RetryAfter(HoldDependency(errPlain, time.Minute), 2*time.Minute)}); v.Delay != 2*time.Minute || v.Hold != time.Minute {
		t.Errorf("both: %v, %v", v.Delay, v.Hold)
	}
}

func TestRetryWithinShortensTheBackoff(t *testing.T) {
	rules := Rules{Policy: Policy{RetryWithin: 10 * time.Minute, Backoff: Fixed(time.Hour), CrashBackoff: Fixed(time.Hour)}}
	own := lease(0, 0)
	own.RetryWithin = time.Minute
	failed := lease(1, 0)
	cases := []struct {
		name          string
		job           store.Lease
		outcome       Outcome
		delay, within time.Duration
	}{
		{"the policy's", lease(0, 0), Outcome{Err: errPlain}, 9 * time.Minute, 10 * time.Minute},
		{"spread", lease(0, 0), Outcome{Err: errPlain, Roll: 0.5}, 8*time.Minute + 6*time.Second, 10 * time.Minute},
		{"the job's own", own, Outcome{Err: errPlain}, 54 * time.Second, time.Minute},
		{"a lost worker", lease(0, 0), Outcome{Event: Lost}, 9 * time.Minute, 10 * time.Minute},
		{"the handler asked for a longer wait", lease(0, 0), Outcome{Err: RetryAfter(errPlain, 30*time.Minute)}, 30 * time.Minute, 10 * time.Minute},
		{"a snooze promises nothing", failed, Outcome{Err: Snooze(time.Hour)}, time.Hour, 0},
		{"nothing has failed", lease(0, 0), Outcome{Event: Held}, 0, 0},
		{"held after a failure", failed, Outcome{Event: Held}, 0, 10 * time.Minute},
		{"interrupted after a failure", failed, Outcome{Event: Interrupted}, 0, 10 * time.Minute},
		{"the end", lease(2, 0), Outcome{Err: errPlain}, 0, 0},
		{"complete", failed, Outcome{}, 0, 0},
	}
	for _, c := range cases {
		v := Decide(rules, c.job, c.outcome)
		if s := v.Settlement(c.job, c.outcome); v.Delay.Round(time.Millisecond) != c.delay || v.StartWithin != c.within || s.StartWithin != c.within || s.Check() != nil {
			t.Errorf("%s: in %v, within %v, %v", c.name, v.Delay, s.StartWithin, s.Check())
		}
	}
	want := "classified UNKNOWN by the default, because no rule matches; attempt 2 of 3 in 9m0s by the limit retry_within of 10m0s"
	if got := Decide(rules, lease(0, 0), Outcome{Err: errPlain}).Why; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	short := Rules{Policy: Policy{RetryWithin: time.Hour}}
	if v := Decide(short, lease(0, 0), Outcome{Err: errPlain}); v.Delay != 5*time.Second {
		t.Errorf("a backoff that keeps the promise was changed to %v", v.Delay)
	}
}

func TestAFailedProbeIsRecordedAndNotCharged(t *testing.T) {
	down := WithCode(errors.New("502"), "GW_5XX")
	rules := Rules{Dependency: "gateway", Policy: Policy{MaxAttempts: 2, GiveUpAfter: time.Hour, Backoff: Fixed(time.Second)}}
	last := store.Lease{Job: holdfast.Job{Kind: "k", Failures: 1}}
	for name, c := range map[string]struct {
		o      Outcome
		to     holdfast.State
		charge store.Charge
	}{
		"a probe":                     {Outcome{Err: down, Probe: true, Wait: time.Minute}, holdfast.Queued, store.ChargeRelease},
		"a call of a closed one":      {Outcome{Err: down}, holdfast.Failed, store.ChargeFailure},
		"another one is to blame":     {Outcome{Err: On(down, "printer"), Probe: true}, holdfast.Failed, store.ChargeFailure},
		"the user is to blame":        {Outcome{Err: WithCode(errors.New("no"), "UNKNOWN"), Probe: true}, holdfast.Failed, store.ChargeFailure},
		"the handler forbids a retry": {Outcome{Err: NeverRetry(down), Probe: true}, holdfast.Failed, store.ChargeFailure},
		"older than its time limit":   {Outcome{Err: down, Probe: true, Age: 2 * time.Hour}, holdfast.Failed, store.ChargeFailure},
		"probed after its time":       {Outcome{Err: down, Probe: true, Wait: 2 * time.Hour}, holdfast.Failed, store.ChargeFailure},
	} {
		v := Decide(rules, last, c.o)
		if v.To != c.to || v.Charge != c.charge || v.Failure == nil || v.Failure.Code == "" {
			t.Errorf("%s: %s, charged %s, %+v: %s", name, v.To, v.Charge, v.Failure, v.Why)
		}
		if name == "a probe" && (v.Call != BadCall || v.Delay != time.Minute) {
			t.Errorf("a failed probe is call %v and waits %v", v.Call, v.Delay)
		}
	}
}
