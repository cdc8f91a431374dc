package failure

import (
	"fmt"
	"math/bits"
	"time"
)

// A Backoff says how long to wait before the next attempt. n is how many failures there were so far: 1 after the first.
// roll, at least 0 and below 1, is the only chance in it. The answer must hold for any n, however large.
type Backoff interface {
	Delay(n int, roll float64) time.Duration
}

const (
	defaultBase = 5 * time.Second
	defaultCap  = 24 * time.Hour
)

// Exponential waits Base after the first failure and Factor times longer after each further one, never longer than Cap.
// Exponential{Base: 5 * time.Second, Factor: 5} waits 5, 25, 125 seconds. The zero value waits 5 s, 10 s, 20 s and so on up
// to a day.
type Exponential struct {
	Base   time.Duration // 5 s when zero
	Factor int           // 2 when zero
	Cap    time.Duration // 24 h when zero; holds for delay and jitter together
	Jitter Jitter
}

// Delay counts in whole nanoseconds and stops at Cap, so no number of failures can overflow it.
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

// String names the shape, for the record.
func (e Exponential) String() string { return "exponential backoff" }

// Fixed waits equally long after every failure.
type Fixed time.Duration

// Delay is the same for every n.
func (f Fixed) Delay(int, float64) time.Duration { return clampDelay(time.Duration(f)) }

// String names the shape, for the record.
func (f Fixed) String() string { return "fixed delay" }

// Table waits its first entry after the first failure, its second after the second, and its last from then on. An empty
// table does not wait.
type Table []time.Duration

// Delay is the n-th entry.
func (t Table) Delay(n int, _ float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	return clampDelay(t[min(max(n, 1), len(t))-1])
}

// String names the shape, for the record.
func (t Table) String() string { return "table of delays" }

// Spread adds jitter to a shape that has none of its own: Spread{Of: Table{...}, Jitter: Jitter{Percent: 20}}.
type Spread struct {
	Of     Backoff
	Jitter Jitter
}

// Delay is that of the shape, spread.
func (s Spread) Delay(n int, roll float64) time.Duration {
	if s.Of == nil {
		return 0
	}
	return s.Jitter.spread(clampDelay(s.Of.Delay(n, roll)), roll)
}

// String names the shape, for the record.
func (s Spread) String() string { return shape(s.Of) }

// Jitter keeps jobs that failed together from coming back together. Fields may be combined; they apply in their order. The
// zero value changes nothing.
type Jitter struct {
	Full    bool          // anything between nothing and the delay
	Percent int           // up to so many percent less or more, at most 100
	Plus    time.Duration // and up to so much longer
}

func (j Jitter) spread(delay time.Duration, roll float64) time.Duration {
	if j.Full {
		delay = portion(delay, roll)
	}
	if percent := min(max(j.Percent, 0), 100); percent > 0 {
		// A delay is at most holdfast.MaxDelay, about a third of what a duration holds, so neither line can overflow.
		around := delay/100*time.Duration(percent) + delay%100*time.Duration(percent)/100
		delay = clampDelay(delay + (portion(2*around, roll) - around))
	}
	return clampDelay(delay + portion(clampDelay(j.Plus), roll))
}

// portion is the part of a span that roll picks, from nothing to all of it. A roll out of range counts as the nearest one
// within. Only the roll is a fraction: the span is multiplied as an integer of 128 bits.
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

// shape is what a backoff calls itself.
func shape(b Backoff) string {
	if named, ok := b.(fmt.Stringer); ok {
		return named.String()
	}
	return "the policy's backoff"
}
