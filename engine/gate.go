package engine

import (
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// gate stops what must not run, and says what became of it instead.
func (e *Engine) gate(a *attempt) (o failure.Outcome, refused bool) {
	lease := a.lease
	switch {
	case lease.Corrupt != "":
		return failure.Outcome{Event: failure.Unreadable, Err: errors.New(lease.Corrupt)}, true
	case !lease.ExpireAt.IsZero() && !lease.AsOf.Add(a.elapsed()).Before(lease.ExpireAt):
		return failure.Outcome{Event: failure.Expired}, true
	case a.kind == nil:
		return failure.Outcome{Event: failure.Unhandled}, true
	case !e.book.trusts(a, time.Now()):
		return failure.Outcome{Event: failure.Interrupted, Err: holdfast.ErrLeaseLost}, true
	case a.dep != nil || lease.Dependency != "":
		return e.circuitGate(a)
	}
	return failure.Outcome{}, false
}

// circuitGate stops what would call a dependency whose circuit is open, or out of turn. All else the claim has decided already.
func (e *Engine) circuitGate(a *attempt) (o failure.Outcome, refused bool) {
	d := e.ownOf(a)
	if d == nil {
		return o, false
	}
	s := d.sight.Load()
	if s == nil || !s.open() {
		return e.turnGate(a, d, s)
	}
	if !s.fast && a.lease.AsOf.After(s.since.Add(circuitRead)) {
		// The store let it through, so the circuit may have moved on since this process last looked.
		e.outdated.Store(true)
		nudge(e.called)
	}
	return s.refusal(), true
}

// refusal is what becomes of an attempt that would call an open circuit: it fails at once, or goes back for free.
func (s *sight) refusal() failure.Outcome {
	if s.fast {
		return failure.Outcome{Event: failure.FastFailed, Code: s.code, Err: errors.New(s.text)}
	}
	return failure.Outcome{Event: failure.Held, Err: errors.New(s.text)}
}

// withdraw takes out what waits for a slot to call a dependency.
func (b *book) withdraw(d *dependency) (withdrawn []*attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.queue {
		if a.phase == waiting && (a.dep == d || a.lease.Dependency == d.name) {
			withdrawn = append(withdrawn, a)
		}
	}
	b.conclude(withdrawn)
	b.ahead -= len(withdrawn)
	return withdrawn
}

// trusts reports whether a's lease is surely still ours.
func (b *book) trusts(a *attempt, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(a.batch.trusted)
}
