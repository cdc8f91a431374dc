// Package endhint tells callers that wait for the end of a job that it may have ended, when that happens in their own process.
package endhint

import (
	"sync"
	"sync/atomic"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Hints are the callers that wait for the ends of jobs. The zero value has none. It is safe for concurrent use, and costs settlements nothing while no caller waits.
type Hints struct {
	waiting atomic.Int64

	mu sync.Mutex
	by map[holdfast.ID]map[chan struct{}]struct{}
}

// EndHint returns a channel that has a value when the job may have ended in this process. The caller must call stop, once.
func (h *Hints) EndHint(id holdfast.ID) (ended <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by == nil {
		h.by = make(map[holdfast.ID]map[chan struct{}]struct{})
	}
	if h.by[id] == nil {
		h.by[id] = make(map[chan struct{}]struct{})
	}
	h.by[id][ch] = struct{}{}
	h.waiting.Add(1)
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.waiting.Add(-1)
		if delete(h.by[id], ch); len(h.by[id]) == 0 {
			delete(h.by, id)
		}
	}
}

// Settled tells the callers that wait for a job that one of these settlements may have ended it. Call it after they are committed. It does not look at what they
// say, because a cancellation overrules that.
func (h *Hints) Settled(settlements []store.Settlement) {
	if h.waiting.Load() == 0 {
		return
	}
	for i := range settlements {
		h.Ended(settlements[i].Job)
	}
}

// Ended tells the callers that wait for a job that it may have ended.
func (h *Hints) Ended(id holdfast.ID) {
	if h.waiting.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.by[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
