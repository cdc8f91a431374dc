package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

	RetryReserved bool // this lease was returned by ReserveRetries
}

// remoteReports settles what remote workers report, by the same code as the settler. It is safe for concurrent use.
type remoteReports struct {
	*core
	policies  *policies
	budgets   *ownerBudgets
	breakers  *breakers
	attempts  *attemptMaker
	settler   *settler
	announcer *announcer
	seen      seenReports

	inProgress sync.WaitGroup // calls of settle and reserveRetries
	mu         sync.Mutex
	accepting  bool // the engine runs
}

// start lets begin succeed.
func (r *remoteReports) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accepting = true
}

// begin registers a call, if the engine runs. The caller calls inProgress.Done when it has ended.
func (r *remoteReports) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.accepting {
		r.inProgress.Add(1)
	}
	return r.accepting
}

// stop refuses further reports and waits for those in progress. If they take longer than within, their store calls are cancelled.
func (r *remoteReports) stop(within time.Duration) {
	r.mu.Lock()
	r.accepting = false
	r.mu.Unlock()
	if !waitFor(&r.inProgress, within) {
		r.cancelStore()
		r.inProgress.Wait()
	}
}

// settle does what Engine.SettleReports promises.
func (r *remoteReports) settle(ctx context.Context, reports []RemoteReport) (answers []error, err error) {
	if !r.begin() {
		return nil, notAccepting("this engine is not running")
	}
	defer r.inProgress.Done()
	defer recoverTo(&err)
	if len(reports) == 0 {
		return nil, nil
	}
	ctx, done := r.callerContext(ctx)
	defer done()
	if err := r.waitForPolicy(ctx); err != nil {
		return nil, err
	}
	var outcomes []*outcome
	var settlements []store.Settlement
	var which []int
	for i := range reports {
		o := r.outcomeOf(&reports[i])
		s := r.settler.prepareSettlement(o)
		if !r.seen.isRepeat(o) {
			outcomes, settlements, which = append(outcomes, o), append(settlements, s), append(which, i)
		}
	}
	written, err := r.settleNew(ctx, outcomes, settlements)
	if err != nil {
		return nil, err
	}
	answers = make([]error, len(reports))
	for n, i := range which {
		answers[i] = written[n]
	}
	return answers, nil
}

// reserveRetries does what Engine.ReserveRetries promises.
func (r *remoteReports) reserveRetries(ctx context.Context, leases []store.Lease) []store.Lease {
	if !r.policies.active.hasBudgets.Load() || !r.begin() {
		return leases
	}
	defer r.inProgress.Done()
	var allowed []store.Lease
	var refused []RemoteReport
	for i := range leases {
		if o, no := r.budgets.reserve(&attempt{lease: &leases[i]}); no {
			refused = append(refused, RemoteReport{Lease: leases[i], Outcome: o})
		} else {
			allowed = append(allowed, leases[i])
		}
	}
	if len(refused) == 0 {
		return leases
	}
	if _, err := r.settle(ctx, refused); err != nil {
		r.cfg.Log.Warn("retries beyond a budget could not be released; they wait until their leases expire", "jobs", len(refused), "error", err)
	}
	return allowed
}

// settleNew settles the outcomes that are not known to be settled, and records their effects.
func (r *remoteReports) settleNew(ctx context.Context, outcomes []*outcome, settlements []store.Settlement) ([]error, error) {
	if len(outcomes) == 0 {
		return nil, nil
	}
	if err := r.updateBreakersFirst(ctx, outcomes, settlements); err != nil {
		return nil, err
	}
	answers, err := r.settleOnce(ctx, settlements)
	if err != nil {
		return nil, err
	}
	r.settleRejected(ctx, outcomes, answers)
	r.recordSettled(outcomes, answers)
	return answers, nil
}

func notAccepting(why string) error {
	return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: why + ": report to another server, or again in a moment; renew the lease meanwhile"}
}

// waitForPolicy waits until the policy in the store is known, so that no report is decided by another one.
func (r *remoteReports) waitForPolicy(ctx context.Context) error {
	select {
	case <-r.policies.known:
		return nil
	case <-ctx.Done():
		return notAccepting("the policy in force is not known yet")
	}
}

// outcomeOf makes an outcome of a report. It is not in the lease table: the remote worker renews the lease.
func (r *remoteReports) outcomeOf(report *RemoteReport) *outcome {
	leases := []store.Lease{report.Lease}
	a := r.attempts.newAttempts(leases, time.Now())[0]
	if a.kind == nil {
		r.policies.remoteKinds.add(a.lease.Kind)
	}
	o, now := report.Outcome, r.clock.now()
	a.retryReserved = report.RetryReserved && a.lease.Failures > 0
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
func (r *remoteReports) updateBreakersFirst(ctx context.Context, outcomes []*outcome, settlements []store.Settlement) error {
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
	held, err := r.store.Note(ctx, notes) // an empty note only checks that the lease is held
	if err != nil {
		return err
	}
	for i, o := range probes {
		if i < len(held) && held[i] == nil && r.seen.countOnce(o) {
			r.settler.recordEffects(o)
		}
	}
	r.breakers.updateNow()
	r.settler.redecide(outcomes, settlements)
	return nil
}

// settleOnce makes one call. Unlike the engine, a remote worker repeats its report itself.
func (r *remoteReports) settleOnce(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	answers, err := r.store.Settle(ctx, settlements)
	if err == nil && len(answers) != len(settlements) {
		err = fmt.Errorf("the store gave %d answers to %d settlements", len(answers), len(settlements))
	}
	return answers, err
}

// settleRejected settles the outcomes whose settlements the store rejected as invalid, once, as failures, so that no job stays leased for ever. It
// replaces their answers.
func (r *remoteReports) settleRejected(ctx context.Context, outcomes []*outcome, answers []error) {
	var which []int
	var instead []store.Settlement
	for i, answer := range answers {
		if rejected(answer) {
			which, instead = append(which, i), append(instead, r.settler.settleRejection(outcomes[i], answer))
		}
	}
	if len(which) == 0 {
		return
	}
	again, err := r.settleOnce(ctx, instead)
	for n, i := range which {
		if answers[i] = err; err == nil {
			answers[i] = again[n]
		}
	}
}

// recordSettled records the effects of settled outcomes and announces them, once for each attempt, however often it is reported.
func (r *remoteReports) recordSettled(outcomes []*outcome, answers []error) {
	for i, o := range outcomes {
		if answers[i] == nil && r.seen.countOnce(o) {
			r.settler.recordEffects(o)
		}
		if answers[i] != nil || r.seen.announceOnce(o) {
			r.announcer.announce(o, answers[i])
		}
	}
	if r.limited.hasCap.Load() { // the settled jobs no longer count towards a limit
		signal(r.signals.claim)
	}
	signal(r.signals.feed)
	signal(r.signals.groups)
}
