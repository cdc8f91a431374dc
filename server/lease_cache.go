package server

import (
	"container/list"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// The limits of the cache of leases.
const (
	leaseCacheMax   = 20_000
	leaseCacheBytes = 16 << 20
)

// leaseCache caches leases that this server has handed out, so that reports about them need no read from the store. It is only a cache: a lease that was evicted,
// or that another server handed out, is read from the store. It is safe for concurrent use.
type leaseCache struct {
	mu    sync.Mutex
	order list.List // of *cachedLease, the next to be evicted first
	at    map[leaseKey]*list.Element
	bytes int
}

type leaseKey struct {
	job   holdfast.ID
	token int
}

type cachedLease struct {
	lease store.Lease
	at    time.Time // time of the claim, by this process's clock
}

func (l *cachedLease) name() leaseKey { return leaseKey{l.lease.ID, l.lease.Token} }

func (l *cachedLease) weight() int { return 1000 + len(l.lease.Args) + len(l.lease.Checkpoint) }

func (m *leaseCache) add(leases []store.Lease, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == nil {
		m.at = map[leaseKey]*list.Element{}
	}
	for i := range leases {
		l := &cachedLease{leases[i], now}
		m.at[l.name()] = m.order.PushBack(l)
		m.bytes += l.weight()
	}
	for m.order.Len() > leaseCacheMax || m.bytes > leaseCacheBytes {
		m.drop(m.order.Front())
	}
}

func (m *leaseCache) drop(e *list.Element) {
	l := m.order.Remove(e).(*cachedLease)
	delete(m.at, l.name())
	m.bytes -= l.weight()
}

// get returns a lease, if it is still in the cache.
func (m *leaseCache) get(job holdfast.ID, token int) (l cachedLease, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, known := m.at[leaseKey{job, token}]
	if known {
		l = *e.Value.(*cachedLease)
	}
	return l, known
}

// reported marks a lease whose outcome was reported as the next to be evicted. Until then a repeated report still finds it.
func (m *leaseCache) reported(job holdfast.ID, token int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, known := m.at[leaseKey{job, token}]; known {
		m.order.MoveToFront(e)
	}
}
