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
	}
	return failure.Outcome{}, false
}

// trusts reports whether a's lease is surely still ours.
func (b *book) trusts(a *attempt, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(a.batch.trusted)
}
