package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// A Report is what somebody says about an attempt that was made elsewhere: a worker in another language. The lease is as it was claimed.
// When the outcome does not say how long it took, or how old the generation is, the lease tells.
type Report struct {
	Lease   holdfast.Lease
	Outcome failure.Outcome

	Rationed bool // the claim of this lease passed Ration
}

// Judge decides what becomes of attempts that were made elsewhere, exactly as if they had been made here, and writes it down. It answers for each
// whether that was written; an error of its own means that nothing was, or that nobody knows: report again. What was written before is
// answered as written, and counted once. A kind without a handler here goes by the engine's rules and by the policy for its name. An engine
// judges while it runs.
func (e *Engine) Judge(ctx context.Context, reports []Report) (answers []error, err error) {
	if !e.jury.enter() {
		return nil, notJudging("this engine does not run")
	}
	defer e.jury.under.Done()
	defer recovered(&err)
	if len(reports) == 0 {
		return nil, nil
	}
	ctx, done := e.callFor(ctx)
	defer done()
	if err := e.untilRuled(ctx); err != nil {
		return nil, err
	}
	var outcomes []*outcome
	var settlements []holdfast.Settlement
	var which []int
	for i := range reports {
		o := e.reported(&reports[i])
		s := e.settlement(o)
		if !e.jury.recalls(o) {
			outcomes, settlements, which = append(outcomes, o), append(settlements, s), append(which, i)
		}
	}
	written, err := e.judgeNew(ctx, outcomes, settlements)
	if err != nil {
		return nil, err
	}
	answers = make([]error, len(reports))
	for n, i := range which {
		answers[i] = written[n]
	}
	return answers, nil
}

// judgeNew writes down what was not known to be written.
func (e *Engine) judgeNew(ctx context.Context, outcomes []*outcome, settlements []holdfast.Settlement) ([]error, error) {
	if len(outcomes) == 0 {
		return nil, nil
	}
	if err := e.hearProbes(ctx, outcomes, settlements); err != nil {
		return nil, err
	}
	answers, err := e.settleReports(ctx, settlements)
	if err != nil {
		return nil, err
	}
	e.settleSenseless(ctx, outcomes, answers)
	e.judged(outcomes, answers)
	return answers, nil
}

func notJudging(why string) error {
	return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: why + ": report to another server, or again in a moment; the lease is held for as long as it is renewed"}
}

// callFor is the context of a store call on somebody's behalf: it ends with theirs, after a lease, and when the engine gives the store up.
func (e *Engine) callFor(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, done := context.WithTimeout(ctx, e.cfg.Lease)
	stop := context.AfterFunc(e.keeping, done)
	return ctx, func() {
		stop()
		done()
	}
}

// untilRuled waits until the policy that was applied to the store is known, so that no report is judged by another one.
func (e *Engine) untilRuled(ctx context.Context) error {
	select {
	case <-e.ruled:
		return nil
	case <-ctx.Done():
		return notJudging("the policy in force is not known yet")
	}
}

// reported makes a report into an outcome on its way to be written. It is in nobody's book: whoever reports renews the lease.
func (e *Engine) reported(r *Report) *outcome {
	leases := []holdfast.Lease{r.Lease}
	a := e.attempts(leases, time.Now())[0]
	if a.kind == nil {
		e.jury.meet(a.lease.Kind)
	}
	o, now := r.Outcome, e.clock.now()
	a.rationed = r.Rationed && a.lease.Failures > 0
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
		// The lease tells the store's time. What is made of an attempt reckons from when it was asked for, by this process's.
		a.began = a.asked.Add(began.Sub(a.lease.AsOf))
	}
	a.outcome = outcome{attempt: a, Outcome: o}
	return &a.outcome
}

// ran reports whether something was at work when an attempt ended so.
func ran(event failure.Event) bool {
	switch event {
	case failure.Returned, failure.Panicked, failure.Exited, failure.TimedOut, failure.CancelledByRequest:
		return true
	}
	return false
}

// hearProbes lets the breakers judge failed calls, where that matters, while their leases are still held, and decides again as the engine's own
// attempts are decided. A lease that is lost already proves nothing.
func (e *Engine) hearProbes(ctx context.Context, outcomes []*outcome, settlements []holdfast.Settlement) error {
	var probes []*outcome
	var notes []holdfast.Note
	for _, o := range outcomes {
		if l := o.attempt.lease; e.needsBreaker(o) {
			probes, notes = append(probes, o), append(notes, holdfast.Note{Batch: l.Batch, Job: l.ID, Token: l.Token})
		}
	}
	if len(probes) == 0 {
		return nil
	}
	held, err := e.store.Note(ctx, notes) // one that says nothing asks only whether the lease is held
	if err != nil {
		return err
	}
	for i, o := range probes {
		if i < len(held) && held[i] == nil && e.jury.considers(o) {
			e.consider(o)
		}
	}
	e.hear()
	e.decideAgain(outcomes, settlements)
	return nil
}

func (e *Engine) settleReports(ctx context.Context, settlements []holdfast.Settlement) ([]error, error) {
	answers, err := e.store.Settle(ctx, settlements)
	if err == nil && len(answers) != len(settlements) {
		err = fmt.Errorf("the store gave %d answers to %d settlements", len(answers), len(settlements))
	}
	return answers, err
}

// settleSenseless settles as failures, once, what the store could not make sense of, so that no job hangs on it.
func (e *Engine) settleSenseless(ctx context.Context, outcomes []*outcome, answers []error) {
	var which []int
	var instead []holdfast.Settlement
	for i, answer := range answers {
		if senseless(answer) {
			which, instead = append(which, i), append(instead, e.unsettled(outcomes[i], answer))
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

// judged takes from what was written what it says about others, and tells about it. What is not news was told before.
func (e *Engine) judged(outcomes []*outcome, answers []error) {
	for i, o := range outcomes {
		if answers[i] == nil && e.jury.considers(o) {
			e.consider(o)
		}
		if answers[i] != nil || e.jury.tells(o) {
			e.report(o, answers[i])
		}
	}
	if e.control.capped.Load() { // what a limit counts is fewer now
		nudge(e.wakes)
	}
	nudge(e.happened)
	nudge(e.endings)
}

// An End is an attempt that has ended, as it was written down.
type End struct {
	Lease   *holdfast.Lease
	To      holdfast.State // Queued: it goes round again
	Charge  holdfast.Charge
	Failure *holdfast.Failure
	Attempt int           // its number in this generation
	Left    int           // with a failure: how many more its policy would have given it
	Took    time.Duration // 0 when it never started
	Delay   time.Duration // with Queued: until the next one

	Throttled bool // with Queued: the other side asked to come back later, and no attempt was spent
}

// end tells what was written of an outcome.
func (o *outcome) end() End {
	v, lease := &o.verdict, o.attempt.lease
	end := End{Lease: lease, To: v.To, Charge: v.Charge, Failure: v.Failure, Attempt: numberOf(lease), Took: o.Took, Delay: v.Delay, Throttled: v.Throttled}
	if v.Charge == holdfast.ChargeFailure {
		end.Left = max(0, v.Limit-lease.Failures-1)
	}
	return end
}
