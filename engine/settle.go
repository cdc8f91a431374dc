package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// maxSettle bounds one call to the store.
const maxSettle = 500

// An outcome is what became of an attempt, on its way to be written.
type outcome struct {
	attempt *attempt
	failure.Outcome
	verdict failure.Verdict
}

// An outbox gathers outcomes while the store answers the last call. There is no timer: a lone outcome is written at once,
// and a busy engine's outcomes are written by the hundred.
type outbox struct {
	mu     sync.Mutex
	all    []*outcome
	closed bool
	sign   chan struct{}
}

func (b *outbox) put(o *outcome) {
	b.mu.Lock()
	b.all = append(b.all, o)
	b.mu.Unlock()
	nudge(b.sign)
}

// close says that no more will come. What is in the outbox is still taken.
func (b *outbox) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	nudge(b.sign)
}

// take waits for outcomes and answers with the oldest; with none once the outbox is closed and empty, or ctx has ended.
func (b *outbox) take(ctx context.Context) []*outcome {
	for {
		b.mu.Lock()
		n := min(len(b.all), maxSettle)
		taken := b.all[:n:n]
		b.all = b.all[n:]
		closed := b.closed
		b.mu.Unlock()
		if n > 0 || closed || ctx.Err() != nil {
			return taken
		}
		select {
		case <-b.sign:
		case <-ctx.Done():
		}
	}
}

// settle is the last station: it alone asks failure.Decide, and it alone ends leases. It works until the outbox is closed
// and nothing is held any more, or the engine gives the store up.
func (e *Engine) settle() {
	for {
		outcomes := e.outbox.take(e.keeping)
		if len(outcomes) == 0 {
			if _, left := e.book.busy(); left == 0 || e.keeping.Err() != nil {
				return
			}
			select { // a handler has returned, and what became of its job is not in the outbox yet
			case <-e.outbox.sign:
			case <-e.keeping.Done():
			}
			continue
		}
		settlements := make([]holdfast.Settlement, len(outcomes))
		for i := range outcomes {
			settlements[i] = e.decide(outcomes[i])
		}
		if slices.ContainsFunc(outcomes, e.needsBreaker) {
			e.hear()
			e.decideAgain(outcomes, settlements)
		}
		e.write(outcomes, settlements)
	}
}

// decide turns an outcome into a settlement, and takes from it what it says about others.
func (e *Engine) decide(o *outcome) holdfast.Settlement {
	s := e.settlement(o)
	e.consider(o)
	return s
}

// settlement turns an outcome into a settlement.
func (e *Engine) settlement(o *outcome) holdfast.Settlement {
	o.Roll = rand.Float64()
	e.probing(o)
	o.verdict = e.verdict(o)
	if o.Event == failure.Interrupted {
		o.verdict.Why = whyInterrupted(o.Err, o.verdict.Why)
	}
	s := o.verdict.Settlement(*o.attempt.lease, o.Outcome)
	s.Version = e.cfg.Version
	return s
}

// consider takes from a verdict what it says about the attempt's dependency and owner, and what it promises.
func (e *Engine) consider(o *outcome) {
	e.observe(o)
	if o.attempt.lease.Owner != "" {
		e.charge(o)
	}
	if o.verdict.Within > 0 {
		e.promises.made(o.verdict.Within)
	}
}

// whyInterrupted tells the story of an interruption other than a stop, which only the engine knows.
func whyInterrupted(cause error, otherwise string) string {
	for _, known := range []error{errNoSlot, errUnheard} {
		if errors.Is(cause, known) {
			return "handed back for free: " + known.Error()
		}
	}
	if errors.Is(cause, holdfast.ErrLeaseLost) {
		return "handed back for free: " + errDoubtful.Error()
	}
	return otherwise
}

// What interrupts an attempt besides a stop.
var (
	errNoSlot   = errors.New("no slot became free for it")
	errUnheard  = errors.New("the answer to its claim never arrived")
	errDoubtful = errors.New("its worker could not be sure of its lease any more")
)

// verdict asks failure.Decide. An application's own rule, backoff or error that panics is left out, so that it
// cannot stop the others' settlements.
func (e *Engine) verdict(o *outcome) (v failure.Verdict) {
	rules := e.rulesFor(o)
	defer func() {
		if thrown := recover(); thrown != nil {
			e.complain("settle", fmt.Errorf("a rule, backoff or error of kind %q panicked and was left out: %v", o.attempt.lease.Kind, thrown))
			o.Err = fmt.Errorf("while the error was classified: %v", thrown)
			v = failure.Decide(failure.Rules{Taxonomy: rules.Taxonomy}, *o.attempt.lease, o.Outcome)
		}
	}()
	return failure.Decide(rules, *o.attempt.lease, o.Outcome)
}

// write asks the store until it answers. Asking again is safe: what was applied before is answered as applied. The leases
// are renewed meanwhile, so a store that is away for long loses nothing but time.
func (e *Engine) write(outcomes []*outcome, settlements []holdfast.Settlement) {
	for tries := 1; ; tries++ {
		answers, err := e.settleOnce(settlements, tries)
		if err == nil {
			again, settlements := e.answered(outcomes, answers)
			if len(again) > 0 {
				e.write(again, settlements)
			}
			return
		}
		e.complain("settle", err)
		if !sleep(e.keeping, backoff(tries)) {
			return
		}
	}
}

// settleOnce gives a slow store more time at each try, so that it cannot be cut short for ever.
func (e *Engine) settleOnce(settlements []holdfast.Settlement, tries int) (answers []error, err error) {
	ctx, done := e.call(e.cfg.Lease * time.Duration(min(tries, 10)))
	defer done()
	defer recovered(&err)
	answers, err = e.store.Settle(ctx, settlements)
	if err == nil && len(answers) != len(settlements) {
		err = fmt.Errorf("the store gave %d answers to %d settlements", len(answers), len(settlements))
	}
	return answers, err
}

// answered closes the book on what was settled, and answers with what must be settled otherwise: a settlement the store
// calls senseless becomes a failure, once, so that no job hangs on it.
func (e *Engine) answered(outcomes []*outcome, answers []error) (again []*outcome, instead []holdfast.Settlement) {
	applied := outcomes[:0:0]
	refusals := answers[:0:0]
	for i := range outcomes {
		o, answer := outcomes[i], answers[i]
		if senseless(answer) && o.Event != failure.Unsettleable {
			again, instead = append(again, o), append(instead, e.unsettled(o, answer))
			continue
		}
		applied, refusals = append(applied, o), append(refusals, answer)
	}
	if e.book.settled(applied) || e.control.capped.Load() { // what a limit counts is fewer now
		nudge(e.wakes)
	}
	nudge(e.happened)
	nudge(e.endings)
	for i := range applied {
		e.report(applied[i], refusals[i])
	}
	return again, instead
}

// senseless reports whether the store refused a settlement although its lease is held.
func senseless(answer error) bool { return answer != nil && !errors.Is(answer, holdfast.ErrLeaseLost) }

// unsettled decides again about an attempt whose settlement the store refused: the refusal is its outcome now.
func (e *Engine) unsettled(o *outcome, refusal error) holdfast.Settlement {
	o.Outcome = failure.Outcome{Event: failure.Unsettleable, Err: refusal, Took: o.Took, Age: o.Age}
	return e.settlement(o)
}
