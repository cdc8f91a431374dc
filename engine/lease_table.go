package engine

import (
	"context"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A leaseTable holds every lease of this process, from its claim until the store has answered its settlement. Nothing else in the engine stores
// leases, so the table is exactly the set of leases to renew: a lease is renewed while its handler runs, while it waits for a slot, and
// while its settlement is being written.
//
// The table also assigns slots. An attempt moves through its phases under the table's lock, so exactly one caller ends each attempt: the handler
// that returned, the watch that abandoned it, or the code that withdrew it before it started. Only that caller queues its outcome.
//
// All methods are safe for concurrent use, except where a comment says that the caller holds the lock.
type leaseTable struct {
	idle chan struct{} // signalled when the last handler has returned

	mu            sync.Mutex
	slots         int
	intake        intake // which queues to claim from, and how many jobs of each queue and kind
	held          map[*attempt]struct{}
	batches       map[holdfast.ID]*batch
	prefetchQueue []*attempt // leases held ahead of a free slot, in claim order; some may have been withdrawn since
	prefetched    int        // how many of prefetchQueue still wait
	running       int        // slots in use
	unsettled     int        // attempts whose outcome is known and not yet written
	pace          pace       // decides how many leases are held ahead
	abandoned     int        // handlers that ignored the end of their context and have not returned yet
	wantMore      bool       // the last claim was limited by free slots, not by claimable jobs, so the next free slot claims again
	refillBelow   int        // claim again when no more than this many leases are held ahead
	closed        bool       // nothing starts any more
}

// A batch is the set of leases from one claim. They are renewed together.
type batch struct {
	id           holdfast.ID
	held         int       // leases of the batch that are not settled
	trustedUntil time.Time // no other worker can have reclaimed the batch before this time, by this process's clock
}

func newLeaseTable(cfg *Config) *leaseTable {
	return &leaseTable{
		idle: make(chan struct{}, 1), slots: cfg.Slots, intake: newIntake(cfg),
		held: make(map[*attempt]struct{}), batches: make(map[holdfast.ID]*batch),
	}
}

// add enters new leases. The caller holds the lock.
func (t *leaseTable) add(attempts []*attempt, trustedUntil time.Time) {
	for _, a := range attempts {
		of := t.batches[a.lease.Batch]
		if of == nil {
			of = &batch{id: a.lease.Batch, trustedUntil: trustedUntil}
			t.batches[of.id] = of
		}
		of.held++
		a.batch = of
		t.held[a] = struct{}{}
	}
}

// admit enters claimed leases. It returns those that have a slot, for the caller to start, or, if the table is closed, all of them for the caller
// to release. The others wait for a slot. Leases that were claimed earlier come first, so with leases waiting none starts at once. If the intake has changed
// since the claim was asked for, the leases that no longer belong to it are returned for release too. cause is why.
func (t *leaseTable) admit(attempts []*attempt, trustedUntil time.Time, asked claimSize) (start, release []*attempt, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(attempts, trustedUntil)
	if t.closed {
		t.markEnded(attempts)
		return nil, attempts, ErrStopping
	}
	if asked.changes != t.intake.changes {
		t.prefetchQueue = append(t.prefetchQueue, attempts...)
		t.prefetched += len(attempts)
		release = t.trim()
		return t.fill(), release, errSlotsChanged
	}
	free := 0
	if t.prefetched == 0 {
		free = min(max(0, t.slots-t.running), len(attempts))
	}
	for _, a := range attempts[:free] {
		a.phase = phaseRunning
	}
	t.running += free
	t.prefetchQueue = append(t.prefetchQueue, attempts[free:]...)
	t.prefetched += len(attempts) - free
	return attempts[:free], nil, nil
}

// admitEnded enters leases whose outcome is already known, such as reclaimed ones. They need no slot.
func (t *leaseTable) admitEnded(attempts []*attempt, trustedUntil time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(attempts, trustedUntil)
	t.markEnded(attempts)
}

// markEnded ends attempts that have no slot. The caller holds the lock.
func (t *leaseTable) markEnded(attempts []*attempt) {
	for _, a := range attempts {
		a.phase = phaseEnded
	}
	t.unsettled += len(attempts)
}

// launch records the context of a's handler, so that stop and abandon can end it. If a was told to stop before, its context ends at once. The result
// is false if a was abandoned before its handler started: then the handler must not start.
func (t *leaseTable) launch(a *attempt, ctx context.Context, cancel context.CancelCauseFunc) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	a.ctx, a.cancel, a.began = ctx, cancel, time.Now()
	if a.cause != nil {
		cancel(a.cause)
	}
	return a.phase == phaseRunning
}

