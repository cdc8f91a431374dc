package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/decode"
	"github.com/holdfastdev/holdfast/store"
)

// defaultChunkWait is how long a chunk waits for more jobs.
const defaultChunkWait = time.Second

// ChunkOptions says which jobs are handled together. The zero value fills all slots of the kind, or waits a second.
type ChunkOptions struct {
	// Size is the most jobs of one call; when zero, as many as the kind has slots. Every job of a chunk takes a slot, so Size must not be greater than
	// KindOptions.Slots, or else Config.Slots.
	Size int
	// Wait is how long the first job of a chunk waits for others; 1 s when zero. It is part of the attempt, and so of its time limit.
	Wait time.Duration
}

// HandleChunk registers a handler that works on many jobs of a kind in one call: up to Size jobs, or those that started within Wait. It returns one error for each
// job, in order, and each is judged as if a handler of its own had returned it: one job completes, another is retried, and each keeps its own result, checkpoint
// and progress. Nil completes all of them. If everything failed for one cause, return slices.Repeat([]error{err}, len(jobs)). A slice of another length fails every
// job of the chunk, and so does a panic. Otherwise HandleChunk is like Handle.
//
// The context of the call ends when the contexts of all its jobs have ended: at their time limits, at a stop of the engine, or when the last one that is left was
// cancelled or lost its lease. A job whose context ends before that leaves the chunk after half of Config.AbandonAfter; the others are not disturbed, and what the
// call then returns for that job is ignored. Middleware is called for each job; the context of the call has no values of it. When the engine stops, a chunk that
// waits for more jobs is handed over at once.
func HandleChunk[A holdfast.Args](e *Engine, work func(ctx context.Context, jobs []*Job[A]) []error, chunk ChunkOptions, options ...KindOptions) {
	name := kindOf[A]()
	if work == nil {
		e.registry.register(name, nil, nil, options)
		return
	}
	c := &chunker{runner: e.runner, size: chunk.Size, wait: chunk.Wait, work: func(ctx context.Context, members []*member) []error {
		jobs := make([]*Job[A], len(members))
		for i, m := range members {
			jobs[i] = m.job.(*Job[A])
		}
		return work(ctx, jobs)
	}}
	decodeArgs := decode.For[A]()
	decoded := func(ctx context.Context, lease *store.Lease, args json.RawMessage, a *attempt) error {
		m := &member{ctx: ctx, attempt: a}
		job := &Job[A]{Lease: *lease}
		if a != nil {
			job.attempt = &attempt{maker: a.maker, lease: a.lease, kind: a.kind, chunked: a}
			m.shown = job.attempt
		}
		if err := decodeArgs(args, &job.Args); err != nil {
			return &unreadable{fmt.Errorf("the arguments of %q cannot be decoded: %w", name, err)}
		}
		m.job = job
		return c.join(m)
	}
	e.registry.registerChunks(name, c,
		func(ctx context.Context, raw *Raw) error { return decoded(ctx, &raw.Lease, raw.Args, raw.attempt) },
		func(ctx context.Context, a *attempt) error { return decoded(ctx, a.lease, a.lease.Args, a) },
		options)
}

// A chunker collects the attempts of a kind into chunks and hands each chunk over to the handler. Every attempt runs on its goroutine as any other does, with its
// slot, its context and the middleware around it; there it joins a chunk and waits for its part of what the handler returns. So whatever ends an attempt ends it
// alone. It is safe for concurrent use.
type chunker struct {
	runner *runner
	size   int
	wait   time.Duration
	work   func(ctx context.Context, members []*member) []error

	mu     sync.Mutex
	open   *chunk // waits for more jobs; nil if there is none
	closed bool   // chunks do not wait any more
}

// A chunk is the jobs of one call of the handler. The lock of its chunker guards what changes.
type chunk struct {
	members []*member
	timer   *time.Timer
	cancel  context.CancelCauseFunc // ends the context of the call; nil until the chunk is handed over
	live    int                     // members whose context has not ended
	done    chan struct{}           // closed when the handler has returned
}

// A member is one job of a chunk.
type member struct {
	ctx     context.Context
	job     any      // a *Job[A]
	attempt *attempt // nil in a test of middleware
	shown   *attempt // what the handler writes to; taken over unless the member leaves first

	// Set before done is closed.
	err    error
	thrown *chunkPanic // the handler panicked
	exited bool        // the handler ended its goroutine
}

