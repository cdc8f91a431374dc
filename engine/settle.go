package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// A settler decides what the outcome of each attempt means and writes the settlements, which end the leases.
type settler struct {
	*core
	policies  *policies
	gate      *breakerGate
	breakers  *breakers
	budgets   *ownerBudgets
	deadlines *startDeadlines
	announcer *announcer
	leases    *leaseTable
	outcomes  *outcomeQueue
}

// settle settles the outcomes of this engine's attempts, in four steps:
//
//  1. prepareSettlement decides what each outcome means (failure.Decide) and makes a settlement of it.
//  2. recordEffects passes on what the verdict means for others: the breaker of the dependency, the budget of the owner, the start deadline.
//  3. Where a breaker may change the verdict, the breakers are updated first and redecide decides again.
//  4. writeSettlements writes the settlements until the store has answered, which ends the leases.
//
// It is the only goroutine that ends leases of local attempts; remote attempts take the same steps in remoteReports.settle. It returns when the queue is closed and no
// lease is held, or when the engine has given up on the store. The second condition matters: a handler may have returned while its outcome is not
// in the queue yet, and its lease must not be left to expire.
func (s *settler) settle() {
	for {
		outcomes := s.outcomes.take(s.storeCtx)
		if len(outcomes) == 0 {
			if _, left := s.leases.busy(); left == 0 || s.storeCtx.Err() != nil {
				return
			}
			select { // a handler has returned and its outcome is about to be queued
			case <-s.outcomes.ready:
			case <-s.storeCtx.Done():
			}
			continue
		}
		settlements := make([]store.Settlement, len(outcomes))
		for i, o := range outcomes {
			settlements[i] = s.prepareSettlement(o)
			s.recordEffects(o)
		}
		if slices.ContainsFunc(outcomes, needsBreaker) {
			s.breakers.updateNow()
			s.redecide(outcomes, settlements)
		}
		s.writeSettlements(outcomes, settlements)
	}
}

// close lets settle return when no lease is held any more.
func (s *settler) close() { s.outcomes.close() }

// prepareSettlement decides what an outcome means, stores the verdict in it, and returns the settlement to write. It changes nothing else, so it may be
// repeated for an outcome that is decided again.
func (s *settler) prepareSettlement(o *outcome) store.Settlement {
	o.Roll = rand.Float64()
	s.gate.markProbe(o)
	o.verdict = s.decide(o)
	if o.Event == failure.Interrupted {
		o.verdict.Why = whyInterrupted(o.Err, o.verdict.Why)
	}
	made := o.verdict.Settlement(*o.attempt.lease, o.Outcome)
	made.Version = s.cfg.Version
	if made.Confirm = o.confirms(); made.Confirm {
		made.Enqueue = nil // enqueued by the transaction of the handler
	}
	return made
}

// decide calls failure.Decide. If a rule, a backoff or an error value of the application panics, it decides again without the application's rules, so
// that the panic cannot stop the settlements of other jobs.
func (s *settler) decide(o *outcome) (v failure.Verdict) {
	rules := s.policies.rulesFor(o)
	defer func() {
		if thrown := recover(); thrown != nil {
			s.logIgnored("settle", fmt.Errorf("a rule, backoff or error of kind %q panicked and was ignored: %v", o.attempt.lease.Kind, thrown))
			o.Err = fmt.Errorf("while the error was classified: %v", thrown)
			v = failure.Decide(failure.Rules{Taxonomy: rules.Taxonomy}, *o.attempt.lease, o.Outcome)
		}
	}()
	return failure.Decide(rules, *o.attempt.lease, o.Outcome)
}

// recordEffects passes on what a verdict means beyond its job: a good or bad call for the breaker of the dependency, a hold that the handler asked for,
// the cost for the owner's budget, and the deadline by which the next attempt must start. It must be called once for each attempt.
func (s *settler) recordEffects(o *outcome) {
	s.gate.observe(o)
	if o.attempt.lease.Owner != "" {
		s.budgets.charge(o)
	}
	if o.verdict.StartWithin > 0 {
		s.deadlines.extend(o.verdict.StartWithin)
	}
}

