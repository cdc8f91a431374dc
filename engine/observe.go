package engine

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// maxCalls bounds what is remembered of a dependency between two looks at it. Beyond it the oldest calls are left out.
const maxCalls = 10_000

// A call is what one attempt says about its dependency.
type call struct {
	job   holdfast.ID
	began time.Time // by the store's clock
	took  time.Duration
	bad   bool
}

// calls are those since somebody last looked.
type calls struct {
	all     []call
	since   time.Time // when the first of them ended, by this process's clock
	bad     int
	firsts  int // first attempts
	good    int // retries that completed
	code    string
	message string // of the last bad call
}

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

// then puts what came later behind.
func (c *calls) then(later calls) {
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

// observation is what a circuit is told of them. Calls that began before the circuit came to stand as it does prove nothing
// about it and are left out.
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

// observe takes from a verdict what it says about the attempt's dependency. A job that depends on nothing costs a few
// comparisons.
func (e *Engine) observe(o *outcome) {
	a, v := o.attempt, &o.verdict
	if a.dep == nil && a.lease.Dependency == "" && v.Failure == nil && v.Hold == 0 {
		return
	}
	if v.Hold > 0 {
		e.holdDependency(o)
	}
	var d *dependency
	switch v.Call {
	case failure.NoCall:
		return
	case failure.BadCall:
		if d = e.blamed(o); d == nil {
			return
		}
	default:
		if d = e.ownOf(a); a.calls != "" && a.calls != ownDependency(a) {
			d = e.deps.find(a.calls)
		}
		if d == nil {
			return
		}
	}
	e.note(d, o)
}

// blamed is the dependency that a bad call counts against: the one that the failure names, if jobs are known to depend on it.
func (e *Engine) blamed(o *outcome) *dependency {
	own := ownDependency(o.attempt)
	if name := o.verdict.Dependency; name != own {
		return e.deps.find(name)
	}
	if own == "" {
		return nil
	}
	return e.deps.add(own, false)
}

// ownDependency is what the job names, or else its kind.
func ownDependency(a *attempt) string {
	if a.lease.Dependency != "" || a.kind == nil {
		return a.lease.Dependency
	}
	return a.kind.rules.Dependency
}

func (e *Engine) note(d *dependency, o *outcome) {
	a, bad := o.attempt, o.verdict.Call == failure.BadCall
	d.mu.Lock()
	d.calls.add(call{job: a.lease.ID, began: a.beganAt(), took: o.Took, bad: bad}, a.lease.Failures > 0)
	d.lastBad = time.Time{}
	if bad {
		d.lastBad = time.Now()
	}
	if f := o.verdict.Failure; bad && f != nil {
		d.calls.code, d.calls.message = f.Code, f.Message
	}
	d.mu.Unlock()
	if bad || d.sight.Load() != nil {
		nudge(e.called)
	}
}

// takeCalls answers what was gathered, for one to look at it.
func (d *dependency) takeCalls() calls {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := d.calls
	d.calls = calls{}
	return taken
}
