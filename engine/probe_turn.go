package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

const (
	// maxProbed limits how many jobs a breaker record remembers as having probed.
	maxProbed = 100
	// probeTurn is how much longer each further set of jobs that have probed waits in a half-open breaker, where a set is as many as may probe at once. It
	// is shorter for a breaker that opens for less than 30 s.
	probeTurn = time.Second
	// lastAttemptWait is how long after a failed call of a dependency no job makes its last attempt, unless a later call succeeded.
	lastAttemptWait = 5 * time.Second
)

// A probeOrder lists the jobs that have probed a dependency, latest last, and determines how long each waits before it probes again. It is immutable.
type probeOrder struct {
	probed  []holdfast.ID
	turn    time.Duration // how much longer each further set of jobs waits
	perTurn int           // how many jobs are a set
	maxWait time.Duration
}

// wait returns how long a job waits from the moment the breaker is half-open. Jobs that have not probed go at once; of the others, those whose probe was longest
// ago go first. So jobs take turns to probe, jobs that always fail do not keep a breaker open, and a single job still probes.
func (p *probeOrder) wait(job holdfast.ID) time.Duration {
	place := slices.Index(p.probed, job)
	if place < 0 {
		return 0
	}
	return min(p.turn*time.Duration(1+place/p.perTurn), p.maxWait)
}

// probedBy returns the jobs that have probed: those in the record and those of the failed calls. It returns none if the breaker is closed.
func probedBy(c *breakerRecord, all []call) []holdfast.ID {
	if isClosed(c) {
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

// isClosed reports whether a breaker admits all jobs.
func isClosed(c *breakerRecord) bool {
	return c.State == breaker.Closed || c.State == breaker.ForcedClosed || c.State == ""
}

// publishProbes makes visible to checkStart which jobs have probed and, for a closed breaker, whether the last call that other processes made has failed.
func (e *Engine) publishProbes(d *dependency, c *breakerRecord) {
	if !isClosed(c) {
		cfg := e.policies.dependencyConfig(d).Breaker.WithDefaults()
		d.probeOrder.Store(&probeOrder{probed: c.Probed, turn: min(probeTurn, cfg.OpenFor/30), perTurn: cfg.Probes, maxWait: cfg.OpenMax / 2})
		return
	}
	d.probeOrder.Store(nil)
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

// checkTurn makes a job wait that must not call its dependency yet although the breaker is not open: in a half-open breaker until other jobs have had their turn
// to probe; in a closed or recovering one, if it is the job's last attempt, while the last call failed. So jobs with attempts left find out whether the
// dependency is available, and an outage costs no job its last attempt before the breaker opens.
func (e *Engine) checkTurn(a *attempt, d *dependency, s *breakerView) (o failure.Outcome, refused bool) {
	var wait time.Duration
	why := "other jobs probe %s first"
	switch r := d.probeOrder.Load(); {
	case s == nil, s.state == breaker.Recovering:
		wait, why = e.lastAttemptWait(a, d), "the last call of %s failed and this is the job's last attempt: it waits until a call succeeds or the breaker opens"
	case s.state == breaker.HalfOpen && r != nil:
		wait = s.since.Add(r.wait(a.lease.ID)).Sub(a.lease.AsOf.Add(a.elapsed()))
	}
	if wait <= 0 {
		return o, false
	}
	return failure.Outcome{Event: failure.Held, Err: fmt.Errorf(why, d.name), Wait: wait}, true
}

// lastAttemptWait returns how long a job must wait because it is its last attempt and the dependency's last call failed; 0 if it need not.
func (e *Engine) lastAttemptWait(a *attempt, d *dependency) time.Duration {
	if a.lease.Failures == 0 {
		return 0
	}
	d.mu.Lock()
	last := d.lastBad
	d.mu.Unlock()
	wait := lastAttemptWait - time.Since(last)
	if last.IsZero() || wait <= 0 || !e.policies.rulesFor(&outcome{attempt: a, Outcome: failure.Outcome{Event: failure.Held}}).LastAttempt(*a.lease) {
		return 0
	}
	return wait
}

// dependencyOf returns the dependency of the attempt's job, or nil if it has none or none that is known.
func (e *Engine) dependencyOf(a *attempt) *dependency {
	if a.dep != nil || a.lease.Dependency == "" {
		return a.dep
	}
	return e.deps.find(a.lease.Dependency) // it may have become known since the claim
}

// markProbe records in an outcome whether its attempt was a probe, that is, whether it called a dependency whose breaker was not closed, and how long it is until
// the next probe. A failed probe costs the job nothing.
func (e *Engine) markProbe(o *outcome) {
	if o.Event == failure.Returned && o.Err == nil || o.Event == failure.Held {
		return
	}
	d := e.dependencyOf(o.attempt)
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
		o.Wait = max(0, s.until.Sub(e.clock.now())) + probeTurn
	}
}

// needsBreaker reports whether the breakers must be updated with a failed call before its lease ends. That is so for a probe, because its end would let the store
// admit another job before the breaker knows of the failure; and for a job that would fail for good, because it is released instead if its own call
// opens the breaker.
func (e *Engine) needsBreaker(o *outcome) bool {
	v := &o.verdict
	if v.Call != failure.BadCall || v.Dependency != dependencyName(o.attempt) {
		return false
	}
	return o.Probe || v.To == holdfast.Failed
}

// updateBreakers updates the breakers now, instead of at the next interval.
func (e *Engine) updateBreakers() {
	if err := callSafely(e.storeCtx, e.breakers); err != nil {
		e.logRetry("breakers", err)
	}
}

// redecide decides again on the outcomes that needed the breakers, now that these are up to date.
func (e *Engine) redecide(outcomes []*outcome, settlements []store.Settlement) {
	for i, o := range outcomes {
		if e.needsBreaker(o) {
			settlements[i] = e.prepareSettlement(o)
		}
	}
}
