package failure

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfastdev/holdfast/internal/check"
)

func TestEachBackoffReturnsItsDelays(t *testing.T) {
	s := time.Second
	doubling := Exponential{Base: 5 * s}
	cases := []struct {
		name    string
		backoff Backoff
		roll    float64
		want    []time.Duration // after 1, 2, 3 ... failures
	}{
		{"5 s doubling", doubling, 0.5, []time.Duration{5 * s, 10 * s, 20 * s, 40 * s}},
		{"5, 25, 125", Exponential{Base: 5 * s, Factor: 5}, 0.9, []time.Duration{5 * s, 25 * s, 125 * s}},
		{"capped", Exponential{Base: 5 * s, Cap: 12 * s}, 0, []time.Duration{5 * s, 10 * s, 12 * s, 12 * s}},
		{"factor 1", Exponential{Base: s, Factor: 1}, 0, []time.Duration{s, s, s}},
		{"base above cap", Exponential{Base: time.Hour, Cap: s}, 0, []time.Duration{s, s}},
		{"5000 ms * 2^attempt + random up to 5000 ms, low", Exponential{Base: 5 * s, Jitter: Jitter{Plus: 5 * s}}, 0, []time.Duration{5 * s, 10 * s, 20 * s}},
		{"5000 ms * 2^attempt + random up to 5000 ms, middle", Exponential{Base: 5 * s, Jitter: Jitter{Plus: 5 * s}}, 0.5, []time.Duration{7500 * time.Millisecond, 12500 * time.Millisecond, 22500 * time.Millisecond}},
		{"full jitter, low", Exponential{Base: 4 * s, Jitter: Jitter{Full: true}}, 0, []time.Duration{0, 0}},
		{"full jitter, middle", Exponential{Base: 4 * s, Jitter: Jitter{Full: true}}, 0.5, []time.Duration{2 * s, 4 * s}},
		{"fixed", Fixed(7 * s), 0.7, []time.Duration{7 * s, 7 * s, 7 * s}},
		{"table, last repeats", Table{60 * s, 300 * s, 900 * s}, 0.7, []time.Duration{60 * s, 300 * s, 900 * s, 900 * s}},
		{"empty table", Table{}, 0, []time.Duration{0, 0}},
		{"5, 15, 45 less 20 percent", Spread{Of: Table{5 * s, 15 * s, 45 * s}, Jitter: Jitter{Percent: 20}}, 0, []time.Duration{4 * s, 12 * s, 36 * s, 36 * s}},
		{"5, 15, 45 in the middle", Spread{Of: Table{5 * s, 15 * s, 45 * s}, Jitter: Jitter{Percent: 20}}, 0.5, []time.Duration{5 * s, 15 * s, 45 * s}},
		{"spread of nothing", Spread{}, 0.5, []time.Duration{0}},
		{"zero value", Exponential{}, 0, []time.Duration{5 * s, 10 * s}},
	}
	for _, c := range cases {
		for i, want := range c.want {
			if got := c.backoff.Delay(i+1, c.roll); (got - want).Abs() > time.Microsecond {
				t.Errorf("%s after %d failures: %v, want %v", c.name, i+1, got, want)
			}
		}
	}
}

// River computed backoff in floating point: from about 310 errors on, the power overflowed and the retry was scheduled 292
// years in the past, a hot loop (riverqueue/river PR #698, again in PR #1402; research/reliability.md row 17).
func TestBackoffAfterHundredsOfFailuresStaysAtItsCapAndNeverTurnsNegative(t *testing.T) {
	b := Exponential{Base: 5 * time.Second, Factor: 2, Cap: time.Hour, Jitter: Jitter{Plus: 5 * time.Second}}
	for n := 11; n <= 20_000; n++ {
		if got := b.Delay(n, 0.999); got != time.Hour {
			t.Fatalf("after %d failures: %v, want the cap of 1h", n, got)
		}
	}
	uncapped := Exponential{Base: 5 * time.Second, Factor: 2, Cap: math.MaxInt64}
	last := time.Duration(0)
	for n := 1; n <= 20_000; n++ {
		got := uncapped.Delay(n, 0)
		if got < last || got > check.MaxDelay {
			t.Fatalf("after %d failures: %v, after one less: %v", n, got, last)
		}
		last = got
	}
	if last != check.MaxDelay {
		t.Errorf("ended at %v, want %v", last, check.MaxDelay)
	}
}

