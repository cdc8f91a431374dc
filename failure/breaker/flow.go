package breaker

import (
	"math"
	"time"
)

// A Flow is what a circuit lets through. With nothing set that is nothing.
type Flow struct {
	Free      bool    // everything: no hold is needed
	AtMost    int     // so many at once
	PerSecond float64 // so many a second,
	Burst     float64 // and so many together
}

// Flow is what may pass now. A circuit that fails fast lets jobs come while it is open, for it is the gate that fails them.
func (c Config) Flow(s Circuit, now time.Time) Flow {
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

// The ramp begins at a 64th of its end and takes six doublings.
const doublings = 6

// leastTop is what a ramp ends at for a dependency that was hardly called, in calls a second.
const leastTop = 10

// Rate is the ramp: how many jobs a second may start while the circuit recovers. It doubles with every sixth of the ramp that
// has passed, up to what the dependency was used to, and never falls. In every other state it is 0 and means nothing.
func (c Config) Rate(s Circuit, now time.Time) float64 {
	c, now = c.filled(), now.Round(0).UTC()
	s = c.sound(s, now)
	if s.State != Recovering {
		return 0
	}
	return c.rate(s, now)
}

func (c Config) rate(s Circuit, now time.Time) float64 {
	top := float64(leastTop)
	if s.Peak > top { // not when it is not a number
		top = min(s.Peak, maxRate)
	}
	passed := min(max(now.Sub(s.Since), 0), c.Ramp)
	step := math.Floor(float64(passed) * doublings / float64(c.Ramp))
	return top * math.Exp2(step-doublings)
}
