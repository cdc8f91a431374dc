package engine

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// watch checks all attempts by this process's clock, without calling the store:
//
//   - A handler whose lease was not renewed in time is told to stop, before the lease expires. The store may be unreachable for this process only, and then
//     another worker reclaims the job.
//   - A handler that still runs longer than AbandonAfter after its context ended is abandoned and its slot replaced.
//   - A lease that waits for a slot for more than a sixth of its duration is released, so that another worker can run the job.
func (k *leaseKeeper) watch(context.Context) error {
	now := time.Now()
	distrusted, overdue := k.leases.inspect(now, k.cfg.AbandonAfter)
	for _, a := range distrusted {
		if k.leases.stop(a, holdfast.ErrLeaseLost) {
			k.outcomes.add(a, interruption(holdfast.ErrLeaseLost))
		}
	}
	for _, a := range overdue {
		k.abandon(a)
	}
	for _, a := range k.leases.withdrawStale(now.Add(-k.cfg.Lease / 6)) {
		k.outcomes.add(a, failure.Outcome{Event: failure.Interrupted, Err: errNoSlot})
	}
	return nil
}

// abandonedCount returns how many abandoned handlers have not returned yet.
func (t *leaseTable) abandonedCount() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.abandoned
}

// withdrawStale withdraws the attempts that have waited for a slot since before that time. It also resets the average run time: handlers have become
// slower than it says, so the engine must not claim ahead until it knows the new average.
func (t *leaseTable) withdrawStale(since time.Time) (withdrawn []*attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.prefetchQueue {
		if a.phase == phaseWaiting && a.asked.Before(since) {
			withdrawn = append(withdrawn, a)
		}
	}
	if len(withdrawn) > 0 {
		t.markEnded(withdrawn)
		t.prefetched -= len(withdrawn)
		t.pace.forgetRuns()
	}
	return withdrawn
}

// watchInterval is short enough to react within the margin of the lease and to keep AbandonAfter within a quarter.
func (c *Config) watchInterval() time.Duration {
	return max(time.Millisecond, min(time.Second, c.margin()/2, c.AbandonAfter/4))
}

// abandon settles an attempt while its handler still runs, and replaces its slot. Go cannot end a goroutine, so the handler continues until it returns; its
// result is ignored. If the handler returned first, abandon does nothing.
func (k *leaseKeeper) abandon(a *attempt) {
	next, cause := k.leases.abandon(a)
	if cause == nil {
		return
	}
	k.cfg.Log.Error("handler ignores the end of its context; its slot was replaced and its goroutine abandoned",
		"event", "stray", "job_id", a.lease.ID.String(), "kind", a.lease.Kind, "queue", a.lease.Queue, "cause", cause.Error(), "strays", k.leases.abandonedCount())
	if next != nil {
		k.runner.start(next)
	}
	signal(k.signals.claim)
	k.outcomes.add(a, interruption(cause))
}

// releaseWaiting releases the jobs that wait for a slot. No other attempt starts from then on.
func (k *leaseKeeper) releaseWaiting() { k.outcomes.releaseAll(k.leases.close(), ErrStopping) }

// stopRunning tells all running handlers to stop because the engine does.
func (k *leaseKeeper) stopRunning() {
	for _, a := range k.leases.runningAttempts() {
		k.leases.stop(a, ErrStopping)
	}
}

// waitIdle waits until no handler has a slot, or until ctx ends.
func (k *leaseKeeper) waitIdle(ctx context.Context) {
	for {
		if slots, _ := k.leases.busy(); slots == 0 || ctx.Err() != nil {
			return
		}
		select {
		case <-k.leases.idle:
		case <-ctx.Done():
		}
	}
}

// abandonAll abandons the handlers that still run.
func (k *leaseKeeper) abandonAll() {
	for _, a := range k.leases.runningAttempts() {
		k.abandon(a)
	}
}

// inspect returns the attempts whose lease is no longer trusted and that were not told to stop yet, and those whose context ended longer than patience ago.
func (t *leaseTable) inspect(now time.Time, patience time.Duration) (distrusted, overdue []*attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := range t.held {
		if a.phase == phaseEnded {
			continue
		}
		if a.cause == nil && !now.Before(a.batch.trustedUntil) {
			distrusted = append(distrusted, a)
		}
		if a.ctx == nil || a.ctx.Err() == nil {
			continue
		}
		if a.ctxEndedAt.IsZero() {
			a.ctxEndedAt = now
		}
		if now.Sub(a.ctxEndedAt) >= patience {
			overdue = append(overdue, a)
		}
	}
	return distrusted, overdue
}
