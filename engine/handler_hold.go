package engine

import (
	"errors"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// handlerHolds are the holds on dependencies that handlers asked for. It is safe for concurrent use.
type handlerHolds struct {
	*core

	mu   sync.Mutex
	all  map[string]store.Hold // not placed yet, by dependency; the longest counts
	ends map[string]time.Time  // when the placed ones end, by this process's clock
}

// request queues the hold on a whole dependency that a handler asked for. A hold that ends before one that is already in place is dropped.
func (w *handlerHolds) request(o *outcome) {
	name := o.verdict.Dependency
	if name == "" {
		name = dependencyName(o.attempt)
	}
	if name == "" {
		w.logIgnored("hold", errors.New("a handler asked to hold a dependency but named none: use failure.On, or set Kind.Dependency"))
		return
	}
	h := store.Hold{
		Dependency: name, Source: store.SourceHandler, For: o.verdict.Hold, Actor: clip(w.worker, check.MaxKey),
		Reason: "requested by a handler of kind " + o.attempt.lease.Kind,
	}
	if f := o.verdict.Failure; f != nil {
		h.Reason = clip(h.Reason+": "+f.Code+": "+f.Message, 1000)
	}
	if h.Check() != nil {
		w.logIgnored("hold", errors.New("a handler asked to hold a dependency with an invalid name: use letters, digits and _ - . : /"))
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if was, ok := w.all[name]; ok && was.For >= h.For || !time.Now().Add(h.For).After(w.ends[name].Add(time.Second)) {
		return // it is already held for longer
	}
	w.put(name, h)
	signal(w.signals.breakers)
}

// put queues a hold. The caller holds the lock.
func (w *handlerHolds) put(name string, h store.Hold) {
	if w.all == nil {
		w.all = make(map[string]store.Hold)
	}
	if w.ends == nil {
		w.ends = make(map[string]time.Time)
	}
	w.all[name] = h
}

// place places the queued holds. If the store call fails they are queued again, unless a newer one was queued meanwhile.
func (w *handlerHolds) place() error {
	w.mu.Lock()
	all := w.all
	w.all = nil
	w.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	var c store.Change
	for _, name := range sortedKeys(all) {
		c.Place = append(c.Place, all[name])
	}
	err := w.keepChange(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, h := range all {
		if err == nil {
			w.ends[name] = time.Now().Add(h.For)
		} else if _, newer := w.all[name]; !newer {
			w.put(name, h)
		}
	}
	for name, end := range w.ends {
		if time.Now().After(end) {
			delete(w.ends, name)
		}
	}
	return err
}
