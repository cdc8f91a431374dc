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

	known       atomic.Bool // the store knows this worker and which dependencies its kinds call
	presentedAt time.Time   // when the worker last announced itself; used by the duty "renew" only
}

// renew announces this worker if a quarter of the lease has passed since the last time.
func (p *presence) renew() error {
	if !p.presentedAt.IsZero() && time.Since(p.presentedAt) < p.cfg.Lease/4 {
		return nil
	}
	err := p.present(p.cfg.Lease)
	if err == nil && p.known.CompareAndSwap(false, true) {
		signal(p.signals.claim)
	}
	p.presentedAt = time.Now()
	return err
}

// present announces to the store that this worker is alive. The announcement is valid for that time; 0 means that the worker is leaving.
func (p *presence) present(validFor time.Duration) error {
	ctx, done := p.storeContext(p.cfg.Lease / 3)
	defer done()
	policy := p.policies.active.following.Load()
	return p.store.ReportWorker(ctx, store.WorkerInfo{
		Worker: p.worker, Queues: p.cfg.Queues, Kinds: p.registry.names, Depends: p.registry.depends(),
		Version: p.cfg.Version, Slots: p.cfg.Slots, Codes: p.policies.publishedCodes, Policy: policy.version, Misses: policy.misses, For: validFor,
	})
}
