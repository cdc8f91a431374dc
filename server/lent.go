package server

import (
	"container/list"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// The limits of the cache of leases.
const (
	lentMost  = 20_000
	lentBytes = 16 << 20
)

// lent caches leases that this server has handed out, so that reports about them need no read from the store. It is only a cache: a lease that was evicted,
// or that another server handed out, is read from the store. It is safe for concurrent use.
type lent struct {
	mu    sync.Mutex
	order list.List // of *loan, the next to be evicted first
	at    map[loanName]*list.Element
	bytes int
}

type loanName struct {
	job   holdfast.ID
	token int
}

type loan struct {
	lease holdfast.Lease
	at    time.Time // time of the claim, by this process's clock
}

func (l *loan) name() loanName { return loanName{l.lease.ID, l.lease.Token} }

func (l *loan) weight() int { return 1000 + len(l.lease.Args) + len(l.lease.Checkpoint) }

func (m *lent) remember(leases []holdfast.Lease, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == nil {
		m.at = map[loanName]*list.Element{}
	}
	for i := range leases {
		l := &loan{leases[i], now}
		m.at[l.name()] = m.order.PushBack(l)
		m.bytes += l.weight()
	}
	for m.order.Len() > lentMost || m.bytes > lentBytes {
		m.drop(m.order.Front())
	}
}

func (m *lent) drop(e *list.Element) {
	l := m.order.Remove(e).(*loan)
	delete(m.at, l.name())
	m.bytes -= l.weight()
}

// recall returns a lease, if it is still in the cache.
func (m *lent) recall(job holdfast.ID, token int) (l loan, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, known := m.at[loanName{job, token}]
	if known {
		l = *e.Value.(*loan)
	}
	return l, known
}

// done marks a lease whose outcome was reported as the next to be evicted. Until then a repeated report still finds it.
func (m *lent) done(job holdfast.ID, token int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, known := m.at[loanName{job, token}]; known {
		m.order.MoveToFront(e)
	}
}
