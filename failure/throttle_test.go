package failure

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var errQuota = errors.New("quota of 100 calls a minute used up")

func TestAThrottleWaitsKeepsItsRecordAndSpendsNothing(t *testing.T) {
	free := Rules{Policy: Policy{Throttle: ThrottleFree, Backoff: Fixed(20 * time.Second)}}
	for name, c := range map[string]struct {
		rules Rules
		err   error
		delay time.Duration
		code  string
		why   string
	}{
		"the handler's mark":           {Rules{}, Throttled(WithCode(errQuota, "RATE_LIMITED"), 90*time.Second), 90 * time.Second, "RATE_LIMITED", "classified RATE_LIMITED by the handler; throttled: waits 1m30s by the handler's Throttled; no attempt spent"},
		"a mark on another code":       {Rules{}, fmt.Errorf("x: %w", Throttled(errQuota, time.Minute)), time.Minute, "UNKNOWN", ""},
		"a mark on a final code":       {Rules{}, Throttled(&HTTPError{Status: 403, Err: errQuota}, time.Minute), time.Minute, "AUTH_DENIED", ""},
		"a mark without a wait":        {Rules{Policy: Policy{Backoff: Fixed(20 * time.Second)}}, Throttled(errQuota, 0), 20 * time.Second, "UNKNOWN", ""},
		"a mark, the header's wait":    {Rules{}, Throttled(&HTTPError{Status: 429, RetryAfter: 30 * time.Second, Err: errQuota}, 0), 30 * time.Second, "RATE_LIMITED", ""},
		"a mark with an absurd wait":   {Rules{}, Throttled(errQuota, 1e6*time.Hour), time.Hour, "UNKNOWN", "by the handler's Throttled, capped"},
		"429 with Retry-After":         {free, &HTTPError{Status: 429, RetryAfter: 90 * time.Second, Err: errQuota}, 90 * time.Second, "RATE_LIMITED", "classified RATE_LIMITED by HTTP status 429; throttled: waits 1m30s by the other side's Retry-After; no attempt spent"},
		"503 with Retry-After":         {free, &HTTPError{Status: 503, RetryAfter: 5 * time.Second}, 5 * time.Second, "DEPENDENCY_DOWN", ""},
		"429 and the handler's wait":   {free, RetryAfter(&HTTPError{Status: 429}, time.Minute), time.Minute, "RATE_LIMITED", "by the handler's RetryAfter"},
		"a code of its category":       {free, RetryAfter(errors.New("too many requests"), time.Minute), time.Minute, "RATE_LIMITED", ""},
		"an absurd Retry-After":        {free, NewHTTPError(429, http.Header{"Retry-After": {"99999999999"}}, nil), time.Hour, "RATE_LIMITED", "by the other side's Retry-After, capped"},
		"set for the code":             {Rules{Policy: Policy{Codes: map[string]Override{"RATE_LIMITED": {Throttle: ThrottleFree}}}}, &HTTPError{Status: 429, RetryAfter: 7 * time.Second}, 7 * time.Second, "RATE_LIMITED", ""},
		"a wait too short to be meant": {Rules{}, Throttled(errQuota, time.Nanosecond), time.Second, "UNKNOWN", ""},
	} {
		job := lease(2, 2)
		v := Decide(c.rules, job, Outcome{Err: c.err, Took: time.Second, Age: time.Hour})
		if v.To != holdfast.Queued || v.Charge != store.ChargeRelease || !v.Throttled || v.Delay != c.delay || v.Alarm {
			t.Errorf("%s: got %+v, want it queued for free in %v", name, v, c.delay)
			continue
		}
		if f := v.Failure; f == nil || f.Code != c.code || f.Fingerprint != "" || !IsThrottled(f) || f.Context["throttled"] != span(c.delay) {
			t.Errorf("%s: got record %+v, want one with code %s that is in no error group", name, f, c.code)
		}
		if !strings.Contains(v.Why, c.why) || !strings.HasSuffix(v.Why, "; no attempt spent") {
			t.Errorf("%s: why: %s", name, v.Why)
		}
		s := v.Settlement(job, Outcome{})
		if err := s.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailuresThatAreNoThrottleCostAnAttempt(t *testing.T) {
	no := false
	free := Rules{Policy: Policy{Throttle: ThrottleFree}}
	for name, c := range map[string]struct {
		rules Rules
		err   error
	}{
		"429 where free is not set":             {Rules{}, &HTTPError{Status: 429, RetryAfter: 90 * time.Second}},
		"429 without Retry-After":               {free, &HTTPError{Status: 429}},
		"500 with Retry-After":                  {free, &HTTPError{Status: 500, RetryAfter: 90 * time.Second}},
		"the policy has the last word":          {Rules{Policy: Policy{Throttle: ThrottleAttempt}}, Throttled(errQuota, time.Minute)},
		"on a code too":                         {Rules{Policy: Policy{Throttle: ThrottleFree, Codes: map[string]Override{"RATE_LIMITED": {Throttle: ThrottleAttempt}}}}, &HTTPError{Status: 429, RetryAfter: 90 * time.Second}},
		"never":                                 {Rules{}, NeverRetry(Throttled(errQuota, time.Minute))},
		"a code that the policy made final":     {Rules{Policy: Policy{Codes: map[string]Override{"UNKNOWN": {Retryable: &no}}}}, Throttled(errQuota, time.Minute)},
		"a final code, free by the policy only": {free, RetryAfter(&HTTPError{Status: 400}, time.Minute)},
	} {
		v := Decide(c.rules, lease(0, 0), Outcome{Err: c.err})
		if v.Charge != store.ChargeFailure || v.Throttled || IsThrottled(v.Failure) {
			t.Errorf("%s: got %+v, want an attempt spent", name, v)
		}
	}
	panicked := Decide(Rules{}, lease(0, 0), Outcome{Event: Panicked, Err: Throttled(errQuota, time.Minute)})
	if panicked.To != holdfast.Failed {
		t.Errorf("a panic is no throttle: %+v", panicked)
	}
}

func TestAThrottledJobGivesUpByItsAgeWithItsCode(t *testing.T) {
	err := Throttled(WithCode(errQuota, "RATE_LIMITED"), time.Minute)
	for name, c := range map[string]struct {
		policy Policy
		age    time.Duration
		to     holdfast.State
	}{
		"young":                           {Policy{}, time.Hour, holdfast.Queued},
		"just before the default limit":   {Policy{}, 7*24*time.Hour - time.Minute, holdfast.Queued},
		"a wait beyond the default limit": {Policy{}, 7*24*time.Hour - time.Minute + 1, holdfast.Failed},
		"at the default limit":            {Policy{}, 7 * 24 * time.Hour, holdfast.Failed},
		"a longer limit":                  {Policy{GiveUpAfter: 30 * 24 * time.Hour}, 7 * 24 * time.Hour, holdfast.Queued},
		"a shorter limit":                 {Policy{GiveUpAfter: time.Hour}, time.Hour, holdfast.Failed},
		"the code's own limit":            {Policy{Codes: map[string]Override{"RATE_LIMITED": {GiveUpAfter: time.Minute}}}, time.Minute, holdfast.Failed},
	} {
		v := Decide(Rules{Policy: c.policy}, lease(0, 0), Outcome{Err: err, Age: c.age})
		if v.To != c.to || v.Failure == nil || v.Failure.Code != "RATE_LIMITED" {
			t.Errorf("%s: got %+v, want %s with RATE_LIMITED", name, v, c.to)
		}
		if v.To == holdfast.Failed && (v.Charge != store.ChargeNone || v.Failure.Fingerprint == "" || !v.Alarm || IsThrottled(v.Failure) || !strings.Contains(v.Why, "gave up: still throttled")) {
			t.Errorf("%s: the end of a throttled job is a failure like any other: %+v", name, v)
		}
	}
}

func TestAThrottleCountsInTheBreakerOnlyWhenThePolicySaysSo(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		policy Policy
		err    error
		want   Call
	}{
		"429":                           {Policy{Throttle: ThrottleFree}, &HTTPError{Status: 429, RetryAfter: 9 * time.Second}, NoCall},
		"the handler's mark":            {Policy{}, Throttled(WithCode(errQuota, "RATE_LIMITED"), time.Minute), NoCall},
		"503 means that it is down":     {Policy{Throttle: ThrottleFree}, &HTTPError{Status: 503, RetryAfter: 9 * time.Second}, BadCall},
		"429, the policy counts it":     {Policy{Throttle: ThrottleFree, ThrottleTripsBreaker: &yes}, &HTTPError{Status: 429, RetryAfter: 9 * time.Second}, BadCall},
		"503, the policy leaves it out": {Policy{Throttle: ThrottleFree, ThrottleTripsBreaker: &no}, &HTTPError{Status: 503, RetryAfter: 9 * time.Second}, NoCall},
		"counted for one code":          {Policy{Codes: map[string]Override{"UNKNOWN": {ThrottleTripsBreaker: &yes}}}, Throttled(errQuota, time.Minute), BadCall},
	} {
		v := Decide(Rules{Policy: c.policy, Dependency: "gateway"}, lease(0, 0), Outcome{Err: c.err})
		if v.Call != c.want || v.Dependency != map[Call]string{BadCall: "gateway"}[c.want] {
			t.Errorf("%s: call %v of %q, want %v", name, v.Call, v.Dependency, c.want)
		}
	}
}

// However often and by whatever a job is throttled, nothing is spent, and it is not throttled beyond its limit.
func TestThrottlesSpendNothingAndEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := Rules{Policy: Policy{Throttle: rapid.SampledFrom([]Throttle{"", ThrottleFree}).Draw(t, "throttle"), MaxAttempts: 1,
			GiveUpAfter: time.Duration(rapid.Int64Range(0, int64(10*24*time.Hour)).Draw(t, "give up"))}}
		limit := orDefault(rules.Policy.GiveUpAfter, defaultThrottleLimit)
		job, age := lease(0, 0), time.Duration(0)
		for {
			wait := time.Duration(rapid.Int64Range(-1, int64(10*time.Hour)).Draw(t, "wait"))
			v := Decide(rules, job, Outcome{Err: Throttled(&HTTPError{Status: 429, RetryAfter: wait}, max(0, wait)), Age: age, Roll: 0.5})
			if v.To == holdfast.Failed && v.Charge == store.ChargeNone && age+v.Delay <= limit {
				return
			}
			if v.To != holdfast.Queued || v.Charge != store.ChargeRelease || v.Delay < minThrottle || age+v.Delay > limit {
				t.Fatalf("at age %v of %v: %+v", age, limit, v)
			}
			job.Releases++
			age += v.Delay
		}
	})
}
