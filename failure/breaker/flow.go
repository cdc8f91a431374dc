package breaker

import (
	"math"
	"time"
)

// A Flow is what a breaker lets through. The zero value lets nothing through.
type Flow struct {
	Free      bool    // everything: no hold is needed
	AtMost    int     // number of jobs at once
	PerSecond float64 // jobs per second
	Burst     float64 // and so many together
}

// Flow returns what may pass now. With FailFast an open breaker lets jobs be claimed, because the engine then fails them at once.
func (c Config) Flow(s Snapshot, now time.Time) Flow {
	c, now = c.filled(), now.Round(0).UTC()
	s = c.sound(s, now)
	switch {
	case c.Disabled && !s.State.Forced():
	case s.State.Refuses():
		return Flow{Free: c.FailFast}
	case s.State == HalfOpen:
		return Flow{AtMost: c.Probes}
	case s.State == Recovering:
		rate := c.rate(s, now)
		return Flow{PerSecond: rate, Burst: max(1, rate/10)}
	}
	return Flow{Free: true}
}

// The ramp starts at 1/64 of its final rate and takes six doublings.
const doublings = 6

// minPeakRate is the final rate of a ramp, in calls per second, for a dependency that was called less often than that.
const minPeakRate = 10

// Rate returns how many jobs per second may start while the breaker recovers. It doubles with every sixth of the ramp, up
// to the peak rate before the breaker opened, and never falls. In every other state it returns 0, which has no meaning.
func (c Config) Rate(s Snapshot, now time.Time) float64 {
	c, now = c.filled(), now.Round(0).UTC()
	s = c.sound(s, now)
	if s.State != Recovering {
		return 0
	}
	return c.rate(s, now)
}

func (c Config) rate(s Snapshot, now time.Time) float64 {
	top := float64(minPeakRate)
	if s.Peak > top { // not when it is not a number
		top = min(s.Peak, maxRate)
	}
	passed := min(max(now.Sub(s.Since), 0), c.Ramp)
	step := math.Floor(float64(passed) * doublings / float64(c.Ramp))
	return top * math.Exp2(step-doublings)
}
