package engine

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast/store"
)

// maxUnsettled limits the outcomes that wait to be written. An engine whose store settles slowly claims nothing more until it has caught up.
const maxUnsettled = 4000

// A claimer asks the store for jobs when there are slots for them, and hands them to the runner.
type claimer struct {
	*core
	registry *registry
	policies *policies
	presence *presence
	attempts *attemptMaker
	leases   *leaseTable
	runner   *runner
	outcomes *outcomeQueue
}

// claim claims jobs until all slots are taken or the store has no more. A store may return fewer jobs than the limit although more are claimable,
// so after an answer that was at least half full the next free slot claims again instead of waiting for the interval.
func (c *claimer) claim(ctx context.Context) error {
	if len(c.registry.kinds) == 0 {
		return nil
	}
	if !c.presence.known.Load() || !c.policies.placed.Load() {
		return nil // the store must know the kinds' dependencies and the policy's limits before the first claim, or it would not hold jobs
	}
	if c.leases.hasShares() {
		return c.claimParts(ctx)
	}
	for ctx.Err() == nil {
		size := c.leases.claimSize(c.cfg.Prefetch)
		if size.limit == 0 {
			return nil
		}
		size.kinds = c.registry.names
		taken, err := c.claimOnce(size)
		if err != nil || taken < size.limit {
			c.leases.setWantMore(2*taken >= size.limit)
			return err
		}
	}
	return nil
}

// claimOnce makes one claim. A stop of the engine does not cancel it: jobs of a claim whose answer is lost stay leased to this worker, without
// running, until the lease expires. If the engine stops meanwhile, the jobs are released.
//
// The trusted time counts from before the call, so it is never later than the store's: the store sets the expiry after it got the request.
func (c *claimer) claimOnce(size claimSize) (int, error) {
	ctx, done := c.storeContext(c.cfg.Lease)
	defer done()
	asked := time.Now()
	leases, err := c.store.Claim(ctx, store.Claim{
		Worker: c.worker, Queues: size.queues, Kinds: size.kinds, Limit: size.limit, Start: size.free, Lease: c.cfg.Lease,
		OwnerSlots: c.cfg.OwnerSlots, Busy: c.leases.busyOwners(c.cfg.OwnerSlots),
	})
	if err != nil {
		return 0, err
	}
	c.leases.recordClaim(time.Since(asked))
	if len(leases) == 0 {
		return 0, nil
	}
	c.clock.set(leases[0].AsOf)
	start, release, cause := c.leases.admit(c.attempts.newAttempts(leases, asked), c.cfg.trustedUntil(asked), size)
	for _, a := range start {
		c.runner.start(a)
	}
	c.outcomes.releaseAll(release, cause)
	return len(leases), nil
}

// busyOwners counts the jobs of each owner that run or wait for a slot. It returns nil if there is no limit to apply.
func (t *leaseTable) busyOwners(limit int) map[string]int {
	if limit == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	busy := make(map[string]int)
	for a := range t.held {
		if a.phase != phaseEnded {
			busy[a.lease.Owner]++
		}
	}
	return busy
}

// A claimSize is what one claim asks for.
type claimSize struct {
	queues, kinds []string
	limit         int // how many jobs
	free          int // how many of them start at once
	changes       int // of the intake, when the claim was sized
}

// claimSize returns how many slots are free and how many jobs to ask for: for the free slots, and those that pace says to hold ahead, at most prefetch. The
// engine claims again when half of these are left.
//
// The limit shrinks with the number of unsettled outcomes, so that a slow store stops further claims instead of filling the memory.
func (t *leaseTable) claimSize(prefetch int) claimSize {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sizeClaim(prefetch)
}

// sizeClaim is claimSize for a caller that holds the lock.
func (t *leaseTable) sizeClaim(prefetch int) claimSize {
	ahead := t.pace.ahead(t.slots, prefetch)
	free := max(0, t.slots-t.running)
	if t.prefetched > 0 {
		free = 0
	}
	limit := max(0, free+ahead-t.prefetched)
	t.refillBelow = ahead / 2
	if free == 0 && t.prefetched > t.refillBelow || !t.intake.hasQueues() {
		limit = 0
	}
	limit = min(limit, max(0, maxUnsettled+t.slots-t.unsettled))
	t.wantMore = limit == 0
	return claimSize{queues: t.intake.queues, limit: limit, free: min(free, limit), changes: t.intake.changes}
}

// setWantMore sets whether the next slot that becomes free starts a claim.
func (t *leaseTable) setWantMore(more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wantMore = more
}

// recordClaim records how long a claim took.
func (t *leaseTable) recordClaim(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pace.claimEnded(took)
}
