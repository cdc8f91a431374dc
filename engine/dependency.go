package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast/failure/breaker"
)

// maxDependencies bounds how many dependencies that only jobs name are looked after. A job may name anything.
const maxDependencies = 1000

// A dependency is something that jobs call, as this process knows it.
type dependency struct {
	name     string
	declared bool // by a kind or by the Config; jobs may name others

	sight atomic.Pointer[sight] // what the gate goes by; nil: nothing is known against it

	rota atomic.Pointer[rota] // while its circuit is not closed: which jobs have probed

	mu      sync.Mutex
	calls   calls     // gathered since the breakers last looked
	lastBad time.Time // when the last call ended, if it was a bad one, by this process's clock
	closed  time.Time // since when its circuit is closed, if it was not before, by the store's clock

	ledger ledger    // the breakers' alone
	opened time.Time // when this process saw it open, by its own clock; likewise
}

// A sight is what this process last saw of a circuit that is not simply closed.
type sight struct {
	state breaker.State
	since time.Time // by the store's clock
	until time.Time // likewise: when it is probed, if it is open
	fast  bool      // jobs fail at once instead of waiting
	code  string
	text  string
}

// open reports whether calls are not to be made at all.
func (s *sight) open() bool { return s.state == breaker.Open || s.state == breaker.ForcedOpen }

// state is how its circuit stands, as far as this process has seen.
func (d *dependency) state() breaker.State {
	if s := d.sight.Load(); s != nil {
		return s.state
	}
	return breaker.Closed
}

// dependencies are all that this process knows.
type dependencies struct {
	mu   sync.RWMutex
	all  map[string]*dependency
	list []*dependency // the same, in the order they became known
}

// find answers nil for one that is not known.
func (d *dependencies) find(name string) *dependency {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.all[name]
}

// add makes a dependency known. It answers nil when too many are known that nobody declared.
func (d *dependencies) add(name string, declared bool) *dependency {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.all[name]; known != nil {
		if declared {
			known.declared = true
		}
		return known
	}
	if !declared && len(d.list) >= maxDependencies && !d.forgetOne() {
		return nil
	}
	if d.all == nil {
		d.all = make(map[string]*dependency)
	}
	made := &dependency{name: name, declared: declared}
	d.all[name] = made
	d.list = append(d.list, made)
	return made
}

// forgetOne makes room by forgetting the oldest dependency that nobody declared and that has no trouble. Caller holds the lock.
func (d *dependencies) forgetOne() bool {
	for i, each := range d.list {
		if !each.declared && each.sight.Load() == nil {
			delete(d.all, each.name)
			d.list = append(d.list[:i:i], d.list[i+1:]...)
			return true
		}
	}
	return false
}

// known lists them. The list is not changed afterwards.
func (d *dependencies) known() []*dependency {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.list[:len(d.list):len(d.list)]
}

// clock is the store's, as far as this process knows: what the store last said, and the time that has passed since.
type clock struct {
	mu   sync.Mutex
	asOf time.Time // as the store said
	at   time.Time // when this process heard it
}

// set remembers what the store's clock showed when it answered, now.
func (c *clock) set(asOf time.Time) {
	if asOf.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asOf, c.at = asOf, time.Now()
}

// now is never ahead of the store's clock, once the store has spoken. Until then it is this machine's.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Now()
	}
	return c.asOf.Add(time.Since(c.at))
}

// then is what the store's clock showed, or will show, when this process's shows that.
func (c *clock) then(local time.Time) time.Time {
	if local.IsZero() {
		return local
	}
	return c.now().Add(-time.Since(local)).UTC().Round(time.Millisecond)
}
