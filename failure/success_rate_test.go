package failure

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast"
)

func anySuccessRates(t *rapid.T) map[string]map[int]SuccessRate {
	hope := rapid.Custom(func(t *rapid.T) SuccessRate {
		return SuccessRate{Tried: rapid.Int().Draw(t, "tried"), Succeeded: rapid.Int().Draw(t, "succeeded")}
	})
	return rapid.MapOfN(rapid.SampledFrom([]string{"UNKNOWN", "TIMEOUT", "HTTP_5XX"}), rapid.MapOfN(rapid.IntRange(-1, 5), hope, 0, 4), 0, 3).Draw(t, "hopes")
}

func TestALearnedPolicyGivesUpEarlyOnlyWhenExperienceIsClear(t *testing.T) {
	policy := Policy{MaxAttempts: 10, Learned: true}
	cases := []struct {
		name   string
		policy Policy
		hopes  map[int]SuccessRate
		to     holdfast.State
		want   string
	}{
		{"no experience", policy, nil, holdfast.Queued, "exponential backoff"},
		{"too little of it", policy, map[int]SuccessRate{1: {49, 0}}, holdfast.Queued, "exponential backoff"},
		{"enough tries, but not enough to be sure", policy, map[int]SuccessRate{1: {150, 0}}, holdfast.Queued, "exponential backoff"},
		{"clear", policy, map[int]SuccessRate{1: {400, 1}}, holdfast.Failed, "gave up early: only 1 of 400 such retries succeeded"},
		{"not learned", Policy{MaxAttempts: 10}, map[int]SuccessRate{1: {400, 1}}, holdfast.Queued, "exponential backoff"},
		{"of another number", policy, map[int]SuccessRate{2: {400, 1}}, holdfast.Queued, "exponential backoff"},
		{"it helps later", policy, map[int]SuccessRate{1: {400, 0}, 2: {390, 0}, 3: {380, 200}}, holdfast.Queued, "exponential backoff"},
		{"it helped only before", policy, map[int]SuccessRate{0: {400, 399}, 1: {400, 0}}, holdfast.Failed, "gave up early"},
		{"not even one in five", Policy{MaxAttempts: 10, Learned: true, MinSuccessRate: 0.2}, map[int]SuccessRate{1: {400, 40}}, holdfast.Failed, "only 40 of 400 such retries succeeded"},
		{"a rate that makes no sense", Policy{MaxAttempts: 10, Learned: true, MinSuccessRate: math.NaN()}, map[int]SuccessRate{1: {400, 40}}, holdfast.Queued, "exponential backoff"},
		{"promising", policy, map[int]SuccessRate{1: {500, 430}}, holdfast.Queued, "by exponential backoff; 430 of 500 such retries succeeded"},
	}
	for _, c := range cases {
		rules := Rules{Policy: c.policy, SuccessRates: map[string]map[int]SuccessRate{"UNKNOWN": c.hopes, "IO_ERROR": {1: {9999, 0}}}}
		v := Decide(rules, lease(0, 0), Outcome{Err: errPlain})
		if v.To != c.to || !strings.Contains(v.Why, c.want) || c.want == "exponential backoff" && !strings.HasSuffix(v.Why, c.want) {
			t.Errorf("%s: %s, %s", c.name, v.To, v.Why)
		}
	}
	unwilling := Rules{Policy: Policy{Learned: true}, SuccessRates: map[string]map[int]SuccessRate{"GW_4XX": {1: {500, 430}}}}
	if v := Decide(unwilling, lease(0, 0), Outcome{Err: WithCode(errPlain, "GW_4XX")}); v.To != holdfast.Failed {
		t.Error("experience retried a final code")
	}
}

func TestTheBoundsHoldTheTrueShare(t *testing.T) {
	for h, want := range map[SuccessRate][2]float64{
		{0, 0}: {0, 1}, {50, 0}: {0, 0.0714}, {100, 50}: {0.4038, 0.5962}, {100, 100}: {0.9630, 1}, {1000, 10}: {0.0054, 0.0183},
	} {
		if low, high := h.bounds(); math.Abs(low-want[0]) > 1e-4 || math.Abs(high-want[1]) > 1e-4 {
			t.Errorf("%v: %.4f to %.4f, want %v", h, low, high, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		h := SuccessRate{rapid.Int().Draw(t, "tried"), rapid.Int().Draw(t, "succeeded")}
		if low, high := h.bounds(); !(low >= -1e-9 && low <= high && high <= 1+1e-9) {
			t.Fatalf("%v: %v to %v", h, low, high)
		}
	})
}
