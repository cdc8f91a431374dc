package sqlite

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/dutypace"
	"github.com/holdfastdev/holdfast/store"
)

// Await returns when there may be new work in the queues (in any queue if none is named), when a job is to be
// cancelled, or after patience. Work of this process wakes it at once. Work of another process, or of the application's
// own transaction, wakes it within a twentieth of a second. A wake-up is a hint: there may be no work after all.
func (s *Store) Await(ctx context.Context, queues []string, patience time.Duration) (store.Wake, error) {
	if err := ctx.Err(); err != nil {
		return store.Wake{}, err
	}
	every, _ := dutypace.From(ctx)(checkInterval)
	w, wake := s.waker.register(queues, every > checkInterval)
	if w == nil {
		return wake, nil
	}
	defer s.waker.unregister(w)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case wake := <-w.wake:
		return wake, nil
	case <-timer.C:
		return store.Wake{}, nil
	case <-ctx.Done():
		return store.Wake{}, ctx.Err()
	case <-s.waker.closed:
		return store.Wake{}, errClosed
	}
}

// EndHint returns a channel that has a value when the job may have ended in this process; holdfast.Wait uses it. The caller must call stop, once.
func (s *Store) EndHint(id holdfast.ID) (ended <-chan struct{}, stop func()) {
	return s.ends.EndHint(id)
}

// A wakeup says which waiters a committed call concerns.
type wakeup struct {
	queues    []string // queues that may have work now
	allQueues bool     // every queue may have work now
	cancel    bool     // a processing job was asked to stop
}

// A waiter is one call of Await.
type waiter struct {
	queues []string
	local  bool // it does not ask for checks for work of others
	wake   chan store.Wake
}

// A waker wakes the calls of Await. A wake-up that comes while no waiter listens is kept for the next one, so that none
// is lost between an empty claim and the Await that follows it.
type waker struct {
	onFirstWaiter func() // tells the writer that the first waiter has come
	closed        chan struct{}
	waiting       atomic.Int32

	mu            sync.Mutex
	rounds        int // how many wake-ups there were
	waiters       map[*waiter]struct{}
	pendingQueues map[string]bool
	pendingCancel bool
}

func newWaker() *waker {
	return &waker{closed: make(chan struct{}), waiters: map[*waiter]struct{}{}, pendingQueues: map[string]bool{}}
}

func (b *waker) close() { close(b.closed) }

// hasWaiters reports whether an Await is in progress that asks for checks for work of others.
func (b *waker) hasWaiters() bool { return b.waiting.Load() > 0 }

// register adds a waiter for the queues. If a wake-up for them is pending, register returns it and no waiter.
func (b *waker) register(queues []string, local bool) (*waiter, store.Wake) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wake := store.Wake{Cancel: b.pendingCancel}
	for _, queue := range queues {
		wake.Work = wake.Work || b.pendingQueues[queue]
		delete(b.pendingQueues, queue)
	}
	if len(queues) == 0 {
		wake.Work = len(b.pendingQueues) > 0
		clear(b.pendingQueues)
	}
	b.pendingCancel = false
	if wake.Work || wake.Cancel {
		return nil, wake
	}
	w := &waiter{queues, local, make(chan store.Wake, 1)}
	b.waiters[w] = struct{}{}
	if !local && b.waiting.Add(1) == 1 {
		b.onFirstWaiter()
	}
	return w, store.Wake{}
}

// unregister removes a waiter.
func (b *waker) unregister(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiters, w)
	if !w.local {
		b.waiting.Add(-1)
	}
}

// round returns how many wake-ups there were.
func (b *waker) round() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rounds
}

// drained tells the waker that a claim has emptied these queues, so that a pending wake-up for them is no longer
// needed. If there was a wake-up since the claim began at the given round, it is kept: the claim may not have seen that
// work.
func (b *waker) drained(queues []string, round int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, queue := range queues {
		if b.rounds == round {
			delete(b.pendingQueues, queue)
		}
	}
}

// notifyGroup wakes the waiters that a committed group concerns, in the order of its calls.
func (b *waker) notifyGroup(group []*call, known *laneCache) {
	for _, c := range group {
		if n := &c.wakeup; n.allQueues || n.cancel || len(n.queues) > 0 {
			b.notify(*n, known)
		}
	}
}

// notify wakes the waiters that a wakeup concerns, and keeps it for later ones.
func (b *waker) notify(n wakeup, known *laneCache) {
	var queues []string
	if n.allQueues {
		queues = known.queues()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rounds++
	for _, queue := range n.queues {
		b.pendingQueues[queue] = true
	}
	for _, queue := range queues {
		b.pendingQueues[queue] = true
	}
	b.pendingCancel = b.pendingCancel || n.cancel
	for w := range b.waiters {
		wake := store.Wake{Work: n.concerns(w.queues), Cancel: n.cancel}
		if !wake.Work && !wake.Cancel {
			continue
		}
		select {
		case w.wake <- wake:
		default: // this waiter was woken already
		}
	}
}

// concerns reports whether a waiter for these queues is to be woken.
func (n *wakeup) concerns(queues []string) bool {
	return n.allQueues || len(queues) == 0 && len(n.queues) > 0 || slices.ContainsFunc(n.queues, func(queue string) bool { return slices.Contains(queues, queue) })
}
