package failure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// lease is the lease of a job with so many failures and crashes.
func lease(failures, crashes int) store.Lease {
	return store.Lease{Job: holdfast.Job{
		ID: holdfast.ID{1}, Kind: "welcome", State: holdfast.Processing, Token: failures + crashes + 1, Generation: 1,
		Failures: failures, Crashes: crashes,
	}, Batch: holdfast.ID{2}}
}

var errPlain = errors.New("boom")

// verdicts are the law: an event, what the job had behind it, and what becomes of it under the default policy.
var verdicts = []struct {
	name              string
	failures, crashes int
	outcome           Outcome
	to                holdfast.State
	charge            store.Charge
	delay             time.Duration
	limit             int
	code              string
	alarm             bool
}{
	{"complete", 0, 0, Outcome{}, holdfast.Complete, store.ChargeNone, 0, 0, "", false},
	{"complete after failures", 2, 2, Outcome{}, holdfast.Complete, store.ChargeNone, 0, 0, "", false},
	{"complete with a result", 0, 0, Outcome{Result: json.RawMessage(`{"a":1}`)}, holdfast.Complete, store.ChargeNone, 0, 0, "", false},
	{"a result that is not JSON", 0, 0, Outcome{Result: json.RawMessage(`{`)}, holdfast.Failed, store.ChargeFailure, 0, 3, "HANDLER_RESULT", true},
	{"a result that is too large", 0, 0, Outcome{Result: make([]byte, check.MaxArgs+1)}, holdfast.Failed, store.ChargeFailure, 0, 3, "HANDLER_RESULT", true},
	{"first failure", 0, 0, Outcome{Err: errPlain}, holdfast.Queued, store.ChargeFailure, 5 * time.Second, 3, "UNKNOWN", false},
	{"first failure, high roll", 0, 0, Outcome{Err: errPlain, Roll: 0.5}, holdfast.Queued, store.ChargeFailure, 7500 * time.Millisecond, 3, "UNKNOWN", false},
	{"last but one", 1, 0, Outcome{Err: errPlain}, holdfast.Queued, store.ChargeFailure, 10 * time.Second, 3, "UNKNOWN", false},
	{"last failure", 2, 0, Outcome{Err: errPlain}, holdfast.Failed, store.ChargeFailure, 0, 3, "UNKNOWN", true},
	{"beyond a limit that shrank", 9, 0, Outcome{Err: errPlain}, holdfast.Failed, store.ChargeFailure, 0, 10, "UNKNOWN", true},
	{"crashes do not count as failures", 0, 2, Outcome{Err: errPlain}, holdfast.Queued, store.ChargeFailure, 5 * time.Second, 3, "UNKNOWN", false},
	{"a final code", 0, 0, Outcome{Err: &HTTPError{Status: 400}}, holdfast.Failed, store.ChargeFailure, 0, 3, "BAD_REQUEST", true},
	{"a snooze", 2, 2, Outcome{Err: fmt.Errorf("x: %w", Snooze(time.Minute))}, holdfast.Queued, store.ChargeRelease, time.Minute, 0, "", false},
	{"a snooze of nothing", 0, 0, Outcome{Err: Snooze(-time.Second)}, holdfast.Queued, store.ChargeRelease, 0, 0, "", false},
	{"a panic", 0, 0, Outcome{Event: Panicked, Err: errPlain, Stack: "stack"}, holdfast.Failed, store.ChargeFailure, 0, 3, "SYSTEM_PANIC", true},
	{"a panic with nothing", 0, 0, Outcome{Event: Panicked}, holdfast.Failed, store.ChargeFailure, 0, 3, "SYSTEM_PANIC", true},
	{"goexit", 0, 0, Outcome{Event: Exited}, holdfast.Failed, store.ChargeFailure, 0, 3, "HANDLER_EXITED", true},
	{"time out, ignored", 0, 0, Outcome{Event: TimedOut}, holdfast.Queued, store.ChargeFailure, 5 * time.Second, 3, "TIMEOUT", false},
	{"time out, obeyed", 1, 0, Outcome{Event: TimedOut, Err: context.DeadlineExceeded}, holdfast.Queued, store.ChargeFailure, 10 * time.Second, 3, "TIMEOUT", false},
	{"time out, with another error", 0, 0, Outcome{Event: TimedOut, Err: errPlain}, holdfast.Queued, store.ChargeFailure, 5 * time.Second, 3, "TIMEOUT", false},
	{"time out, last", 2, 0, Outcome{Event: TimedOut}, holdfast.Failed, store.ChargeFailure, 0, 3, "TIMEOUT", true},
	{"first crash", 2, 0, Outcome{Event: Lost}, holdfast.Queued, store.ChargeCrash, 0, 3, "LOST_WORKER", false},
	{"last crash but one", 0, 1, Outcome{Event: Lost}, holdfast.Queued, store.ChargeCrash, time.Second, 3, "LOST_WORKER", false},
	{"poison", 0, 2, Outcome{Event: Lost}, holdfast.Failed, store.ChargeCrash, 0, 3, "POISON", true},
	{"poison, limit shrank", 0, 7, Outcome{Event: Lost}, holdfast.Failed, store.ChargeCrash, 0, 8, "POISON", true},
	{"shutdown", 2, 2, Outcome{Event: Interrupted, Err: context.Canceled}, holdfast.Queued, store.ChargeRelease, 0, 0, "", false},
	{"expired", 2, 2, Outcome{Event: Expired}, holdfast.Failed, store.ChargeNone, 0, 0, "JOB_EXPIRED", true},
	{"cancelled", 2, 2, Outcome{Event: CancelledByRequest, Err: context.Canceled}, holdfast.Cancelled, store.ChargeNone, 0, 0, "", false},
	{"unreadable", 0, 0, Outcome{Event: Unreadable, Err: errPlain}, holdfast.Failed, store.ChargeFailure, 0, 3, "UNREADABLE_JOB", true},
	{"unreadable, corrupt row", 5, 0, Outcome{Event: Unreadable}, holdfast.Failed, store.ChargeFailure, 0, 6, "UNREADABLE_JOB", true},
	{"unhandled", 0, 0, Outcome{Event: Unhandled}, holdfast.Queued, store.ChargeRelease, 5 * time.Second, 0, "UNKNOWN_KIND", false},
	{"unsettleable", 0, 0, Outcome{Event: Unsettleable, Err: errors.New("a charge of \"favour\"")}, holdfast.Failed, store.ChargeNone, 0, 0, "SYSTEM_ERROR", true},
	{"unsettleable, whatever it did before", 2, 1, Outcome{Event: Unsettleable}, holdfast.Failed, store.ChargeNone, 0, 0, "SYSTEM_ERROR", true},
	{"uncommitted", 0, 0, Outcome{Event: Uncommitted}, holdfast.Queued, store.ChargeFailure, 5 * time.Second, 3, "HANDLER_UNCOMMITTED", false},
	{"uncommitted, last", 2, 0, Outcome{Event: Uncommitted, Err: errPlain}, holdfast.Failed, store.ChargeFailure, 0, 3, "HANDLER_UNCOMMITTED", true},
	{"unhandled, on what would be its last attempt", 2, 0, Outcome{Event: Unhandled}, holdfast.Queued, store.ChargeRelease, 5 * time.Second, 0, "UNKNOWN_KIND", false},
	{"failed fast", 1, 1, Outcome{Event: FastFailed, Err: errPlain}, holdfast.Failed, store.ChargeNone, 0, 0, "DEPENDENCY_DOWN", true},
	{"failed fast with the breaker's code", 0, 0, Outcome{Event: FastFailed, Code: "GW_5XX"}, holdfast.Failed, store.ChargeNone, 0, 0, "GW_5XX", true},
	{"failed fast, whatever the error is marked with", 0, 0, Outcome{Event: FastFailed, Err: Snooze(time.Hour)}, holdfast.Failed, store.ChargeNone, 0, 0, "DEPENDENCY_DOWN", true},
	{"held", 2, 2, Outcome{Event: Held, Err: errPlain}, holdfast.Queued, store.ChargeRelease, 0, 0, "", false},
	{"held without a reason", 0, 0, Outcome{Event: Held}, holdfast.Queued, store.ChargeRelease, 0, 0, "", false},
	{"a hold on its dependency", 0, 0, Outcome{Err: HoldDependency(errPlain, time.Minute)}, holdfast.Queued, store.ChargeFailure, time.Minute, 3, "UNKNOWN", false},
	{"an unknown event", 0, 0, Outcome{Event: 200}, holdfast.Failed, store.ChargeFailure, 0, 3, "SYSTEM_ERROR", true},
}

