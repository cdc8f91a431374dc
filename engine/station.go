package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast/duty"
)

// A station is one duty in this process: what people order of it, and how it goes. Times are by this process's clock.
type station struct {
	name   string
	paused atomic.Bool
	urged  atomic.Bool   // the round under way was ordered by a person
	orders chan struct{} // somebody wants a round now

	mu      sync.Mutex
	last    time.Time
	next    time.Time
	took    time.Duration
	runs    int
	err     string
	errAt   time.Time
	heard   bool // an order was read, and
	ordered int  // so many rounds were ordered then
}

// station is where a duty of that name stands; the first to ask makes it.
func (e *Engine) station(name string) *station {
	e.stationing.Lock()
	defer e.stationing.Unlock()
	s := e.stations[name]
	if s == nil {
		s = &station{name: name, orders: make(chan struct{}, 1)}
		e.stations[name] = s
	}
	return s
}

// begins notes that a round begins.
func (s *station) begins() (ended func(error)) {
	began := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = began
	s.runs++
	return func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.took = time.Since(began)
		s.note(err)
	}
}

// expects notes when the next round is to begin.
func (s *station) expects(next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = next
}

func (s *station) note(err error) {
	if err != nil {
		s.err, s.errAt = clip(err.Error(), 500), time.Now()
	}
}

// trouble is said of one of many things a duty looks after: it does not keep it from the others.
func (e *Engine) trouble(name string, err error) {
	s := e.station(name)
	s.mu.Lock()
	s.note(err)
	s.mu.Unlock()
	e.complain(name, err)
}

// obey does what an order says.
func (s *station) obey(o duty.Order, now time.Time) {
	s.mu.Lock()
	run := s.heard && o.Run > s.ordered
	s.heard, s.ordered = true, o.Run
	s.mu.Unlock()
	paused := o.Halts(now) && duty.Pausable(s.name)
	resumed := s.paused.Swap(paused) && !paused
	if run || resumed {
		nudge(s.orders)
	}
}

// report says how it goes, by the store's clock.
func (s *station) report(clock *clock) duty.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return duty.Report{Last: clock.then(s.last), Next: clock.then(s.next), Took: s.took, Runs: s.runs, Error: s.err, ErrorAt: clock.then(s.errAt)}
}
