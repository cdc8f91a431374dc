package failure

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestABudgetHasItsDefaults(t *testing.T) {
	for _, b := range []Budget{{}, {Ratio: -1, Floor: math.NaN(), Burst: math.Inf(-1)}} {
		perSecond, burst, level := b.Rate()
		if perSecond != 0.05 || burst != 100 || level != 3 || math.Abs(b.Deposit(10, 10)-14) > 1e-9 {
			t.Errorf("%v: %v a second, burst %v, level %v, deposit %v", b, perSecond, burst, level, b.Deposit(10, 10))
		}
	}
	if err := (Budget{Ratio: -1, Floor: math.NaN(), Burst: 0.5}).Check(); err == nil || strings.Count(err.Error(), "Budget.") != 3 {
		t.Error(err)
	}
	for _, fine := range []Budget{{}, {Ratio: 1, Floor: 0.1, Burst: 1}} {
		if err := fine.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryBudgetIsABucketThatAHoldAccepts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Budget{rapid.Float64().Draw(t, "ratio"), rapid.Float64().Draw(t, "floor"), rapid.Float64().Draw(t, "burst")}
		perSecond, burst, level := b.Rate()
		deposit := b.Deposit(rapid.Int().Draw(t, "firsts"), rapid.Int().Draw(t, "good"))
		if !(perSecond >= 0 && perSecond <= 1e6 && burst >= 1 && burst <= 1e9 && level >= 0 && level <= burst && deposit >= 0 && deposit <= 1e9) {
			t.Fatalf("%v a second, burst %v, level %v, deposit %v", perSecond, burst, level, deposit)
		}
	})
}

// A dependency fails every call, and every failed job wants to be retried for ever.
func TestUnderTotalFailureRetriesStayWithinTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Budget{Ratio: rapid.Float64Range(0.01, 1).Draw(t, "ratio"), Floor: rapid.Float64Range(0.1, 60).Draw(t, "floor"), Burst: rapid.Float64Range(1, 200).Draw(t, "burst")}
		perSecond, burst, tokens := b.Rate()
		offered, retries := 0, 0
		begun := tokens
		for second := range 600 {
			firsts := rapid.IntRange(0, 50).Draw(t, "firsts")
			offered += firsts
			tokens = min(burst, tokens+perSecond+b.Deposit(firsts, 0))
			taken := int(tokens)
			tokens -= float64(taken)
			retries += taken
			if limit := b.Ratio*float64(offered) + begun + perSecond*float64(second+1); float64(retries) > limit+1e-6 {
				t.Fatalf("%d retries of %d jobs after %d s, the budget was %v", retries, offered, second+1, limit)
			}
		}
	})
}