func TestEveryEventHasItsVerdict(t *testing.T) {
	for _, c := range verdicts {
		t.Run(c.name, func(t *testing.T) {
			job := lease(c.failures, c.crashes)
			v := Decide(Rules{}, job, c.outcome)
			code := ""
			if v.Failure != nil {
				code = v.Failure.Code
			}
			got := []any{v.To, v.Charge, v.Delay, v.Limit, code, v.Alarm}
			if diff := cmp.Diff([]any{c.to, c.charge, c.delay, c.limit, c.code, c.alarm}, got); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if settlement := v.Settlement(job, c.outcome); settlement.Check() != nil {
				t.Errorf("the store would refuse it: %v", settlement.Check())
			}
			if v.Why == "" && v.To != holdfast.Complete {
				t.Error("it does not say why")
			}
		})
	}
}

func TestAVerdictSaysWhyInASentence(t *testing.T) {
	gateway := Rules{Classify: ByHTTPStatusTable(map[int]string{4: "GW_4XX", 5: "GW_5XX"}), Policy: Policy{Backoff: Exponential{}}}
	hour := Rules{Policy: Policy{GiveUpAfter: time.Hour, MaxAttempts: 100, Backoff: Fixed(10 * time.Minute)}}
	bad := &HTTPError{Status: 502}
	cases := []struct {
		rules    Rules
		failures int
		outcome  Outcome
		want     string
	}{
		{gateway, 1, Outcome{Err: bad}, "classified GW_5XX by HTTP status 502; attempt 3 of 3 in 10s by exponential backoff"},
		{gateway, 2, Outcome{Err: bad}, "classified GW_5XX by HTTP status 502; gave up: 3 of 3 attempts used"},
		{gateway, 0, Outcome{Err: &HTTPError{Status: 406}}, "classified GW_4XX by HTTP status 406; never retried: the code GW_4XX is final"},
		{gateway, 0, Outcome{Err: NeverRetry(bad)}, "classified GW_5XX by HTTP status 502; never retried: the handler said so"},
		{gateway, 0, Outcome{Err: &HTTPError{Status: 503, RetryAfter: 120 * time.Second}}, "classified GW_5XX by HTTP status 503; attempt 2 of 3 in 2m0s by the other side's Retry-After"},
		{gateway, 0, Outcome{Err: RetryAfter(bad, 5*time.Hour)}, "classified GW_5XX by HTTP status 502; attempt 2 of 3 in 1h0m0s by the handler's RetryAfter, capped"},
		{hour, 3, Outcome{Err: errPlain, Age: time.Hour}, "classified UNKNOWN by the default, because no rule matches; gave up: the job is older than 1h0m0s"},
		{hour, 3, Outcome{Err: errPlain, Age: 55 * time.Minute}, "classified UNKNOWN by the default, because no rule matches; gave up: a retry in 10m0s would start after the limit of 1h0m0s"},
		{Rules{}, 0, Outcome{Err: WithCode(errPlain, "MINE_ALONE")}, "classified MINE_ALONE by the handler (not in the taxonomy: treated as UNKNOWN); attempt 2 of 3 in 5s by exponential backoff"},
		{Rules{}, 0, Outcome{Err: WithCode(errPlain, "no code\n")}, `classified UNKNOWN by the handler ("no code\n" is not a valid code); attempt 2 of 3 in 5s by exponential backoff`},
		{Rules{}, 0, Outcome{Err: Snooze(90 * time.Second)}, "released at no cost: the handler snoozed it for 1m30s"},
		{Rules{}, 0, Outcome{Event: Held, Err: errors.New("breaker open: 14 of the last 20 calls failed, password=x")}, "released at no cost: breaker open: 14 of the last 20 calls failed, password=***"},
		{Rules{}, 0, Outcome{Event: FastFailed, Code: "GW_5XX"}, "classified GW_5XX by the open breaker of its dependency; not started: the breaker is set to fail jobs at once"},
		{gateway, 0, Outcome{Err: HoldDependency(bad, time.Minute)}, "classified GW_5XX by HTTP status 502; attempt 2 of 3 in 1m0s by the handler's hold on its dependency"},
		{Rules{}, 0, Outcome{Event: Lost}, "its worker was lost, crash 1 of 3; next attempt in 0s by table of delays"},
	}
	for _, c := range cases {
		if got := Decide(c.rules, lease(c.failures, 0), c.outcome).Why; got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestTheJobsOwnLimitWinsOverTheCodesAndThatOverThePolicys(t *testing.T) {
	rules := Rules{Policy: Policy{MaxAttempts: 7, Codes: map[string]Override{"IO_ERROR": {MaxAttempts: 2}}}}
	cases := []struct {
		own  int
		err  error
		want int
	}{
		{0, errPlain, 7}, {0, WithCode(errPlain, "IO_ERROR"), 2}, {5, WithCode(errPlain, "IO_ERROR"), 5}, {5, errPlain, 5},
		{math.MaxInt, errPlain, math.MaxInt32}, {-1, errPlain, 7},
	}
	for _, c := range cases {
		job := lease(0, 0)
		job.MaxAttempts = c.own
		if got := Decide(rules, job, Outcome{Err: c.err}); got.Limit != c.want || got.To != holdfast.Queued {
			t.Errorf("own %d, %v: limit %d, to %s", c.own, c.err, got.Limit, got.To)
		}
	}
}

func TestAPolicyCanOverrideEverythingForOneCode(t *testing.T) {
	yes, no := true, false
	rules := Rules{Policy: Policy{Codes: map[string]Override{
		"SYSTEM_PANIC": {Retryable: &yes, Backoff: Fixed(time.Minute)},
		"UNKNOWN":      {Retryable: &no},
		"GW_5XX":       {GiveUpAfter: time.Minute},
	}}}
	if v := Decide(rules, lease(0, 0), Outcome{Event: Panicked}); v.To != holdfast.Queued || v.Delay != time.Minute {
		t.Errorf("panic: %+v", v)
	}
	if v := Decide(rules, lease(0, 0), Outcome{Err: errPlain}); v.To != holdfast.Failed {
		t.Errorf("unknown: %+v", v)
	}
	if v := Decide(rules, lease(0, 0), Outcome{Err: WithCode(errPlain, "GW_5XX"), Age: time.Minute}); v.To != holdfast.Failed {
		t.Errorf("gw: %+v", v)
	}
}

func TestRetryAfterRaisesTheDelayUpToItsCapAndNeverLowersIt(t *testing.T) {
	rules := Rules{Policy: Policy{Backoff: Fixed(time.Minute), RetryAfterCap: 10 * time.Minute}}
	for asked, want := range map[time.Duration]time.Duration{
		time.Second: time.Minute, 2 * time.Minute: 2 * time.Minute, 10 * time.Minute: 10 * time.Minute, time.Hour: 10 * time.Minute, math.MaxInt64: 10 * time.Minute,
	} {
		if got := Decide(rules, lease(0, 0), Outcome{Err: RetryAfter(errPlain, asked)}); got.Delay != want || got.Charge != store.ChargeFailure {
			t.Errorf("asked %v: %v, want %v", asked, got.Delay, want)
		}
	}
	both := RetryAfter(&HTTPError{Status: 429, RetryAfter: 300 * time.Second}, 2*time.Minute)
	if got := Decide(rules, lease(0, 0), Outcome{Err: both}).Delay; got != 2*time.Minute {
		t.Errorf("the handler's RetryAfter lost against the header: %v", got)
	}
}

func TestABenignFailureIsRecordedAndRaisesNoAlarm(t *testing.T) {
	v := Decide(Rules{}, lease(2, 0), Outcome{Err: Benign(errPlain)})
	if v.To != holdfast.Failed || v.Alarm || !v.Failure.Benign {
		t.Errorf("%+v", v)
	}
}

func TestATimeOutMayBeGivenAnotherTimeoutCodeButNoOther(t *testing.T) {
	out := Outcome{Event: TimedOut, Err: context.DeadlineExceeded}
	for code, want := range map[string]string{"GW_TIMEOUT": "GW_TIMEOUT", "HANDLER_ERROR": "TIMEOUT"} {
		if got := Decide(Rules{Classify: Always(code)}, lease(0, 0), out).Failure.Code; got != want {
			t.Errorf("%s: %s", code, got)
		}
	}
	if got := Decide(Rules{}, lease(0, 0), Outcome{Event: TimedOut, Err: WithCode(errPlain, "IO_ERROR")}).Failure.Code; got != "IO_ERROR" {
		t.Errorf("the handler's code: %s", got)
	}
}

// anyError draws an error with anything in it that a handler could put there.
func anyError(t *rapid.T) error {
	err := rapid.SampledFrom([]error{nil, errPlain, context.DeadlineExceeded, (*declined)(nil), selfish{}, errors.New("\x00\xff")}).Draw(t, "err")
	d := time.Duration(rapid.Int64().Draw(t, "d"))
	for range rapid.IntRange(0, 4).Draw(t, "marks") {
		switch rapid.IntRange(0, 9).Draw(t, "mark") {
		case 0:
			err = NeverRetry(err)
		case 1:
			err = RetryAfter(err, d)
		case 2:
			err = Snooze(d)
		case 3:
			err = Benign(err)
		case 4:
			err = WithCode(err, rapid.String().Draw(t, "code"))
		case 5:
			err = On(With(err, rapid.String().Draw(t, "key"), rapid.String().Draw(t, "value")), rapid.String().Draw(t, "dependency"))
		case 6:
			err = NewHTTPError(rapid.Int().Draw(t, "status"), http.Header{"Retry-After": {rapid.String().Draw(t, "after")}}, err)
		case 7:
			err = &ExitError{Code: rapid.Int().Draw(t, "exit"), Err: err}
		case 8:
			err = errors.Join(err, fmt.Errorf("and: %w", err))
		case 9:
			err = HoldDependency(err, d)
		}
	}
	return err
}

func TestEveryVerdictPassesTheStoresCheckAndItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := func(label string) time.Duration { return time.Duration(rapid.Int64().Draw(t, label)) }
		job := lease(rapid.OneOf(rapid.IntRange(0, 5), rapid.Int()).Draw(t, "failures"), rapid.OneOf(rapid.IntRange(0, 5), rapid.Int()).Draw(t, "crashes"))
		job.MaxAttempts = rapid.OneOf(rapid.IntRange(0, 5), rapid.Int()).Draw(t, "max attempts")
		job.RetryWithin, job.Dependency = span("within"), rapid.SampledFrom([]string{"", "gw"}).Draw(t, "own dependency")
		rules := Rules{SuccessRates: anySuccessRates(t), Policy: Policy{
			RetryWithin: span("retry within"), Learned: rapid.Bool().Draw(t, "learned"), MinSuccessRate: rapid.Float64().Draw(t, "min_success_rate"),
			MaxAttempts: rapid.IntRange(-1, 5).Draw(t, "attempts"), MaxCrashes: rapid.IntRange(-1, 5).Draw(t, "max crashes"),
			GiveUpAfter: span("give up"), RetryAfterCap: span("retry after cap"), Backoff: Fixed(span("backoff")), CrashBackoff: Fixed(span("crash")),
		}}
		o := Outcome{
			Event: Event(rapid.Uint8Range(0, 14).Draw(t, "event")), Code: rapid.String().Draw(t, "own code"), Err: anyError(t), Stack: rapid.String().Draw(t, "stack"),
			Result: rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "result"), Took: span("took"), Age: span("age"), Roll: rapid.Float64().Draw(t, "roll"),
		}
		v := Decide(rules, job, o)
		settlement := v.Settlement(job, o)
		if err := settlement.Check(); err != nil || settlement.Queue != job.Queue {
			t.Fatalf("%v of queue %q\n%+v", err, settlement.Queue, v)
		}
		count := map[store.Charge]int{store.ChargeFailure: increment(job.Failures), store.ChargeCrash: increment(job.Crashes)}[v.Charge]
		if v.To == holdfast.Queued && count > 0 && count >= v.Limit || count > v.Limit || v.Limit > math.MaxInt32 {
			t.Fatalf("to %s with %d of %d", v.To, count, v.Limit)
		}
		if v.Alarm != (v.To == holdfast.Failed && !v.Failure.Benign) {
			t.Fatalf("alarm %v: %+v", v.Alarm, v)
		}
		if v.Hold != clampDelay(v.Hold) || v.Hold > 0 && v.Dependency == "" || v.Call == BadCall && v.To == holdfast.Complete {
			t.Fatalf("of its dependency: %+v", v)
		}
		if strings.ContainsAny(v.Why, "\n\x00") || len(v.Why) > maxWhy {
			t.Fatalf("why: %q", v.Why)
		}
		if diff := cmp.Diff(v, Decide(rules, job, o)); diff != "" {
			t.Fatalf("the same outcome got another verdict: %s", diff)
		}
	})
}
