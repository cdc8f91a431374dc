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
	flights = 2    // folds under way at once: one reaches for the disk while the next is made
	foldMax = 1000 // drafts in one fold
)

// A folder lets calls that arrive while others are being written share one commit. There is no timer: a call that comes
// alone leaves at once.
type folder struct {
	run func(context.Context, []entry) error

	mu      sync.Mutex
	waiting []*call
	flying  int
	closed  bool
	landed  sync.WaitGroup
}

type call struct {
	ctx     context.Context
	entries []entry
	done    chan error
}

// submit writes entries together with whatever else waits, and returns when they are durable.
func (f *folder) submit(ctx context.Context, entries []entry) error {
	c := &call{ctx, entries, make(chan error, 1)}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "could not enqueue: the store is closed"}
	}
	f.waiting = append(f.waiting, c)
	if f.flying < flights {
		f.flying++
		f.landed.Go(f.fly)
	}
	f.mu.Unlock()
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return explain("enqueue", ctx.Err())
	}
}

// fly writes until nobody waits.
func (f *folder) fly() {
	for {
		f.mu.Lock()
		calls := f.take()
		if len(calls) == 0 {
			f.flying--
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
		f.write(calls)
		runtime.Gosched() // whoever was just answered may have more to say, and shall not miss this fold by a hair
	}
}

// take picks the calls of the next fold, leaving out those whose caller is gone.
func (f *folder) take() []*call {
	n, drafts := 0, 0
	for n < len(f.waiting) && drafts < foldMax {
		drafts += len(f.waiting[n].entries)
		n++
	}
	calls := slices.DeleteFunc(slices.Clone(f.waiting[:n]), func(c *call) bool { return c.ctx.Err() != nil })
	f.waiting = slices.Delete(f.waiting, 0, n)
	if len(calls) == 0 && len(f.waiting) > 0 {
		return f.take()
	}
	return calls
}

// write answers each call. If the fold is refused for what is in it, every call is tried alone, so that one cannot hurt the
// others. The callers' contexts have no say here: a fold is not one caller's.
func (f *folder) write(calls []*call) {
	ctx := context.Background()
	var all []entry
	for _, c := range calls {
		all = append(all, c.entries...)
	}
	err := f.run(ctx, all)
	alone := len(calls) > 1 && (refused(err) || errors.Is(err, holdfast.ErrConflict))
	for _, c := range calls {
		if alone {
			err = f.run(ctx, c.entries)
		}
		c.done <- err
	}
}

// refused reports whether the database answered, and did not like what it was given.
func refused(err error) bool {
	var refusal *pgconn.PgError
	return errors.As(err, &refusal) && !retryable(refusal, true)
}

// close refuses new calls and waits for those under way.
func (f *folder) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.landed.Wait()
}
