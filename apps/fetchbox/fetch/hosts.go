package fetch

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/failure"
)

// hosts limits the downloads from each host: how many at once, how soon after each other, and none while the host asked for a pause. Those that wait take turns between
// their owners, so that an owner with a thousand downloads does not delay one with a single download by more than one turn.
type hosts struct {
	limits HostLimits

	mu     sync.Mutex
	byName map[string]*host
}

type host struct {
	limits HostManner
	active int
	next   time.Time          // the earliest start of another download
	turns  map[string][]*turn // of each owner, oldest first
	owners []string           // those with turns, in the order in which they are served
	timer  *time.Timer        // runs until next; nil when no timer is needed
}

// A turn is a download that waits. granted is closed when it may begin.
type turn struct {
	owner   string
	granted chan struct{}
}

// maxHosts is how many hosts are remembered before those that nothing uses are forgotten.
const maxHosts = 10_000

func newHosts(limits HostLimits) *hosts { return &hosts{limits: limits, byName: map[string]*host{}} }

// acquire waits for the turn of a download. release must be called when it has ended. If the turn does not come within HostLimits.Wait, the error is a snooze: a worker
// that waits cannot do other work meanwhile.
func (h *hosts) acquire(ctx context.Context, name, owner string) (release func(), err error) {
	mine := &turn{owner: owner, granted: make(chan struct{})}
	h.mu.Lock()
	to := h.find(name)
	if wait := time.Until(to.next); wait > h.limits.Wait {
		h.mu.Unlock()
		return nil, failure.Snooze(wait)
	}
	to.add(mine)
	h.dispatch(to)
	h.mu.Unlock()
	patience := time.NewTimer(h.limits.Wait)
	defer patience.Stop()
	select {
	case <-mine.granted:
		return func() { h.release(to) }, nil
	case <-patience.C:
		err = failure.Snooze(h.limits.Wait)
	case <-ctx.Done():
		err = ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-mine.granted: // at the same moment
		if ctx.Err() == nil {
			return func() { h.release(to) }, nil
		}
		to.active--
		h.dispatch(to)
	default:
		to.remove(mine)
	}
	return nil, err
}

func (h *hosts) release(to *host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	to.active--
	h.dispatch(to)
}

// pause lets no download begin for a while, because the host asked for that.
func (h *hosts) pause(name string, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	to := h.find(name)
	if until := time.Now().Add(d); until.After(to.next) {
		to.next = until
	}
}

// hostName returns the name of a host in the form in which names are compared.
func hostName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

func (h *hosts) find(name string) *host {
	name = hostName(name)
	if to := h.byName[name]; to != nil {
		return to
	}
	if len(h.byName) >= maxHosts {
		for known, other := range h.byName {
			if other.active == 0 && len(other.owners) == 0 && time.Now().After(other.next) {
				delete(h.byName, known)
			}
		}
	}
	to := &host{turns: map[string][]*turn{}, limits: h.limits.ByHost[name]}
	if to.limits.Concurrency == 0 {
		to.limits.Concurrency = h.limits.Concurrency
	}
	if to.limits.Delay == 0 {
		to.limits.Delay = h.limits.Delay
	}
	h.byName[name] = to
	return to
}

// dispatch grants turns, as many as may begin now, and comes back when the next may. The caller holds the lock.
func (h *hosts) dispatch(to *host) {
	for to.active < to.limits.Concurrency && len(to.owners) > 0 {
		if wait := time.Until(to.next); wait > 0 {
			if to.timer == nil {
				to.timer = time.AfterFunc(wait, func() {
					h.mu.Lock()
					defer h.mu.Unlock()
					to.timer = nil
					h.dispatch(to)
				})
			}
			return
		}
		to.active++
		to.next = time.Now().Add(to.limits.Delay)
		close(to.take().granted)
	}
}

func (t *host) add(mine *turn) {
	if len(t.turns[mine.owner]) == 0 {
		t.owners = append(t.owners, mine.owner)
	}
	t.turns[mine.owner] = append(t.turns[mine.owner], mine)
}

// take removes the next turn. Its owner goes to the end of the line.
func (t *host) take() *turn {
	owner := t.owners[0]
	next := t.turns[owner][0]
	t.owners = t.owners[1:]
	if t.turns[owner] = t.turns[owner][1:]; len(t.turns[owner]) > 0 {
		t.owners = append(t.owners, owner)
	} else {
		delete(t.turns, owner)
	}
	return next
}

func (t *host) remove(mine *turn) {
	left := slices.DeleteFunc(t.turns[mine.owner], func(other *turn) bool { return other == mine })
	if len(left) > 0 {
		t.turns[mine.owner] = left
		return
	}
	delete(t.turns, mine.owner)
	t.owners = slices.DeleteFunc(t.owners, func(owner string) bool { return owner == mine.owner })
}
