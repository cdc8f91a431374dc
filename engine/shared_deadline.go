package engine

import (
	"context"
	"sync"
	"time"
)

// A sharedDeadline is one context with a deadline, shared by all attempts of a kind that start at about the same time. A timer for each attempt
// would cost more than the rest of the engine's work on it.
type sharedDeadline struct {
	ctx    context.Context
	cancel context.CancelFunc
	until  time.Time // attempts that start before this time share the deadline
}

// Timeouts below shortTimeout are exact. Longer ones last up to 1/deadlineShare longer than configured, and never less.
const (
	shortTimeout  = time.Minute
	deadlineShare = 512
)

// sharedDeadlines are the deadlines of one kind, oldest first.
type sharedDeadlines struct {
	mu  sync.Mutex
	all []sharedDeadline
}

// withTimeout returns the context of an attempt that starts now, with its deadline. parent must never end. The caller calls the returned function
// when the attempt has ended; it does not end a shared context, which other attempts still use.
func (k *kind) withTimeout(parent context.Context) (context.Context, context.CancelFunc) {
	if k.timeout < shortTimeout {
		return context.WithTimeout(parent, k.timeout)
	}
	w := &k.deadlines
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
	step := k.timeout / deadlineShare
	ctx, cancel := context.WithDeadline(parent, now.Add(k.timeout+step))
	w.all = append(w.all, sharedDeadline{ctx, cancel, now.Add(step)})
	return ctx, func() {}
}

// cancelAll releases the timers. It is called when no attempt runs any more.
func (w *sharedDeadlines) cancelAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, each := range w.all {
		each.cancel()
	}
	w.all = nil
}
