package server

import (
	"container/list"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// What is remembered of leases in the hands of workers that report outcomes.
const (
	lentMost  = 20_000
	lentBytes = 16 << 20
)

// lent remembers leases that were handed to workers, so that their reports need not be looked up. What it has forgotten, or another server handed
// out, is read from the store: it is a memory, not a truth.
type lent struct {
	mu    sync.Mutex
	order list.List // of *loan, the next to be forgotten first
	at    map[loanName]*list.Element
	bytes int
}

type loanName struct {
	job   holdfast.ID
	token int
}

type loan struct {
	lease holdfast.Lease
	at    time.Time // when it was claimed, by this process's clock
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

// recall answers with what was handed out, if that is still known.
func (m *lent) recall(job holdfast.ID, token int) (l loan, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, known := m.at[loanName{job, token}]
	if known {
		l = *e.Value.(*loan)
	}
	return l, known
}

// done says that an attempt was reported. It is the next to be forgotten, and until then a report that is repeated finds it as it was.
func (m *lent) done(job holdfast.ID, token int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, known := m.at[loanName{job, token}]; known {
		m.order.MoveToFront(e)
	}
}
