package engine

import (
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// presence tells the store that this worker is alive, and with it the dependencies of its kinds.
type presence struct {
	*core
	registry *registry
	policies *policies
	leases   *leaseTable

	known       atomic.Bool // the store knows this worker and which dependencies its kinds call
	changed     atomic.Bool // the queues or slots are not as the worker last announced them
	presentedAt time.Time   // when the worker last announced itself; used by the duty "renew" only
}

// renew announces this worker if a quarter of the lease has passed since the last time, or its queues or slots have changed.
func (p *presence) renew() error {
	changed := p.changed.Swap(false)
	if !changed && !p.presentedAt.IsZero() && time.Since(p.presentedAt) < p.cfg.Lease/4 {
		return nil
	}
	err := p.present(p.cfg.Lease)
	if err == nil && p.known.CompareAndSwap(false, true) {
		signal(p.signals.claim)
	}
	if err != nil && changed {
		p.changed.Store(true)
	}
	p.presentedAt = time.Now()
	return err
}

// present announces to the store that this worker is alive. The announcement is valid for that time; 0 means that the worker is leaving.
func (p *presence) present(validFor time.Duration) error {
	ctx, done := p.storeContext(p.cfg.Lease / 3)
	defer done()
	policy := p.policies.active.following.Load()
	queues, slots := p.leases.reported()
	return p.store.ReportWorker(ctx, store.WorkerInfo{
		Worker: p.worker, Queues: queues, Kinds: p.registry.names, Depends: p.registry.depends(),
		Version: p.cfg.Version, Slots: slots, Codes: p.policies.publishedCodes, Policy: policy.version, Misses: policy.misses, For: validFor,
	})
}
