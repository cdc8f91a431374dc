package engine

import (
	"errors"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// wishes are the holds that handlers asked for and that are not placed yet.
type wishes struct {
	mu   sync.Mutex
	all  map[string]holdfast.Hold // by dependency: the last word counts
	ends map[string]time.Time     // of those that were placed, by this process's clock
}

// holdDependency remembers a handler's word that a whole dependency is to be left alone for a while.
func (e *Engine) holdDependency(o *outcome) {
	name := o.verdict.Dependency
	if name == "" {
		name = ownDependency(o.attempt)
	}
	if name == "" {
		e.complain("hold", errors.New("a handler asked to hold a dependency and named none: use failure.On, or give its kind a Dependency"))
		return
	}
	h := holdfast.Hold{
		Dependency: name, Source: holdfast.SourceHandler, For: o.verdict.Hold, Actor: clip(e.worker, holdfast.MaxKey),
		Reason: "a handler of kind " + o.attempt.lease.Kind + " said so",
	}
	if f := o.verdict.Failure; f != nil {
		h.Reason = clip(h.Reason+": "+f.Code+": "+f.Message, 1000)
	}
	if h.Check() != nil {
		e.complain("hold", errors.New("a handler asked to hold a dependency whose name cannot be one"))
		return
	}
	w := &e.wishes
	w.mu.Lock()
	defer w.mu.Unlock()
	if was, ok := w.all[name]; ok && was.For >= h.For || !time.Now().Add(h.For).After(w.ends[name].Add(time.Second)) {
		return // it is held for longer
	}
	w.put(name, h)
	nudge(e.called)
}

// put remembers a wish. Caller holds the lock.
func (w *wishes) put(name string, h holdfast.Hold) {
	if w.all == nil {
		w.all = make(map[string]holdfast.Hold)
	}
	if w.ends == nil {
		w.ends = make(map[string]time.Time)
	}
	w.all[name] = h
}

// grantWishes places the holds that handlers asked for.
func (e *Engine) grantWishes() error {
	w := &e.wishes
	w.mu.Lock()
	all := w.all
	w.all = nil
	w.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	var c holdfast.Change
	for _, name := range sortedKeys(all) {
		c.Place = append(c.Place, all[name])
	}
	err := e.keepChange(c)
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