func TestDelaysAreExactToTheNanosecond(t *testing.T) {
	// 53 bits of a float64 could not tell these from their neighbours.
	base := 3*time.Nanosecond + 1<<54
	if got := (Exponential{Base: base, Factor: 3, Cap: check.MaxDelay}).Delay(3, 0); got != 9*base {
		t.Errorf("%d, want %d", got, 9*base)
	}
}

func anyDuration(t *rapid.T, label string) time.Duration {
	return time.Duration(rapid.Int64().Draw(t, label))
}

func anyJitter(t *rapid.T) Jitter {
	return Jitter{
		Full:    rapid.Bool().Draw(t, "full"),
		Percent: rapid.Int().Draw(t, "percent"),
		Plus:    anyDuration(t, "plus"),
	}
}

func TestADelayIsNeverNegativeAndNeverAboveItsCapWhateverTheNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Exponential{Base: anyDuration(t, "base"), Factor: rapid.Int().Draw(t, "factor"), Cap: anyDuration(t, "cap"), Jitter: anyJitter(t)}
		table := Table{anyDuration(t, "first"), anyDuration(t, "last")}
		n := rapid.OneOf(rapid.IntRange(0, 1<<31), rapid.Int()).Draw(t, "n")
		roll := rapid.OneOf(rapid.Float64Range(0, 1), rapid.Float64(), rapid.Just(math.NaN()), rapid.Just(math.Inf(1))).Draw(t, "roll")
		limit := min(orDefault(e.Cap, defaultCap), check.MaxDelay)
		if got := e.Delay(n, roll); got < 0 || got > limit {
			t.Fatalf("exponential: %v, cap %v", got, limit)
		}
		for _, b := range []Backoff{table, Fixed(e.Base), Spread{Of: table, Jitter: e.Jitter}, Spread{Of: e, Jitter: e.Jitter}, defaultBackoff, defaultCrashBackoff} {
			if got := b.Delay(n, roll); got < 0 || got > check.MaxDelay {
				t.Fatalf("%v: %v", b, got)
			}
		}
	})
}

func TestWithoutJitterMoreFailuresNeverMeanAShorterWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Exponential{Base: anyDuration(t, "base"), Factor: rapid.IntRange(-1, 100).Draw(t, "factor"), Cap: anyDuration(t, "cap")}
		n := rapid.IntRange(0, 1<<31).Draw(t, "n")
		if e.Delay(n, 0) > e.Delay(n+1, 0) {
			t.Fatalf("%v after %d, %v after one more", e.Delay(n, 0), n, e.Delay(n+1, 0))
		}
	})
}

func TestJitterStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delay := time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(t, "delay"))
		roll := rapid.Float64Range(0, 0.9999999).Draw(t, "roll")
		percent := rapid.IntRange(0, 100).Draw(t, "percent")
		around := delay * time.Duration(percent) / 100
		within := func(what string, got, low, high time.Duration) {
			if got < low || got > high {
				t.Fatalf("%s: %v not within %v and %v", what, got, low, high)
			}
		}
		within("full", Jitter{Full: true}.spread(delay, roll), 0, delay)
		within("percent", Jitter{Percent: percent}.spread(delay, roll), delay-around, delay+around)
		within("plus", Jitter{Plus: time.Minute}.spread(delay, roll), delay, delay+time.Minute)
	})
}

func TestJitterReachesBothEndsOfItsRange(t *testing.T) {
	j := Jitter{Percent: 20}
	if low, high := j.spread(10*time.Second, 0), j.spread(10*time.Second, math.Nextafter(1, 0)); low != 8*time.Second || high < 12*time.Second-time.Microsecond {
		t.Errorf("%v to %v, want 8s to 12s", low, high)
	}
}
