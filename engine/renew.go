package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
)

// renew extends everything in the book in one call, and obeys what it learns: lost jobs are stopped, cancelled ones too. It
// works until the last settlement is written, also while the engine drains.
func (e *Engine) renew(context.Context) error {
	err := e.renewOnce()
	if since := time.Since(e.presented); since >= e.cfg.Lease/4 || e.presented.IsZero() {
		said := e.present(e.cfg.Lease)
		if said == nil && e.declared.CompareAndSwap(false, true) {
			nudge(e.wakes)
		}
		err = errors.Join(err, said)
		e.presented = time.Now()
	}
	return err
}

func (e *Engine) renewOnce() error {
	renewals, listed := e.book.renewals()
	if len(renewals) == 0 {
		return nil
	}
	ctx, done := e.call(e.cfg.Lease / 3)
	defer done()
	asked := time.Now()
	answer, err := e.store.Renew(ctx, renewals, e.cfg.Lease)
	if err != nil {
		return err
	}
	e.book.renewed(renewals, e.trust(asked))
	e.stopAll(listed, answer.Lost, holdfast.ErrLeaseLost)
	e.stopAll(listed, answer.Cancelling, ErrCancelled)
	return nil
}

// stopAll stops the listed attempts the store named. The list is the one the store was asked about, so a job that was
// settled and claimed anew meanwhile is not mistaken for its former self.
func (e *Engine) stopAll(listed map[holdfast.ID]*attempt, named []holdfast.ID, cause error) {
	for _, id := range named {
		a := listed[id]
		if a != nil && e.book.stop(a, cause) {
			e.end(a, interruption(cause))
		}
	}
}

// present tells the store that this worker is alive and for how long to believe it; 0 says it is leaving.
func (e *Engine) present(believe time.Duration) error {
	ctx, done := e.call(e.cfg.Lease / 3)
	defer done()
	policy := e.rulings.following.Load()
	return e.store.Present(ctx, holdfast.Presence{
		Worker: e.worker, Queues: e.cfg.Queues, Kinds: e.handled, Depends: e.depends(),
		Version: e.cfg.Version, Slots: e.cfg.Slots, Codes: e.published, Policy: policy.version, Misses: policy.misses, For: believe,
	})
}

// depends says which kinds call what.
func (e *Engine) depends() map[string]string {
	all := make(map[string]string)
	for name, k := range e.kinds {
		if k.rules.Dependency != "" {
			all[name] = k.rules.Dependency
		}
	}
	return all
}

// renewals lists the book for the store. A lease whose outcome is known is renewed with its batch and not listed: whether
// it is still ours is for its settlement to find out.
func (b *book) renewals() ([]holdfast.Renewal, map[holdfast.ID]*attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]holdfast.Renewal, 0, len(b.batches))
	index := make(map[holdfast.ID]int, len(b.batches))
	for id := range b.batches {
		index[id] = len(all)
		all = append(all, holdfast.Renewal{Batch: id})
	}
	listed := make(map[holdfast.ID]*attempt, b.working+b.ahead)
	for a := range b.held {
		of := &all[index[a.lease.Batch]]
		switch a.phase {
		case working:
			of.Running = append(of.Running, a.lease.ID)
		case waiting:
			of.Waiting = append(of.Waiting, a.lease.ID)
		default:
			continue
		}
		listed[a.lease.ID] = a
	}
	return all, listed
}

// renewed extends the trust in the batches the store was asked to renew.
func (b *book) renewed(renewals []holdfast.Renewal, trusted time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range renewals {
		if of := b.batches[r.Batch]; of != nil {
			of.trusted = trusted
		}
	}
}
