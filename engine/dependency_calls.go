package engine

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// maxCalls limits the calls of one dependency that are remembered between two updates of its breaker. Beyond it the oldest are dropped.
const maxCalls = 10_000

// A call is one call of a dependency by an attempt.
type call struct {
	job   holdfast.ID
	began time.Time // by the store's clock
	took  time.Duration
	bad   bool
}

// calls are the calls of a dependency since its breaker was last updated.
type calls struct {
	all     []call
	since   time.Time // when the first of them ended, by this process's clock
	bad     int
	firsts  int // calls of first attempts
	good    int // calls of retries that succeeded
	code    string
	message string // of the last bad call
}

// add appends a call. retry says whether it was made by a retry.
func (c *calls) add(one call, retry bool) {
	if c.since.IsZero() {
		c.since = time.Now()
	}
	if len(c.all) >= maxCalls {
		c.all = append(c.all[:0], c.all[maxCalls/2:]...)
	}
	c.all = append(c.all, one)
	switch {
	case !retry:
		c.firsts++
	case !one.bad:
		c.good++
	}
	if one.bad {
		c.bad++
	}
}

// addAll appends later calls.
func (c *calls) addAll(later calls) {
	if c.since.IsZero() {
		*c = later
		return
	}
	c.all = append(c.all, later.all...)
	if over := len(c.all) - maxCalls; over > 0 {
		c.all = append(c.all[:0], c.all[over:]...)
	}
	c.bad, c.firsts, c.good = c.bad+later.bad, c.firsts+later.firsts, c.good+later.good
	if later.bad > 0 {
		c.code, c.message = later.code, later.message
	}
}

// observation summarises the calls for the breaker. Calls that started before the breaker entered its present state, at since, are left out: they say nothing
// about the dependency as it is now.
func (c *calls) observation(since time.Time, slow time.Duration) breaker.Observation {
	o := breaker.Observation{Code: c.code, Message: c.message, Over: time.Since(c.since)}
	for _, each := range c.all {
		if each.began.Before(since) {
			continue
		}
		o.Calls++
		o.Sequence = append(o.Sequence, each.bad)
		if each.bad {
			o.Failures++
		}
		if slow > 0 && each.took >= slow {
			o.Slow++
		}
	}
	return o
}

// takeCalls returns the recorded calls and clears them.
func (d *dependency) takeCalls() calls {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := d.calls
	d.calls = calls{}
	return taken
}
