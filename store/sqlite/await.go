package sqlite

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
)

// Await returns when there may be new work in the queues (in any, if none is named) or a job to cancel. Work of this process wakes it at once; work of
// another process, or of the caller's own transaction, within a twentieth of a second.
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

// news is what a committed call means for those who await work.
type news struct {
	work   []string // queues that may have work now
	all    bool     // any queue may have work now
	cancel bool     // somebody asked a job to stop
}

// A waiter is one call of Await.
type waiter struct {
	queues []string
	wake   chan holdfast.Wake
}

// A bell wakes those who await work. News that come while nobody listens are kept for the next one who does, so that the gap
// between an empty claim and the await after it loses none.
type bell struct {
	begin  func() // tells the writer that somebody listens
	closed chan struct{}
	count  atomic.Int32

	mu      sync.Mutex
	rung    int // how often
	waiters map[*waiter]struct{}
	work    map[string]bool
	cancel  bool
}

func newBell() *bell {
	return &bell{closed: make(chan struct{}), waiters: map[*waiter]struct{}{}, work: map[string]bool{}}
}

func (b *bell) close() { close(b.closed) }

func (b *bell) awaited() bool { return b.count.Load() > 0 }

// join begins to listen, or answers at once with news that nobody heard yet.
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

func (b *bell) leave(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiters, w)
	b.count.Add(-1)
}

// rings is how often the bell has rung.
func (b *bell) rings() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rung
}

// drained says that a claim found no more in these queues. What rang since the claim began to look is kept.
func (b *bell) drained(queues []string, rings int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, queue := range queues {
		if b.rung == rings {
			delete(b.work, queue)
		}
	}
}

// strike spreads the news of a committed group, in the order of its calls.
func (b *bell) strike(group []*call, known *lanes) {
	for _, c := range group {
		if n := &c.news; n.all || n.cancel || len(n.work) > 0 {
			b.ring(*n, known)
		}
	}
}

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
		default: // it is awake already
		}
	}
}

func (n *news) reaches(queues []string) bool {
	return n.all || len(queues) == 0 && len(n.work) > 0 || slices.ContainsFunc(n.work, func(queue string) bool { return slices.Contains(queues, queue) })
}
