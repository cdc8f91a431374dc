package engine

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// A breakerGate is what attempts need of breakers: whether an attempt may call its dependency now, whether it was a probe, and where its call is counted. It
// reads what breakers has published and waits for no store call. It is safe for concurrent use.
type breakerGate struct {
	*core
	policies *policies
	deps     *dependencies
	holds    *handlerHolds
	stale    atomic.Bool // the store let a job through that a breaker known here would hold: breakers reads the records again
}

// check refuses an attempt that would call a dependency whose breaker is open, or before it is its turn to probe. All other holds took effect
// at the claim. The breaker is checked again here because it may have opened since, while the job waited for a slot.
func (g *breakerGate) check(a *attempt) (o failure.Outcome, refused bool) {
	d := g.dependencyOf(a)
	if d == nil {
		return o, false
	}
	s := d.view.Load()
	if s == nil || !s.open() {
		return g.checkTurn(a, d, s)
	}
	if !s.fast && a.lease.AsOf.After(s.since.Add(breakerMaxAge)) {
		// The store let the job through, so the breaker has probably changed since this process last read it: read it again.
		g.stale.Store(true)
		signal(g.signals.breakers)
	}
	return s.refusal(), true
}

// refusal is the outcome of an attempt that would call a dependency with an open breaker: in fail-fast mode it fails at once, otherwise it is
// released at no cost.
func (s *breakerView) refusal() failure.Outcome {
	if s.fast {
		return failure.Outcome{Event: failure.FastFailed, Code: s.code, Err: errors.New(s.text)}
	}
	return failure.Outcome{Event: failure.Held, Err: errors.New(s.text)}
}

// checkTurn makes a job wait that must not call its dependency yet although the breaker is not open: in a half-open breaker until other jobs have had their turn
// to probe; in a closed or recovering one, if it is the job's last attempt, while the last call failed. So jobs with attempts left find out whether the
// dependency is available, and an outage costs no job its last attempt before the breaker opens.
func (g *breakerGate) checkTurn(a *attempt, d *dependency, s *breakerView) (o failure.Outcome, refused bool) {
	var wait time.Duration
	why := "other jobs probe %s first"
	switch r := d.probeOrder.Load(); {
	case s == nil, s.state == breaker.Recovering:
		wait, why = g.lastAttemptWait(a, d), "the last call of %s failed and this is the job's last attempt: it waits until a call succeeds or the breaker opens"
	case s.state == breaker.HalfOpen && r != nil:
		wait = s.since.Add(r.wait(a.lease.ID)).Sub(a.lease.AsOf.Add(a.elapsed()))
	}
	if wait <= 0 {
		return o, false
	}
	return failure.Outcome{Event: failure.Held, Err: fmt.Errorf(why, d.name), Wait: wait}, true
}

// lastAttemptWait returns how long a job must wait because it is its last attempt and the dependency's last call failed; 0 if it need not.
func (g *breakerGate) lastAttemptWait(a *attempt, d *dependency) time.Duration {
	if a.lease.Failures == 0 {
		return 0
	}
	d.mu.Lock()
	last := d.lastBad
	d.mu.Unlock()
	wait := lastAttemptWait - time.Since(last)
	if last.IsZero() || wait <= 0 || !g.policies.rulesFor(&outcome{attempt: a, Outcome: failure.Outcome{Event: failure.Held}}).LastAttempt(*a.lease) {
		return 0
	}
	return wait
}

// dependencyOf returns the dependency of the attempt's job, or nil if it has none or none that is known.
func (g *breakerGate) dependencyOf(a *attempt) *dependency {
	if a.dep != nil || a.lease.Dependency == "" {
		return a.dep
	}
	return g.deps.find(a.lease.Dependency) // it may have become known since the claim
}

// markProbe records in an outcome whether its attempt was a probe, that is, whether it called a dependency whose breaker was not closed, and how long it is until
// the next probe. A failed probe costs the job nothing.
func (g *breakerGate) markProbe(o *outcome) {
	if o.Event == failure.Returned && o.Err == nil || o.Event == failure.Held {
		return
	}
	d := g.dependencyOf(o.attempt)
	if d == nil {
		return
	}
	s := d.view.Load()
	switch {
	case s == nil:
		// The breaker is closed now; the attempt was a probe if it started before that.
		d.mu.Lock()
		defer d.mu.Unlock()
		o.Probe = d.closed.After(o.attempt.beganAt())
		return
	case s.state == breaker.Recovering: // the probes succeeded: a call that started after them counts as with a closed breaker
		o.Probe = s.since.After(o.attempt.beganAt())
		return
	}
	o.Probe = true
	if s.open() {
		o.Wait = max(0, s.until.Sub(g.clock.now())) + probeTurn
	}
}

// needsBreaker reports whether the breakers must be updated with a failed call before its lease ends. That is so for a probe, because its end would let the store
// admit another job before the breaker knows of the failure; and for a job that would fail for good, because it is released instead if its own call
// opens the breaker.
func needsBreaker(o *outcome) bool {
	v := &o.verdict
	if v.Call != failure.BadCall || v.Dependency != dependencyName(o.attempt) {
		return false
	}
	return o.Probe || v.To == holdfast.Failed
}

// observe records what a verdict says about the attempt's dependency: a hold that the handler asked for, and whether its call succeeded. A job without a
// dependency costs a few comparisons.
func (g *breakerGate) observe(o *outcome) {
	a, v := o.attempt, &o.verdict
	if a.dep == nil && a.lease.Dependency == "" && v.Failure == nil && v.Hold == 0 {
		return
	}
	if v.Hold > 0 {
		g.holds.request(o)
	}
	var d *dependency
	switch v.Call {
	case failure.NoCall:
		return
	case failure.BadCall:
		if d = g.blamedDependency(o); d == nil {
			return
		}
	default:
		if d = g.dependencyOf(a); a.calledDependency != "" && a.calledDependency != dependencyName(a) {
			d = g.deps.find(a.calledDependency)
		}
		if d == nil {
			return
		}
	}
	g.addCall(d, o)
}

// blamedDependency returns the dependency that a failed call counts against: the one that the failure names. It returns nil if no job is known to depend on it.
func (g *breakerGate) blamedDependency(o *outcome) *dependency {
	own := dependencyName(o.attempt)
	if name := o.verdict.Dependency; name != own {
		return g.deps.find(name)
	}
	if own == "" {
		return nil
	}
	return g.deps.add(own, false)
}

// dependencyName returns the dependency that the job names, or else the one of its kind.
func dependencyName(a *attempt) string {
	if a.lease.Dependency != "" || a.kind == nil {
		return a.lease.Dependency
	}
	return a.kind.rules.Dependency
}

// addCall records a call. A failed call, and any call while the breaker is not closed, triggers an update of the breakers.
func (g *breakerGate) addCall(d *dependency, o *outcome) {
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
	if bad || d.view.Load() != nil {
		signal(g.signals.breakers)
	}
}