// redecide decides again on the outcomes that needed the breakers, now that these are up to date.
func (s *settler) redecide(outcomes []*outcome, settlements []store.Settlement) {
	for i, o := range outcomes {
		if needsBreaker(o) {
			settlements[i] = s.prepareSettlement(o)
		}
	}
}

// whyInterrupted returns the reason of an interruption that only the engine knows, and otherwise if there is none.
func whyInterrupted(cause error, otherwise string) string {
	for _, known := range []error{errNoSlot, errClaimLost, errSlotsChanged} {
		if errors.Is(cause, known) {
			return "released: " + known.Error()
		}
	}
	if errors.Is(cause, holdfast.ErrLeaseLost) {
		return "released: " + errLeaseInDoubt.Error()
	}
	return otherwise
}

// The reasons besides a stop for which the engine releases a job.
var (
	errNoSlot       = errors.New("no slot became free for it in time")
	errClaimLost    = errors.New("the store's answer to the claim never reached the worker")
	errLeaseInDoubt = errors.New("the worker could not renew its lease in time")
	errSlotsChanged = errors.New("the worker's queues or slots were changed")
)

// writeSettlements writes settlements until the store has answered. Repeating a call is safe: the store answers a settlement that it has already applied
// as applied, and applies it once. The engine keeps renewing the leases meanwhile. If the store is unavailable for longer than a lease and another
// worker then reclaims the job, the store refuses the settlement with ErrLeaseLost: nothing is overwritten.
func (s *settler) writeSettlements(outcomes []*outcome, settlements []store.Settlement) {
	for tries := 1; ; tries++ {
		answers, err := s.settleOnce(settlements, tries)
		if err == nil {
			again, settlements := s.handleAnswers(outcomes, answers)
			if len(again) > 0 {
				s.writeSettlements(again, settlements)
			}
			return
		}
		s.logRetry("settle", err)
		if !sleep(s.storeCtx, backoff(tries)) {
			return
		}
	}
}

// settleOnce makes one call. Each try has a longer timeout than the one before, up to ten leases, so that a slow store eventually answers.
func (s *settler) settleOnce(settlements []store.Settlement, tries int) (answers []error, err error) {
	ctx, done := s.storeContext(s.cfg.Lease * time.Duration(min(tries, 10)))
	defer done()
	defer recoverTo(&err)
	answers, err = s.store.Settle(ctx, settlements)
	if err == nil && len(answers) != len(settlements) {
		err = fmt.Errorf("the store gave %d answers to %d settlements", len(answers), len(settlements))
	}
	return answers, err
}

// handleAnswers removes the settled leases and announces them. It returns the outcomes that have to be settled in another way (decideAgain).
func (s *settler) handleAnswers(outcomes []*outcome, answers []error) (again []*outcome, instead []store.Settlement) {
	applied := outcomes[:0:0]
	refusals := answers[:0:0]
	for i := range outcomes {
		o, answer := outcomes[i], answers[i]
		if other, redo := s.decideAgain(o, answer); redo {
			again, instead = append(again, o), append(instead, other)
			continue
		}
		applied, refusals = append(applied, o), append(refusals, answer)
	}
	if s.leases.removeSettled(applied) || s.limited.hasCap.Load() { // the settled jobs no longer count towards a limit
		signal(s.signals.claim)
	}
	signal(s.signals.feed)
	signal(s.signals.groups)
	for i := range applied {
		s.announcer.announce(applied[i], refusals[i])
	}
	return again, instead
}

// rejected reports whether the store refused a settlement for another reason than a lost lease: the settlement itself is invalid.
func rejected(answer error) bool { return answer != nil && !errors.Is(answer, holdfast.ErrLeaseLost) }

// settleRejection replaces an outcome whose settlement the store rejected: the rejection is the outcome now, and it is decided like any other.
func (s *settler) settleRejection(o *outcome, rejection error) store.Settlement {
	o.Outcome = failure.Outcome{Event: failure.Unsettleable, Err: rejection, Took: o.Took, Age: o.Age}
	return s.prepareSettlement(o)
}