// finish frees a's slot after its handler returned, and returns the attempt that gets the slot next, if any. wantMore reports whether the engine
// should claim now. valid is false if a was abandoned before: then its slot belongs to another attempt, its outcome was queued, and the
// caller must drop what the handler returned.
func (t *leaseTable) finish(a *attempt) (next *attempt, wantMore, valid bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !a.began.IsZero() {
		t.pace.runEnded(time.Since(a.began))
	}
	if a.phase == phaseEnded {
		t.abandoned--
		return nil, false, false
	}
	next = t.freeSlot(a)
	return next, t.wantMore && t.prefetched <= t.refillBelow || t.intake.awaits(a), true
}

// abandon ends a while its handler still runs, and gives its slot to the next attempt. cause is why a was told to stop; it is nil if the handler
// returned first, and then nothing has changed.
func (t *leaseTable) abandon(a *attempt) (next *attempt, cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.phase != phaseRunning {
		return nil, nil
	}
	cause = ErrStopping
	if a.ctx != nil && a.ctx.Err() != nil {
		cause = context.Cause(a.ctx)
	}
	t.abandoned++
	return t.freeSlot(a), cause
}

// freeSlot ends a running attempt and gives its slot to the next waiting one. The caller holds the lock.
func (t *leaseTable) freeSlot(a *attempt) (next *attempt) {
	a.phase = phaseEnded
	t.unsettled++
	if t.running <= t.slots { // otherwise the engine has fewer slots than before, and this one is gone
		next = t.startWaiting()
	}
	if next != nil {
		return next
	}
	t.running--
	if t.running == 0 {
		signal(t.idle)
	}
	return nil
}

// startWaiting gives a slot to the first attempt that waits for one, and returns it; nil if none waits. The caller holds the lock and counts the slot.
func (t *leaseTable) startWaiting() (next *attempt) {
	for next == nil && len(t.prefetchQueue) > 0 {
		if t.prefetchQueue[0].phase == phaseWaiting {
			next = t.prefetchQueue[0]
		}
		t.prefetchQueue[0] = nil
		t.prefetchQueue = t.prefetchQueue[1:]
	}
	if next != nil {
		next.phase = phaseRunning
		t.prefetched--
	}
	return next
}

// stop tells a's handler to stop. Of several causes the first one counts. If a still waits for a slot it is withdrawn: the result is true, and the
// caller queues its outcome.
func (t *leaseTable) stop(a *attempt, cause error) (withdrawn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.cause == nil {
		a.cause = cause
	}
	if a.phase == phaseWaiting {
		a.phase = phaseEnded
		t.prefetched--
		t.unsettled++
		return true
	}
	if a.cancel != nil {
		a.cancel(a.cause)
	}
	return false
}

// close prevents further starts and returns the attempts that wait for a slot, for the caller to release.
func (t *leaseTable) close() (release []*attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, a := range t.prefetchQueue {
		if a.phase == phaseWaiting {
			release = append(release, a)
		}
	}
	t.markEnded(release)
	t.prefetchQueue, t.prefetched = nil, 0
	return release
}

// withdraw ends the attempts that wait for a slot and would call the dependency. The caller queues their outcomes.
func (t *leaseTable) withdraw(d *dependency) (withdrawn []*attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.prefetchQueue {
		if a.phase == phaseWaiting && (a.dep == d || a.lease.Dependency == d.name) {
			withdrawn = append(withdrawn, a)
		}
	}
	t.markEnded(withdrawn)
	t.prefetched -= len(withdrawn)
	return withdrawn
}

// runningAttempts returns the attempts that have a slot.
func (t *leaseTable) runningAttempts() (all []*attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for a := range t.held {
		if a.phase == phaseRunning {
			all = append(all, a)
		}
	}
	return all
}

// removeSettled removes leases whose settlement the store has answered. wantMore reports whether the last claim was limited by what this process
// held.
func (t *leaseTable) removeSettled(outcomes []*outcome) (wantMore bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range outcomes {
		a := outcomes[i].attempt
		delete(t.held, a)
		t.unsettled--
		if a.batch.held--; a.batch.held == 0 {
			delete(t.batches, a.batch.id)
		}
	}
	return t.wantMore
}

// busy returns how many slots are in use and how many leases are held in all.
func (t *leaseTable) busy() (slots, leases int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running, len(t.held)
}