// A chunkPanic is the panic of a handler of chunks, thrown again for each of its jobs.
type chunkPanic struct {
	value any
	stack string
}

func (p *chunkPanic) Error() string { return thrownError(p.value).Error() }

// join adds a job to the open chunk, waits until the handler has returned, and returns the error for this job. If the job's context ends first, it leaves the
// chunk, unless no other job of the chunk is left: then it waits, as a handler that must stop has time to return.
func (c *chunker) join(m *member) error {
	of := c.add(m)
	select {
	case <-of.done:
		return m.verdict()
	case <-m.ctx.Done():
	}
	if c.endMember(of, m) {
		return context.Cause(m.ctx)
	}
	timer := time.NewTimer(c.runner.cfg.AbandonAfter / 2)
	defer timer.Stop()
	select {
	case <-of.done:
		return m.verdict()
	case <-timer.C:
	}
	if c.hasLive(of) {
		return context.Cause(m.ctx)
	}
	<-of.done
	return m.verdict()
}

// add adds a job to the open chunk, or to a new one, and hands the chunk over if it is full.
func (c *chunker) add(m *member) *chunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.open
	if of == nil {
		of = &chunk{done: make(chan struct{})}
		of.timer = time.AfterFunc(c.wait, func() { c.handOver(of) })
		c.open = of
	}
	of.members = append(of.members, m)
	of.live++
	if len(of.members) >= c.size || c.closed {
		c.handOverLocked(of)
	}
	return of
}

// endMember records that the context of a job has ended. left is true if the chunk was not handed over yet: then the job is no longer in it.
func (c *chunker) endMember(of *chunk, m *member) (left bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of.live--
	if of.cancel != nil {
		if of.live == 0 {
			of.cancel(context.Cause(m.ctx))
		}
		return false
	}
	of.members = slices.DeleteFunc(of.members, func(other *member) bool { return other == m })
	if len(of.members) == 0 {
		of.timer.Stop()
		c.open = nil
	}
	return true
}

// hasLive reports whether the context of any job of a chunk has not ended.
func (c *chunker) hasLive(of *chunk) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return of.live > 0
}

// close hands over the open chunk, and from now on every job at once.
func (c *chunker) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.open != nil {
		c.handOverLocked(c.open)
	}
}

func (c *chunker) handOver(of *chunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == of {
		c.handOverLocked(of)
	}
}

// handOverLocked calls the handler with the open chunk, on a goroutine of its own. The caller holds the lock.
func (c *chunker) handOverLocked(of *chunk) {
	c.open = nil
	of.timer.Stop()
	ctx, release := c.withDeadline(of.members)
	ctx, of.cancel = context.WithCancelCause(ctx)
	go func() {
		defer release()
		defer of.cancel(nil)
		c.call(ctx, of, slices.Clone(of.members))
	}()
}

// withDeadline returns the context of a call: its deadline is the last one of its jobs.
func (c *chunker) withDeadline(members []*member) (context.Context, context.CancelFunc) {
	var last time.Time
	for _, m := range members {
		if at, ok := m.ctx.Deadline(); ok && at.After(last) {
			last = at
		}
	}
	if last.IsZero() {
		return context.WithCancel(c.runner.handlerCtx)
	}
	return context.WithDeadline(c.runner.handlerCtx, last)
}

// call calls the handler and tells each job what it returned for it, however it ends.
func (c *chunker) call(ctx context.Context, of *chunk, members []*member) {
	var errs []error
	returned := false
	defer close(of.done)
	defer func() {
		if returned {
			return
		}
		var thrown *chunkPanic
		if value := recover(); value != nil {
			thrown = &chunkPanic{value, string(debug.Stack())}
		}
		for _, m := range members {
			m.thrown, m.exited = thrown, thrown == nil
		}
	}()
	errs = c.work(ctx, members)
	returned = true
	for i, m := range members {
		switch {
		case len(errs) == len(members):
			m.err = errs[i]
		case len(errs) > 0:
			m.err = fmt.Errorf("the handler returned %d errors for %d jobs: return one for each, in order, or nil if all are complete", len(errs), len(members))
		}
	}
}

// verdict ends the attempt as the handler ended: it returns the error for this job, panics, or ends the goroutine. It runs on the goroutine of the attempt.
func (m *member) verdict() error {
	switch {
	case m.thrown != nil:
		panic(m.thrown)
	case m.exited:
		runtime.Goexit()
	}
	if m.attempt != nil {
		m.attempt.written = m.shown.written
	}
	return m.err
}
