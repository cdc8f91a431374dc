package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

const (
	// maxProbed bounds how many jobs a circuit remembers as having probed.
	maxProbed = 100
	// probeTurn is how much longer each further pair of jobs that have probed waits in a half-open circuit; shorter for a
	// circuit that opens for less than 30 s.
	probeTurn = time.Second
	// lastAttemptWait is how long after a dependency's last call, if that was a bad one, last attempts are not made.
	lastAttemptWait = 5 * time.Second
)

// A rota says which jobs probed a dependency, the latest last, and how long each waits for its next turn.
type rota struct {
	probed []holdfast.ID
	turn   time.Duration
	atOnce int
	most   time.Duration
}

// wait is how long a job waits from the moment a circuit is half-open. Jobs that have not probed go at once; of the others those
// whose probe was longest ago go first. So one job after the other probes, and a lone one still does.
func (r *rota) wait(job holdfast.ID) time.Duration {
	place := slices.Index(r.probed, job)
	if place < 0 {
		return 0
	}
	return min(r.turn*time.Duration(1+place/r.atOnce), r.most)
}

// probedBy adds the jobs of bad calls to those that have probed, as long as the circuit is not closed.
func probedBy(c *circuit, all []call) []holdfast.ID {
	if passable(c) {
		return nil
	}
	probed := c.Probed
	for _, each := range all {
		if !each.bad {
			continue
		}
		probed = append(slices.DeleteFunc(slices.Clone(probed), func(id holdfast.ID) bool { return id == each.job }), each.job)
	}
	return probed[max(0, len(probed)-maxProbed):]
}

// passable reports whether a circuit lets everything through.
func passable(c *circuit) bool {
	return c.State == breaker.Closed || c.State == breaker.ForcedClosed || c.State == ""
}

// showProbes lets the gate see which jobs have probed, and what other processes saw of the last call.
func (e *Engine) showProbes(d *dependency, c *circuit) {
	if !passable(c) {
		how := e.howTo(d).Breaker.Filled()
		d.rota.Store(&rota{probed: c.Probed, turn: min(probeTurn, how.OpenFor/30), atOnce: how.Probes, most: how.OpenMax / 2})
		return
	}
	d.rota.Store(nil)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(c.History) > 0 {
		d.closed = c.Since
	}
	if ago := e.clock.now().Sub(c.Failed); strings.HasSuffix(strings.ToLower(c.Recent), "x") && ago < lastAttemptWait {
		if at := time.Now().Add(-ago); at.After(d.lastBad) && len(d.calls.all) == 0 {
			d.lastBad = at
		}
	}
}

// turnGate lets a job wait that must not call its dependency yet although the circuit is not open: in a half-open circuit until
// others have had their turn to probe; in a closed one, if it is the job's last attempt, while the last call was a bad one.
// Jobs with attempts to spare find out whether the dependency is away.
func (e *Engine) turnGate(a *attempt, d *dependency, s *sight) (o failure.Outcome, refused bool) {
	var wait time.Duration
	why := "other jobs probe %s first"
	switch r := d.rota.Load(); {
	case s == nil, s.state == breaker.Recovering:
		wait, why = e.lastAttemptWait(a, d), "the last call of %s failed, and this is the job's last attempt: it waits for a good call or the breaker"
	case s.state == breaker.HalfOpen && r != nil:
		wait = s.since.Add(r.wait(a.lease.ID)).Sub(a.lease.AsOf.Add(a.elapsed()))
	}
	if wait <= 0 {
		return o, false
	}
	return failure.Outcome{Event: failure.Held, Err: fmt.Errorf(why, d.name), Wait: wait}, true
}

func (e *Engine) lastAttemptWait(a *attempt, d *dependency) time.Duration {
	if a.lease.Failures == 0 {
		return 0
	}
	d.mu.Lock()
	last := d.lastBad
	d.mu.Unlock()
	wait := lastAttemptWait - time.Since(last)
	if last.IsZero() || wait <= 0 || !e.rulesFor(&outcome{attempt: a, Outcome: failure.Outcome{Event: failure.Held}}).LastAttempt(*a.lease) {
		return 0
	}
	return wait
}

// ownOf is the dependency of the attempt's own job, nil when it has none or none that is known.
func (e *Engine) ownOf(a *attempt) *dependency {
	if a.dep != nil || a.lease.Dependency == "" {
		return a.dep
	}
	return e.deps.find(a.lease.Dependency) // it may have become known since the claim
}

// probing notes in an outcome whether its attempt called a dependency whose breaker was not closed, and how long it is until the
// next probe.
func (e *Engine) probing(o *outcome) {
	if o.Event == failure.Returned && o.Err == nil || o.Event == failure.Held {
		return
	}
	d := e.ownOf(o.attempt)
	if d == nil {
		return
	}
	s := d.sight.Load()
	switch {
	case s == nil:
		d.mu.Lock()
		defer d.mu.Unlock()
		o.Probe = d.closed.After(o.attempt.beganAt())
		return
	case s.state == breaker.Recovering: // the probes succeeded: a call that fails after them counts as in a closed circuit
		o.Probe = s.since.After(o.attempt.beganAt())
		return
	}
	o.Probe = true
	if s.open() {
		o.Wait = max(0, s.until.Sub(e.clock.now())) + probeTurn
	}
}

// needsBreaker reports whether a failed call is to be heard by the breakers before its lease ends: a probe's place is not free for
// another job in between, and a job that would fail for good does not if the breaker opens now.
func (e *Engine) needsBreaker(o *outcome) bool {
	v := &o.verdict
	if v.Call != failure.BadCall || v.Dependency != ownDependency(o.attempt) {
		return false
	}
	return o.Probe || v.To == holdfast.Failed
}

// hear lets the breakers judge what was called.
func (e *Engine) hear() {
	if err := once(e.keeping, e.breakers); err != nil {
		e.complain("breakers", err)
	}
}

// decideAgain decides what needed the breakers by what they came to.
func (e *Engine) decideAgain(outcomes []*outcome, settlements []holdfast.Settlement) {
	for i, o := range outcomes {
		if e.needsBreaker(o) {
			settlements[i] = e.settlement(o)
		}
	}
}
