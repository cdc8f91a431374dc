package failure

import (
	"fmt"
	"math/bits"
	"time"
)

// A Backoff computes the delay before the next attempt. n is the number of failures so far, 1 after the first. roll, at
// least 0 and below 1, is the only random input. Delay must return a valid delay for any n, however large.
type Backoff interface {
	Delay(n int, roll float64) time.Duration
}

const (
	defaultBase = 5 * time.Second
	defaultCap  = 24 * time.Hour
)

// Exponential waits Base after the first failure and Factor times longer after each further one, at most Cap.
// Exponential{Base: 5 * time.Second, Factor: 5} waits 5, 25, 125 seconds. The zero value waits 5 s, 10 s, 20 s and so on up
// to a day.
type Exponential struct {
	Base   time.Duration // 5 s when zero
	Factor int           // 2 when zero
	Cap    time.Duration // 24 h when zero; limits delay and jitter together
	Jitter Jitter
}

// Delay implements Backoff. It computes in whole nanoseconds and stops at Cap, so it cannot overflow for any n.
func (e Exponential) Delay(n int, roll float64) time.Duration {
	limit := clampDelay(orDefault(e.Cap, defaultCap))
	delay := min(orDefault(e.Base, defaultBase), limit)
	factor := time.Duration(e.Factor)
	if factor <= 0 {
		factor = 2
	}
	for ; n > 1 && factor > 1 && delay < limit; n-- {
		if delay > limit/factor {
			delay = limit
			break
		}
		delay *= factor
	}
	return min(e.Jitter.spread(delay, roll), limit)
}

// String names the backoff in the reason of a verdict.
func (e Exponential) String() string { return "exponential backoff" }

// Fixed waits the same time after every failure.
type Fixed time.Duration

// Delay implements Backoff.
func (f Fixed) Delay(int, float64) time.Duration { return clampDelay(time.Duration(f)) }

// String names the backoff in the reason of a verdict.
func (f Fixed) String() string { return "fixed delay" }

// Table waits its first entry after the first failure, its second after the second, and its last entry after all further ones. An
// empty table does not wait.
type Table []time.Duration

// Delay implements Backoff.
func (t Table) Delay(n int, _ float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return clampDelay(t[min(max(n, 1), len(t))-1])
}

// String names the backoff in the reason of a verdict.
func (t Table) String() string { return "table of delays" }

// Spread adds jitter to a Backoff that has none: Spread{Of: Table{...}, Jitter: Jitter{Percent: 20}}.
type Spread struct {
	Of     Backoff
	Jitter Jitter
}

// Delay implements Backoff.
func (s Spread) Delay(n int, roll float64) time.Duration {
	if s.Of == nil {
		return 0
	}
	return s.Jitter.spread(clampDelay(s.Of.Delay(n, roll)), roll)
}

// String names the backoff in the reason of a verdict.
func (s Spread) String() string { return shape(s.Of) }

// Jitter spreads delays, so that jobs that failed together are not retried together. Fields may be combined and apply in
// their order. The zero value changes nothing.
type Jitter struct {
	Full    bool          // a random delay between 0 and the delay
	Percent int           // up to this many percent less or more, at most 100
	Plus    time.Duration // up to this much longer
}

func (j Jitter) spread(delay time.Duration, roll float64) time.Duration {
	if j.Full {
		delay = portion(delay, roll)
	}
	if percent := min(max(j.Percent, 0), 100); percent > 0 {
		// A delay is at most check.MaxDelay, about a third of what a duration holds, so neither line can overflow.
		around := delay/100*time.Duration(percent) + delay%100*time.Duration(percent)/100
		delay = clampDelay(delay + (portion(2*around, roll) - around))
	}
	return clampDelay(delay + portion(clampDelay(j.Plus), roll))
}

// portion returns the part of span that roll selects, from nothing to all of it. A roll out of range counts as the nearest
// valid one. Only roll is a floating-point number: the span is multiplied as a 128-bit integer.
func portion(span time.Duration, roll float64) time.Duration {
	if !(roll > 0) || span <= 0 { // also when roll is not a number
		return 0
	}
	const scale = 1 << 53
	picked := uint64(scale - 1)
	if roll < 1 {
		picked = uint64(roll * scale)
	}
	high, low := bits.Mul64(uint64(span)+1, picked)
	return time.Duration(high<<11 | low>>53)
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// shape returns the name of a backoff for the reason of a verdict.
func shape(b Backoff) string {
	if named, ok := b.(fmt.Stringer); ok {
		return named.String()
	}
	return "the policy's backoff"
}
