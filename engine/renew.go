package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A leaseKeeper keeps the leases of this worker: it renews them, stops handlers whose leases are lost, and abandons handlers that do not stop.
type leaseKeeper struct {
	*core
	leases   *leaseTable
	outcomes *outcomeQueue
	runner   *runner
	presence *presence
}

// renew renews all leases in one call, and stops the handlers of jobs that the store reports as lost or cancelled. It runs until the last settlement is
// written, also while the engine drains.
//
// It runs at every third of the lease, so a lease survives one failed renewal. A call that takes longer than a third is given up. It also keeps the
// presence of this worker up to date.
func (k *leaseKeeper) renew(context.Context) error {
	return errors.Join(k.renewOnce(), k.presence.renew())
}

// renewOnce makes one call. The trusted time counts from before the call, so it is never later than the expiry that the store sets. It is extended for
// every batch in the call, also if the store reports jobs of it as lost: those attempts are stopped below.
func (k *leaseKeeper) renewOnce() error {
	renewals, listed := k.leases.renewals()
	if len(renewals) == 0 {
		return nil
	}
	ctx, done := k.storeContext(k.cfg.Lease / 3)
	defer done()
	asked := time.Now()
	answer, err := k.store.Renew(ctx, renewals, k.cfg.Lease)
	if err != nil {
		return err
	}
	k.leases.renewed(renewals, k.cfg.trustedUntil(asked))
	k.stopAll(listed, slices.DeleteFunc(answer.Lost, func(id holdfast.ID) bool {
		return listed[id] != nil && listed[id].completion.Load() != nil // its handler may just have completed the job in a transaction
	}), holdfast.ErrLeaseLost)
	k.stopAll(listed, answer.Cancelling, ErrCancelled)
	return nil
}

// leave tells the store that this worker is leaving.
func (k *leaseKeeper) leave() error { return k.presence.present(0) }

// stopAll stops the attempts at the jobs that the store named. listed holds the attempts as they were when the store was asked, so a later attempt at the
// same job, claimed while the store answered, is not stopped by mistake.
func (k *leaseKeeper) stopAll(listed map[holdfast.ID]*attempt, named []holdfast.ID, cause error) {
	for _, id := range named {
		a := listed[id]
		if a != nil && k.leases.stop(a, cause) {
			k.outcomes.add(a, interruption(cause))
		}
	}
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
