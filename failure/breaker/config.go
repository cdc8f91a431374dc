package breaker

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// A Config says when a breaker opens and how it recovers. With the zero value a breaker opens when half of the last 20
// calls failed, of at least 10; lets 2 jobs probe after 30 s, then after 1, 2, 4 minutes up to 10; and once 2 probes have
// succeeded, ramps up to full traffic over 30 s.
type Config struct {
	Window   int           // evaluate this many of the last calls; 20 when zero
	Span     time.Duration // evaluate the calls within this time instead, however many
	MinCalls int           // do not open on fewer calls; 10 when zero

	FailureRate float64       // open when this share of the calls failed; 0.5 when zero
	SlowCall    time.Duration // a longer call is slow; the caller of Observe measures it. 0: slow calls are not counted
	SlowRate    float64       // open when this share of the calls was slow; 0.8 when zero

	OpenFor time.Duration // how long the breaker stays open before it is probed; 30 s when zero, doubled each time it opens again
	OpenMax time.Duration // the longest such time; 10 min when zero

	Probes    int           // jobs that may run at once while half-open; 2 when zero
	Successes int           // successful calls that end probing; 2 when zero
	Ramp      time.Duration // time to reach full traffic while recovering; 30 s when zero

	FailFast bool   // while open, jobs fail at once instead of waiting in their queue
	Code     string // failure code of those jobs
	Disabled bool   // evaluate nothing; forced states still apply
}

// Limits that keep a circuit small and its flow within what a hold accepts.
const (
	maxWindow = 1000
	maxProbes = 1_000_000
	maxSpan   = 365 * 24 * time.Hour
	maxRate   = 1e6
)

// Check returns an error that names every problem, or nil. The other methods do not need it: they replace an invalid number by
// the default.
func (c Config) Check() error {
	var problems []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf("breaker: "+format, args...))
		}
	}
	count := func(field string, n, limit int) {
		refuse(n < 0 || n > limit, "%s is %d: give a number from 1 to %d, or 0 for the default", field, n, limit)
	}
	share := func(field string, f float64) {
		refuse(!(f >= 0 && f <= 1), "%s is %v: give a share above 0 and up to 1, or 0 for the default", field, f)
	}
	span := func(field string, d time.Duration) {
		refuse(d < 0 || d > maxSpan, "%s is %v: give a duration up to a year, or 0 for the default", field, d)
	}
	count("Window", c.Window, maxWindow)
	count("MinCalls", c.MinCalls, math.MaxInt32)
	count("Probes", c.Probes, maxProbes)
	count("Successes", c.Successes, maxProbes)
	share("FailureRate", c.FailureRate)
	share("SlowRate", c.SlowRate)
	span("Span", c.Span)
	span("SlowCall", c.SlowCall)
	span("OpenFor", c.OpenFor)
	span("OpenMax", c.OpenMax)
	span("Ramp", c.Ramp)
	window := or(c.Window, defaults.Window)
	refuse(c.Span <= 0 && window > 0 && c.MinCalls > window, "MinCalls %d of the last %d calls can never be reached: give a larger Window, or a Span", c.MinCalls, window)
	refuse(c.OpenMax > 0 && c.OpenMax < c.OpenFor, "OpenMax %v is shorter than OpenFor %v: give the longer one as OpenMax", c.OpenMax, c.OpenFor)
	return errors.Join(problems...)
}

var defaults = Config{
	Window: 20, MinCalls: 10, FailureRate: 0.5, SlowRate: 0.8,
	OpenFor: 30 * time.Second, OpenMax: 10 * time.Minute, Probes: 2, Successes: 2, Ramp: 30 * time.Second,
}

// WithDefaults returns the config with defaults in place of zero and invalid values.
func (c Config) WithDefaults() Config { return c.filled() }

// filled returns the config with defaults, and every value within its limits.
func (c Config) filled() Config {
	c.Window = min(or(c.Window, defaults.Window), maxWindow)
	c.Span = min(max(c.Span, 0), maxSpan)
	c.MinCalls = or(c.MinCalls, defaults.MinCalls)
	if c.Span == 0 {
		c.MinCalls = min(c.MinCalls, c.Window)
	}
	c.FailureRate = shareOr(c.FailureRate, defaults.FailureRate)
	c.SlowRate = shareOr(c.SlowRate, defaults.SlowRate)
	c.OpenFor = min(or(c.OpenFor, defaults.OpenFor), maxSpan)
	c.OpenMax = max(min(or(c.OpenMax, defaults.OpenMax), maxSpan), c.OpenFor)
	c.Probes = min(or(c.Probes, defaults.Probes), maxProbes)
	c.Successes = min(or(c.Successes, defaults.Successes), maxProbes)
	c.Ramp = min(or(c.Ramp, defaults.Ramp), maxSpan)
	return c
}

func or[T int | time.Duration](n, otherwise T) T {
	if n <= 0 {
		return otherwise
	}
	return n
}

func shareOr(f, otherwise float64) float64 {
	if !(f > 0 && f <= 1) { // also when it is not a number
		return otherwise
	}
	return f
}
