package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// renew renews all leases in one call, and stops the handlers of jobs that the store reports as lost or cancelled. It runs until the last settlement is
// written, also while the engine drains.
//
// It runs at every third of the lease, so a lease survives one failed renewal. A call that takes longer than a third is given up. If a quarter of the lease
// has passed since the last time, it also announces the presence of this worker, with which the store learns the dependencies of its kinds.
func (e *Engine) renew(context.Context) error {
	err := e.renewOnce()
	if since := time.Since(e.presentedAt); since >= e.cfg.Lease/4 || e.presentedAt.IsZero() {
		presentErr := e.present(e.cfg.Lease)
		if presentErr == nil && e.presenceKnown.CompareAndSwap(false, true) {
			signal(e.signals.claim)
		}
		err = errors.Join(err, presentErr)
		e.presentedAt = time.Now()
	}
	return err
}

// renewOnce makes one call. The trusted time counts from before the call, so it is never later than the expiry that the store sets. It is extended for
// every batch in the call, also if the store reports jobs of it as lost: those attempts are stopped below.
func (e *Engine) renewOnce() error {
	renewals, listed := e.leases.renewals()
	if len(renewals) == 0 {
		return nil
	}
	ctx, done := e.storeContext(e.cfg.Lease / 3)
	defer done()
	asked := time.Now()
	answer, err := e.store.Renew(ctx, renewals, e.cfg.Lease)
	if err != nil {
		return err
	}
	e.leases.renewed(renewals, e.cfg.trustedUntil(asked))
	e.stopAll(listed, answer.Lost, holdfast.ErrLeaseLost)
	e.stopAll(listed, answer.Cancelling, ErrCancelled)
	return nil
}

// stopAll stops the attempts at the jobs that the store named. listed holds the attempts as they were when the store was asked, so a later attempt at the
// same job, claimed while the store answered, is not stopped by mistake.
func (e *Engine) stopAll(listed map[holdfast.ID]*attempt, named []holdfast.ID, cause error) {
	for _, id := range named {
		a := listed[id]
		if a != nil && e.leases.stop(a, cause) {
			e.outcomes.add(a, interruption(cause))
		}
	}
}

// present announces to the store that this worker is alive. The announcement is valid for that time; 0 means that the worker is leaving.
func (e *Engine) present(validFor time.Duration) error {
	ctx, done := e.storeContext(e.cfg.Lease / 3)
	defer done()
	policy := e.policies.active.following.Load()
	return e.store.ReportWorker(ctx, store.WorkerInfo{
		Worker: e.worker, Queues: e.cfg.Queues, Kinds: e.registry.names, Depends: e.registry.depends(),
		Version: e.cfg.Version, Slots: e.cfg.Slots, Codes: e.policies.publishedCodes, Policy: policy.version, Misses: policy.misses, For: validFor,
	})
}

// renewals lists all batches for the store, each with the jobs that run and those that wait for a slot. A lease whose outcome is known is renewed with its
// batch but not listed: its settlement will show whether it is still held.
func (t *leaseTable) renewals() ([]store.Renewal, map[holdfast.ID]*attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]store.Renewal, 0, len(t.batches))
	index := make(map[holdfast.ID]int, len(t.batches))
	for id := range t.batches {
		index[id] = len(all)
		all = append(all, store.Renewal{Batch: id})
	}
	listed := make(map[holdfast.ID]*attempt, t.running+t.prefetched)
	for a := range t.held {
		of := &all[index[a.lease.Batch]]
		switch a.phase {
		case phaseRunning:
			of.Running = append(of.Running, a.lease.ID)
		case phaseWaiting:
			of.Waiting = append(of.Waiting, a.lease.ID)
		default:
			continue
		}
		listed[a.lease.ID] = a
	}
	return all, listed
}

// renewed extends the trusted time of the batches that the store was asked to renew. Batches that were settled meanwhile are no longer in the table.
func (t *leaseTable) renewed(renewals []store.Renewal, trustedUntil time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range renewals {
		if of := t.batches[r.Batch]; of != nil {
			of.trustedUntil = trustedUntil
		}
	}
}
