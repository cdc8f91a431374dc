package sqlite

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Await returns when there may be new work in the queues (in any queue if none is named), when a job is to be
// cancelled, or after patience. Work of this process wakes it at once. Work of another process, or of the application's
// own transaction, wakes it within a twentieth of a second. A wake-up is a hint: there may be no work after all.
func (s *Store) Await(ctx context.Context, queues []string, patience time.Duration) (holdfast.Wake, error) {
	if err := ctx.Err(); err != nil {
		return holdfast.Wake{}, err
	}
	w, wake := s.bell.join(queues)
	if w == nil {
		return wake, nil
	}
	defer s.bell.leave(w)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case wake := <-w.wake:
		return wake, nil
	case <-timer.C:
		return holdfast.Wake{}, nil
	case <-ctx.Done():
		return holdfast.Wake{}, ctx.Err()
	case <-s.bell.closed:
		return holdfast.Wake{}, errClosed
	}
}

// A wakeup says which waiters a committed call concerns.
type news struct {
	work   []string // queues that may have work now
	all    bool     // every queue may have work now
	cancel bool     // a processing job was asked to stop
}

// A waiter is one call of Await.
type waiter struct {
	queues []string
	wake   chan holdfast.Wake
}

// A waker wakes the calls of Await. A wake-up that comes while no waiter listens is kept for the next one, so that none
// is lost between an empty claim and the Await that follows it.
type bell struct {
	begin  func() // tells the writer that the first waiter has come
	closed chan struct{}
	count  atomic.Int32

	mu      sync.Mutex
	rung    int // how many wake-ups there were
	waiters map[*waiter]struct{}
	work    map[string]bool
	cancel  bool
}

func newBell() *bell {
	return &bell{closed: make(chan struct{}), waiters: map[*waiter]struct{}{}, work: map[string]bool{}}
}

func (b *bell) close() { close(b.closed) }

// hasWaiters reports whether an Await is in progress.
func (b *bell) awaited() bool { return b.count.Load() > 0 }

// register adds a waiter for the queues. If a wake-up for them is pending, register returns it and no waiter.
func (b *bell) join(queues []string) (*waiter, holdfast.Wake) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wake := holdfast.Wake{Cancel: b.cancel}
	for _, queue := range queues {
		wake.Work = wake.Work || b.work[queue]
		delete(b.work, queue)
	}
	if len(queues) == 0 {
		wake.Work = len(b.work) > 0
		clear(b.work)
	}
	b.cancel = false
	if wake.Work || wake.Cancel {
		return nil, wake
	}
	w := &waiter{queues: queues, wake: make(chan holdfast.Wake, 1)}
	b.waiters[w] = struct{}{}
	if b.count.Add(1) == 1 {
		b.begin()
	}
	return w, holdfast.Wake{}
}

// unregister removes a waiter.
func (b *bell) leave(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiters, w)
	b.count.Add(-1)
}

// round returns how many wake-ups there were.
func (b *bell) rings() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rung
}

// drained tells the waker that a claim has emptied these queues, so that a pending wake-up for them is no longer
// needed. If there was a wake-up since the claim began at the given round, it is kept: the claim may not have seen that
// work.
func (b *bell) drained(queues []string, rings int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, queue := range queues {
		if b.rung == rings {
			delete(b.work, queue)
		}
	}
}

// notifyGroup wakes the waiters that a committed group concerns, in the order of its calls.
func (b *bell) strike(group []*call, known *lanes) {
	for _, c := range group {
		if n := &c.news; n.all || n.cancel || len(n.work) > 0 {
			b.ring(*n, known)
		}
	}
}

// notify wakes the waiters that a wakeup concerns, and keeps it for later ones.
func (b *bell) ring(n news, known *lanes) {
	var queues []string
	if n.all {
		queues = known.queues()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rung++
	for _, queue := range n.work {
		b.work[queue] = true
	}
	for _, queue := range queues {
		b.work[queue] = true
	}
	b.cancel = b.cancel || n.cancel
	for w := range b.waiters {
		wake := holdfast.Wake{Work: n.reaches(w.queues), Cancel: n.cancel}
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
func (n *news) reaches(queues []string) bool {
	return n.all || len(queues) == 0 && len(n.work) > 0 || slices.ContainsFunc(n.work, func(queue string) bool { return slices.Contains(queues, queue) })
}
