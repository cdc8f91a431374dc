package engine

import (
	"context"
	"slices"
)

// An intake says what the engine claims: from which queues, and how many jobs of each queue and kind it holds at most. The lease table guards it.
type intake struct {
	all     bool     // claim from every queue
	queues  []string // the queues to claim from; nil with all. Replaced as a whole, never changed in place
	inQueue map[string]*share
	ofKind  map[string]*share
	changes int // how often the intake was changed
	round   int // how many rounds of claims there were; each begins with another part

	interrupt context.CancelFunc // ends the wait for work, so that it is repeated for other queues; nil before the first one
}

// A share is the slots of one queue or kind. Leases that wait for a slot count too, so a job that is claimed never waits for its share: only for a slot.
type share struct {
	slots int
	held  int  // as counted last
	full  bool // none was free when claims were last planned, so the end of one of its jobs starts a claim
}

// free returns how many more leases the share may have.
func (s *share) free() int { return max(0, s.slots-s.held) }

func newIntake(cfg *Config) intake {
	n := intake{inQueue: make(map[string]*share), ofKind: make(map[string]*share)}
	if n.all = slices.Equal(cfg.Queues, []string{AllQueues}); !n.all {
		n.queues = slices.Clone(cfg.Queues)
	}
	for queue, slots := range cfg.QueueSlots {
		n.inQueue[queue] = &share{slots: slots}
	}
	return n
}

// hasQueues reports whether there is a queue to claim from.
func (n *intake) hasQueues() bool { return n.all || len(n.queues) > 0 }

// claims reports whether the engine claims from a queue.
func (n *intake) claims(queue string) bool { return n.all || slices.Contains(n.queues, queue) }

// limited reports whether any queue or kind has a share.
func (n *intake) limited() bool { return len(n.inQueue)+len(n.ofKind) > 0 }

// awaits reports whether an attempt that ends frees a slot of a share that was full.
func (n *intake) awaits(a *attempt) bool {
	if !n.limited() {
		return false
	}
	queue, kind := n.sharesOf(a)
	return queue != nil && queue.full || kind != nil && kind.full
}

// sharesOf returns the shares that an attempt belongs to; each is nil if there is none.
func (n *intake) sharesOf(a *attempt) (queue, kind *share) {
	return n.inQueue[a.lease.Queue], n.ofKind[a.lease.Kind]
}

// take counts an attempt in its shares.
func (n *intake) take(a *attempt) {
	queue, kind := n.sharesOf(a)
	for _, s := range []*share{queue, kind} {
		if s != nil {
			s.held++
		}
	}
}

// fits reports whether the attempt's queue is claimed from and its shares have a free slot.
func (n *intake) fits(a *attempt) bool {
	queue, kind := n.sharesOf(a)
	return n.claims(a.lease.Queue) && (queue == nil || queue.free() > 0) && (kind == nil || kind.free() > 0)
}

// allShares yields every share.
func (n *intake) allShares(yield func(*share) bool) {
	for _, of := range []map[string]*share{n.inQueue, n.ofKind} {
		for _, s := range of {
			if !yield(s) {
				return
			}
		}
	}
}

// setSlots gives a queue or a kind that many slots; 0: no share of its own.
func setSlots(of map[string]*share, name string, slots int) {
	if slots == 0 {
		delete(of, name)
		return
	}
	of[name] = &share{slots: slots}
}

// capacity returns how many more jobs a name of a kind or queue may have; most if it has no share.
func capacity(of map[string]*share, name string, most int) int {
	if s := of[name]; s != nil {
		return s.free()
	}
	return most
}

// countShares counts the leases of each share: those that run, and with waiting those that wait for a slot. The caller holds the lock.
func (t *leaseTable) countShares(waiting bool) {
	for s := range t.intake.allShares {
		s.held = 0
	}
	for a := range t.held {
		if a.phase == phaseRunning || waiting && a.phase == phaseWaiting {
			t.intake.take(a)
		}
	}
}

// hasShares reports whether any queue or kind has slots of its own.
func (t *leaseTable) hasShares() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.intake.limited()
}

// reported returns the queues and slots for the report of this worker.
func (t *leaseTable) reported() (queues []string, slots int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.intake.all {
		return []string{AllQueues}, t.slots
	}
	return t.intake.queues, t.slots
}

// beginAwait returns the queues to wait for; none means all. When they change, interrupt is called.
func (t *leaseTable) beginAwait(interrupt context.CancelFunc) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.intake.interrupt = interrupt
	return t.intake.queues
}

// change changes slots or queues. It returns the attempts that now have a slot, for the caller to start, and those that may no longer start, for the caller to
// release.
func (t *leaseTable) change(do func(t *leaseTable)) (start, release []*attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.intake.queues
	do(t)
	t.intake.changes++
	if t.intake.interrupt != nil && !slices.Equal(before, t.intake.queues) {
		t.intake.interrupt()
	}
	release = t.trim()
	return t.fill(), release
}

// trim withdraws the attempts that wait for a slot and no longer belong to the intake: their queue was removed, or it or their kind has fewer slots. The caller
// holds the lock.
func (t *leaseTable) trim() (withdrawn []*attempt) {
	t.countShares(false)
	for _, a := range t.prefetchQueue {
		if a.phase != phaseWaiting {
			continue
		}
		if t.intake.fits(a) {
			t.intake.take(a)
		} else {
			withdrawn = append(withdrawn, a)
		}
	}
	t.markEnded(withdrawn)
	t.prefetched -= len(withdrawn)
	return withdrawn
}

// fill gives the free slots to attempts that wait. The caller holds the lock and starts the attempts.
func (t *leaseTable) fill() (start []*attempt) {
	for t.running < t.slots {
		next := t.startWaiting()
		if next == nil {
			break
		}
		t.running++
		start = append(start, next)
	}
	return start
}
