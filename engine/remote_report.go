package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// A RemoteReport is the outcome of an attempt that a remote worker made, such as one in another language. Lease is the lease as it was claimed. If the outcome
// does not contain how long the attempt took or how old the generation is, both are derived from the lease.
type RemoteReport struct {
	Lease   store.Lease
	Outcome failure.Outcome

	Rationed bool // this lease was returned by Ration
}

// SettleReports settles the outcomes of attempts that remote workers made, exactly as if this engine had made them. answers holds one entry for each report: nil
// if its settlement is written, ErrLeaseLost if another worker has the job. An err means that nothing was written or that the result is unknown:
// the caller should report again. Reporting again is safe: a settlement that was written before is answered with nil and counted once.
//
// A kind without a handler here uses the engine's rules and the policy for its name. Judge works only while the engine runs; otherwise it returns
// ErrUnavailable. It is safe for concurrent use.
func (e *Engine) SettleReports(ctx context.Context, reports []RemoteReport) (answers []error, err error) {
	if !e.remote.begin() {
		return nil, notAccepting("this engine is not running")
	}
	defer e.remote.inProgress.Done()
	defer recoverTo(&err)
	if len(reports) == 0 {
		return nil, nil
	}
	ctx, done := e.callerContext(ctx)
	defer done()
	if err := e.policies.wait(ctx); err != nil {
		return nil, err
	}
	var outcomes []*outcome
	var settlements []store.Settlement
	var which []int
	for i := range reports {
		o := e.remoteOutcome(&reports[i])
		s := e.settler.prepareSettlement(o)
		if !e.remote.isRepeat(o) {
			outcomes, settlements, which = append(outcomes, o), append(settlements, s), append(which, i)
		}
	}
	written, err := e.settleNew(ctx, outcomes, settlements)
	if err != nil {
		return nil, err
	}
	answers = make([]error, len(reports))
	for n, i := range which {
		answers[i] = written[n]
	}
	return answers, nil
}

// ReserveRetries counts the retries among jobs that were claimed for a remote worker against the budgets of their owners, as the engine does for its own. It returns
// the leases that may run and releases the others at no cost. Reports of the returned leases set Rationed. An engine that is not running returns all
// leases.
func (e *Engine) ReserveRetries(ctx context.Context, leases []store.Lease) []store.Lease {
	if !e.policies.active.hasBudgets.Load() || !e.remote.begin() {
		return leases
	}
	defer e.remote.inProgress.Done()
	var allowed []store.Lease
	var refused []RemoteReport
	for i := range leases {
		if o, no := e.budgets.reserve(&attempt{lease: &leases[i]}); no {
			refused = append(refused, RemoteReport{Lease: leases[i], Outcome: o})
		} else {
			allowed = append(allowed, leases[i])
		}
	}
	if len(refused) == 0 {
		return leases
	}
	if _, err := e.SettleReports(ctx, refused); err != nil {
		e.cfg.Log.Warn("retries beyond a budget could not be released; they wait until their leases expire", "jobs", len(refused), "error", err)
	}
	return allowed
}

// settleNew settles the outcomes that are not known to be settled, and records their effects.
func (e *Engine) settleNew(ctx context.Context, outcomes []*outcome, settlements []store.Settlement) ([]error, error) {
	if len(outcomes) == 0 {
		return nil, nil
	}
	if err := e.updateBreakersFirst(ctx, outcomes, settlements); err != nil {
		return nil, err
	}
	answers, err := e.settleReports(ctx, settlements)
	if err != nil {
		return nil, err
	}
	e.settleRejected(ctx, outcomes, answers)
	e.recordSettled(outcomes, answers)
	return answers, nil
}

func notAccepting(why string) error {
	return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: why + ": report to another server, or again in a moment; renew the lease meanwhile"}
}

