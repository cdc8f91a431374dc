package postgres

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfastdev/holdfast"
)

const (
	maxWriters     = 2    // concurrent writes: while one waits for the disk, the next is prepared
	maxWriteDrafts = 1000 // drafts in one write, not counting the rest of its last call
)

// A coalescer combines small Enqueue calls that arrive while others are being written into one transaction, so that they share its
// commit. There is no timer: a call that finds a free writer is written at once.
//
// Each call gets the result of its own drafts. A write commits all drafts of its calls or none. If the database refuses a combined write
// because of its content, every call is written again on its own, so one bad call cannot fail the others. The ids of the drafts do not
// change between the two writes and the refused write was rolled back, so nothing is stored twice.
type coalescer struct {
	insert func(context.Context, []entry) error // writes entries in a transaction of their own

	mu      sync.Mutex
	waiting []*enqueueCall
	writers int // goroutines that run writeLoop
	closed  bool
	running sync.WaitGroup // the writers
}

// An enqueueCall is one call of Enqueue that waits for its commit.
type enqueueCall struct {
	ctx     context.Context
	entries []entry
	done    chan error // buffer of one, so that a writer never waits for a caller
}

// submit writes entries, together with other waiting calls, and returns when they are committed. If ctx ends first, submit returns an
// error although the entries may still be written.
func (f *coalescer) submit(ctx context.Context, entries []entry) error {
	c := &enqueueCall{ctx, entries, make(chan error, 1)}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "could not enqueue: the store is closed"}
	}
	f.waiting = append(f.waiting, c)
	if f.writers < maxWriters {
		f.writers++
		f.running.Go(f.writeLoop)
	}
	f.mu.Unlock()
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return explain("enqueue", ctx.Err())
	}
}

// writeLoop writes until no call waits.
func (f *coalescer) writeLoop() {
	for {
		f.mu.Lock()
		calls := f.next()
		if len(calls) == 0 {
			f.writers--
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
		f.write(calls)
		runtime.Gosched() // lets callers that just got their result submit again before the next write is put together
	}
}

// next removes the calls of the next write from the queue and leaves out those whose caller has stopped waiting. The caller holds f.mu.
func (f *coalescer) next() []*enqueueCall {
	n, drafts := 0, 0
	for n < len(f.waiting) && drafts < maxWriteDrafts {
		drafts += len(f.waiting[n].entries)
		n++
	}
	calls := slices.DeleteFunc(slices.Clone(f.waiting[:n]), func(c *enqueueCall) bool { return c.ctx.Err() != nil })
	f.waiting = slices.Delete(f.waiting, 0, n)
	if len(calls) == 0 && len(f.waiting) > 0 {
		return f.next()
	}
	return calls
}

// write writes the calls together and reports the result to each. If the database refuses the content, it writes each call on its own.
// It does not use the contexts of the callers: a caller that stops waiting must not cancel the write of the others.
func (f *coalescer) write(calls []*enqueueCall) {
	ctx := context.Background()
	var all []entry
	for _, c := range calls {
		all = append(all, c.entries...)
	}
	err := f.insert(ctx, all)
	alone := len(calls) > 1 && (refused(err) || errors.Is(err, holdfast.ErrConflict))
	for _, c := range calls {
		if alone {
			err = f.insert(ctx, c.entries)
		}
		c.done <- err
	}
}

// refused reports whether the database rejected the content of a write, so that the same write would be rejected again.
func refused(err error) bool {
	var refusal *pgconn.PgError
	return errors.As(err, &refusal) && !retryable(refusal, true)
}

// close refuses new calls and waits for the writers.
func (f *coalescer) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.running.Wait()
}
