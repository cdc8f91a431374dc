package engine

import (
	"context"
	"sync"
	"time"
)

// A window is the deadline of all attempts of one kind that begin at about the same time. A timer for each attempt would
// cost more than the engine's whole book-keeping.
type window struct {
	ctx    context.Context
	cancel context.CancelFunc
	until  time.Time // whoever begins before this shares it
}

// Short timeouts are kept to the letter. A longer one may last a share longer than was asked for, never shorter.
const (
	shortTimeout = time.Minute
	windowShare  = 512
)

// windows are those of one kind, oldest first.
type windows struct {
	mu  sync.Mutex
	all []window
}

// bound gives an attempt that begins now its deadline. The context carries what parent carries; parent never ends.
func (k *kind) bound(parent context.Context) (context.Context, context.CancelFunc) {
	if k.timeout < shortTimeout {
		return context.WithTimeout(parent, k.timeout)
	}
	w := &k.windows
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if last := len(w.all) - 1; last >= 0 && now.Before(w.all[last].until) {
		return w.all[last].ctx, func() {}
	}
	for len(w.all) > 0 && w.all[0].ctx.Err() != nil {
		w.all[0].cancel()
		w.all = w.all[1:]
	}
	step := k.timeout / windowShare
	ctx, cancel := context.WithDeadline(parent, now.Add(k.timeout+step))
	w.all = append(w.all, window{ctx, cancel, now.Add(step)})
	return ctx, func() {}
}

// shut lets go of the deadlines that are still to come. Nobody works any more.
func (w *windows) shut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, each := range w.all {
		each.cancel()
	}
	w.all = nil
}
