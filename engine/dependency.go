package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast/failure/breaker"
)

// maxDependencies limits how many dependencies that only jobs name are known at once: a job may name anything.
const maxDependencies = 1000

// A dependency is something that jobs call, as this process knows it. checkStart reads view and probeOrder without a lock.
type dependency struct {
	name     string
	declared bool // a kind or the Config names it, not only jobs

	view atomic.Pointer[breakerView] // the state of the breaker; nil: closed, or not known

	probeOrder atomic.Pointer[probeOrder] // while the breaker is not closed: which jobs have probed

	mu      sync.Mutex
	calls   calls     // calls since the breaker was last updated
	lastBad time.Time // when the last call ended, if it failed, by this process's clock
	closed  time.Time // when the breaker was last closed after it had been open, by the store's clock

	breaker localBreaker // guarded by breakers.mu
	opened  time.Time    // when this process first saw the breaker open, by its own clock; guarded by breakers.mu
}

// A breakerView is the state of a breaker that is not closed, as this process last read it. It is immutable.
type breakerView struct {
	state breaker.State
	since time.Time // by the store's clock
	until time.Time // when an open breaker is probed, by the store's clock
	fast  bool      // fail-fast mode: jobs fail at once instead of waiting
	code  string
	text  string
}

// open reports whether no calls may be made.
func (s *breakerView) open() bool { return s.state == breaker.Open || s.state == breaker.ForcedOpen }

// state returns the state of the breaker, as this process last read it.
func (d *dependency) state() breaker.State {
	if s := d.view.Load(); s != nil {
		return s.state
	}
	return breaker.Closed
}

// dependencies are the dependencies that this process knows. It is safe for concurrent use.
type dependencies struct {
	mu   sync.RWMutex
	all  map[string]*dependency
	list []*dependency // the same, in the order in which they became known
}

// newDependencies returns the set of the dependencies that the Config names.
func newDependencies(configured map[string]Dependency) *dependencies {
	d := &dependencies{}
	for name := range configured {
		d.add(name, true)
	}
	return d
}

// find returns a dependency, or nil if it is not known.
func (d *dependencies) find(name string) *dependency {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.all[name]
}

// add returns a dependency and makes it known if it is not. It returns nil if there are too many undeclared ones and all of them have a breaker that is not
// closed.
func (d *dependencies) add(name string, declared bool) *dependency {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.all[name]; known != nil {
		if declared {
			known.declared = true
		}
		return known
	}
	if !declared && len(d.list) >= maxDependencies && !d.evictOne() {
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

// evictOne removes the oldest undeclared dependency whose breaker is closed. It returns false if there is none. The caller holds the lock.
func (d *dependencies) evictOne() bool {
	for i, each := range d.list {
		if !each.declared && each.view.Load() == nil {
			delete(d.all, each.name)
			d.list = append(d.list[:i:i], d.list[i+1:]...)
			return true
		}
	}
	return false
}

// known returns all dependencies. The result is not changed by later calls of add.
func (d *dependencies) known() []*dependency {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.list[:len(d.list):len(d.list)]
}
