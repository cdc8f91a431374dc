package engine

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// maxSweep bounds what one sweep takes over at a time.
const maxSweep = 200

// reclaim takes over what lost workers left behind, and lets failure.Decide say what becomes of it.
func (e *Engine) reclaim(ctx context.Context) error {
	return e.sweep(ctx, e.store.Reclaim, func(a *attempt) failure.Outcome {
		lease := a.lease
		switch {
		case lease.Corrupt != "":
			o, _ := e.gate(a)
			return o
		case lease.Lost == e.worker && !e.book.holds(lease.ID):
			// A claim of our own whose answer never reached us: nothing was started.
			return failure.Outcome{Event: failure.Interrupted, Err: errUnheard}
		}
		o := failure.Outcome{Event: failure.Lost}
		if !lease.StartedAt.IsZero() {
			o.Took = max(0, lease.AsOf.Sub(lease.StartedAt))
		}
		return o
	})
}

// sweep takes leases over until there are none left, and settles each by what it is found to be. It goes no further ahead
// of the settlements than claiming does.
func (e *Engine) sweep(ctx context.Context, take func(context.Context, holdfast.Claim) ([]holdfast.Lease, error), judge func(*attempt) failure.Outcome) error {
	for ctx.Err() == nil && e.book.unsettled() < maxUnsettled {
		asked := time.Now()
		leases, err := e.take(take)
		if err != nil {
			return err
		}
		attempts := e.attempts(leases, asked)
		e.book.admitEnded(attempts, e.trust(asked))
		for _, a := range attempts {
			o := judge(a)
			e.end(a, o)
		}
		if len(leases) < maxSweep {
			return nil
		}
	}
	return nil
}

func (e *Engine) take(take func(context.Context, holdfast.Claim) ([]holdfast.Lease, error)) ([]holdfast.Lease, error) {
	ctx, done := e.call(e.cfg.Lease)
	defer done()
	return take(ctx, holdfast.Claim{Worker: e.worker, Limit: maxSweep, Lease: e.cfg.Lease})
}

// holds reports whether an attempt at this job is in the book with a handler of its own, or waits for one.
func (b *book) holds(id holdfast.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for a := range b.held {
		if a.lease.ID == id && a.lease.Lost == "" {
			return true
		}
	}
	return false
}

func (b *book) unsettled() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}