// remoteOutcome makes an outcome of a report. It is not in the lease table: the remote worker renews the lease.
func (e *Engine) remoteOutcome(r *RemoteReport) *outcome {
	leases := []store.Lease{r.Lease}
	a := e.attempts.newAttempts(leases, time.Now())[0]
	if a.kind == nil {
		e.policies.remoteKinds.add(a.lease.Kind)
	}
	o, now := r.Outcome, e.clock.now()
	a.retryReserved = r.Rationed && a.lease.Failures > 0
	if a.lease.AsOf.IsZero() {
		a.lease.AsOf = now
	}
	if a.lease.Corrupt != "" {
		o.Event, o.Err = failure.Unreadable, errors.New(a.lease.Corrupt)
	}
	since := a.lease.Since
	if since.IsZero() && a.lease.Generation <= 1 {
		since = a.lease.CreatedAt
	}
	if o.Age == 0 && !since.IsZero() {
		o.Age = max(0, now.Sub(since))
	}
	started := a.lease.StartedAt
	if ran(o.Event) && o.Took <= 0 && !started.IsZero() {
		o.Took = max(0, now.Sub(started))
	}
	if ran(o.Event) || o.Took > 0 {
		began := now.Add(-o.Took)
		if began.Before(started) {
			began = started
		}
		// Times of the lease are by the store's clock. began is by this process's clock, relative to asked.
		a.began = a.asked.Add(began.Sub(a.lease.AsOf))
	}
	a.outcome = outcome{attempt: a, Outcome: o}
	return &a.outcome
}

// ran reports whether a handler ran in an attempt with this event.
func ran(event failure.Event) bool {
	switch event {
	case failure.Returned, failure.Panicked, failure.Exited, failure.TimedOut, failure.CancelledByRequest:
		return true
	}
	return false
}

// updateBreakersFirst does for reports what settle does for local attempts: where a breaker may change the verdict on a failed call, it updates the
// breakers while the lease is still held, and decides again. First it asks the store whether the lease is held, because a report whose lease is
// lost must not move a breaker.
func (e *Engine) updateBreakersFirst(ctx context.Context, outcomes []*outcome, settlements []store.Settlement) error {
	var probes []*outcome
	var notes []store.Note
	for _, o := range outcomes {
		if l := o.attempt.lease; needsBreaker(o) {
			probes, notes = append(probes, o), append(notes, store.Note{Batch: l.Batch, Job: l.ID, Token: l.Token})
		}
	}
	if len(probes) == 0 {
		return nil
	}
	held, err := e.store.Note(ctx, notes) // an empty note only checks that the lease is held
	if err != nil {
		return err
	}
	for i, o := range probes {
		if i < len(held) && held[i] == nil && e.remote.countOnce(o) {
			e.settler.recordEffects(o)
		}
	}
	e.breakers.updateNow()
	e.settler.redecide(outcomes, settlements)
	return nil
}

// settleReports makes one call. Unlike the engine, a remote worker repeats its report itself.
func (e *Engine) settleReports(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	answers, err := e.store.Settle(ctx, settlements)
	if err == nil && len(answers) != len(settlements) {
		err = fmt.Errorf("the store gave %d answers to %d settlements", len(answers), len(settlements))
	}
	return answers, err
}

// settleRejected settles the outcomes whose settlements the store rejected as invalid, once, as failures, so that no job stays leased for ever. It
// replaces their answers.
func (e *Engine) settleRejected(ctx context.Context, outcomes []*outcome, answers []error) {
	var which []int
	var instead []store.Settlement
	for i, answer := range answers {
		if rejected(answer) {
			which, instead = append(which, i), append(instead, e.settler.settleRejection(outcomes[i], answer))
		}
	}
	if len(which) == 0 {
		return
	}
	again, err := e.settleReports(ctx, instead)
	for n, i := range which {
		if answers[i] = err; err == nil {
			answers[i] = again[n]
		}
	}
}

// recordSettled records the effects of settled outcomes and announces them, once for each attempt, however often it is reported.
func (e *Engine) recordSettled(outcomes []*outcome, answers []error) {
	for i, o := range outcomes {
		if answers[i] == nil && e.remote.countOnce(o) {
			e.settler.recordEffects(o)
		}
		if answers[i] != nil || e.remote.announceOnce(o) {
			e.announcer.announce(o, answers[i])
		}
	}
	if e.limited.hasCap.Load() { // the settled jobs no longer count towards a limit
		signal(e.signals.claim)
	}
	signal(e.signals.feed)
	signal(e.signals.groups)
}
