package sqlite

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"
)

// The states of a call. A caller may give up only while its call is waiting. Once the writer has taken the call, its
// result is known soon, and the caller waits for it.
const (
	callWaiting int32 = iota
	callTaken
	callAbandoned
)

// A call is one caller's request to run a function in a write transaction.
type call struct {
	do       func(*tx) error // may run more than once; each run must start from nothing
	canJoin  bool            // reads nothing that the calls before it have added to row batches
	state    atomic.Int32
	queuedAt time.Time // when the caller submitted it
	wakeup   wakeup
	err      error
	done     chan struct{}
}

// A writer owns the connection that writes, and the queue of calls in front of it. Its loop runs in one goroutine.
type writer struct {
	cfg   Config
	waker *waker
	lanes *laneCache

	mu     sync.Mutex
	queue  []*call
	closed bool

	locked atomic.Bool // another connection holds the write lock, and the loop waits for it

	kick  chan struct{} // wakes the loop: a call may be waiting, an Await began, or the store is closing
	ended chan error

	// Only the goroutine of loop uses the fields below.
	session      *session       // nil after a failure: the next call opens a new connection
	dataVersion  int64          // SQLite's data_version as last read; it changes when another connection commits
	checkedAt    time.Time      // when data_version was last read
	versionKnown bool           // whether version was read on the present connection
	listened     listenedEvents // the events that have listeners, as last read
}

func newWriter(cfg Config, b *waker, known *laneCache, first *session) *writer {
	return &writer{cfg: cfg, waker: b, lanes: known, session: first, kick: make(chan struct{}, 1), ended: make(chan error, 1)}
}

// write runs do in a transaction and returns after that transaction is on disk. If do returns an error, its changes are
// undone and no other call is affected. do may run more than once.
func (w *writer) write(ctx context.Context, do func(*tx) error) error {
	return w.submit(ctx, &call{do: do})
}

// writeShared is write for a call that reads none of the rows that other calls have added to row batches. Its own rows
// may be inserted together with theirs.
func (w *writer) writeShared(ctx context.Context, do func(*tx) error) error {
	return w.submit(ctx, &call{do: do, canJoin: true})
}

// submit queues a call and waits for its result, or until ctx ends while the call is still waiting.
func (w *writer) submit(ctx context.Context, c *call) error {
	if err := ctx.Err(); err != nil {
		return explain(err)
	}
	c.queuedAt, c.done = time.Now(), make(chan struct{})
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return errClosed
	}
	w.queue = append(w.queue, c)
	w.mu.Unlock()
	w.signal()
	select {
	case <-c.done:
	case <-ctx.Done():
		if c.state.CompareAndSwap(callWaiting, callAbandoned) {
			return w.explainEnd(ctx.Err())
		}
		<-c.done
	}
	return explain(c.err)
}

// explainEnd returns the error of a call whose context ended while the call was waiting.
func (w *writer) explainEnd(err error) error {
	if w.locked.Load() {
		return locked(err)
	}
	return explain(err)
}

// signal wakes the loop. It never blocks.
func (w *writer) signal() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// close lets the calls in the queue finish, ends the loop and closes the connection.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.signal()
	return <-w.ended
}

// loop commits one group of calls after the other until the writer is closed. There is no timer: a transaction begins
// as soon as a call waits, and takes all calls that are in the queue at that moment.
func (w *writer) loop() {
	for w.wait() {
		switch err := w.begin(w.dropAbandoned); {
		case errors.Is(err, errAbandoned):
		case err != nil:
			w.resetConnection(err)
			for _, c := range w.takeCalls() {
				c.answer(err)
			}
		default:
			group := w.takeCalls()
			w.commitGroup(group, false)
			if len(group) > 1 {
				runtime.Gosched() // answered callers may submit again: let all of them do so before the next transaction begins
			}
		}
	}
	if w.session == nil {
		w.ended <- nil
		return
	}
	w.ended <- w.session.close()
}

// wait returns true when a call is waiting, and false when the writer is closed and no call is left. While an Await is
// in progress, wait also checks at intervals whether another process has committed work.
func (w *writer) wait() bool {
	for {
		w.mu.Lock()
		some, closed := len(w.queue) > 0, w.closed
		w.mu.Unlock()
		if some || closed {
			return some
		}
		var tick <-chan time.Time
		if w.waker.hasWaiters() {
			tick = time.After(checkInterval - min(checkInterval, time.Since(w.checkedAt)))
		}
		select {
		case <-w.kick:
		case <-tick:
			if err := w.checkOtherWriters(); err != nil && !busy(err) {
				w.resetConnection(err)
			}
		}
	}
}

// maxGroup is the largest number of calls in one transaction: enough to share the sync among many, few enough to answer
// soon.
const maxGroup = 1024

// takeCalls removes up to maxGroup calls from the queue and returns those whose caller has not given up.
func (w *writer) takeCalls() []*call {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.queue), maxGroup)
	group := make([]*call, 0, n)
	for _, c := range w.queue[:n] {
		if c.state.CompareAndSwap(callWaiting, callTaken) {
			group = append(group, c)
		}
	}
	w.queue = append(w.queue[:0], w.queue[n:]...)
	clear(w.queue[len(w.queue):cap(w.queue)])
	return group
}

// dropAbandoned removes calls whose caller has given up. Calls that have waited too long for another process's lock are
// answered with the error last. It reports whether any call is left.
func (w *writer) dropAbandoned(last error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	remaining := w.queue[:0]
	for _, c := range w.queue {
		switch {
		case c.state.Load() == callAbandoned:
		case time.Since(c.queuedAt) < callLockWait:
			remaining = append(remaining, c)
		case c.state.CompareAndSwap(callWaiting, callTaken):
			c.answer(last)
		}
	}
	clear(w.queue[len(remaining):])
	w.queue = remaining
	return len(remaining) > 0
}

var errAbandoned = errors.New("no caller waits for this transaction")

// begin opens a write transaction, and a connection if there is none. While another process holds the lock, begin tries
// again for as long as wanted returns true; then it returns errAbandoned.
func (w *writer) begin(keepTrying func(last error) bool) error {
	defer w.locked.Store(false)
	for pause := time.Duration(0); ; {
		err := w.tryBegin()
		w.locked.Store(busy(err))
		if !busy(err) {
			return err
		}
		if !keepTrying(err) {
			return errAbandoned
		}
		pause = nextPause(pause)
		<-time.After(pause)
	}
}

// tryBegin makes one attempt to open a write transaction. BEGIN IMMEDIATE takes the write lock at once, so everything
// that the transaction reads stays true until it commits.
func (w *writer) tryBegin() (err error) {
	if w.session == nil {
		if w.session, err = connect(w.cfg, sqlite.OpenReadWrite); err != nil {
			return err
		}
		w.lanes.reset()
		w.versionKnown = false
	}
	if _, err = w.session.exec("begin"); err == nil {
		err = w.checkOtherWriters()
	}
	if err == nil && w.listened.uncommitted {
		err = w.listened.read(w.session)
	}
	if err != nil {
		w.rollback()
	}
	return err
}

// resetConnection rolls back any open transaction. If the connection is broken or the rollback failed, it closes the
// connection; the next call opens another one.
func (w *writer) resetConnection(err error) {
	w.rollback()
	if w.session != nil && (broken(err) || !w.session.conn.AutocommitEnabled()) {
		_ = w.session.close()
		w.session = nil
	}
}

func (w *writer) rollback() {
	if w.session != nil && !w.session.conn.AutocommitEnabled() {
		_, _ = w.session.exec("rollback")
	}
}

// checkInterval is how often the writer checks for commits of other processes while an Await is in progress.
const checkInterval = 40 * time.Millisecond

// checkOtherWriters reads whether another connection has committed since the last check: another process, or a
// transaction of the application (see Store.In). If so, there may be new lanes, other listeners and new work, so it
// reads them again and wakes all waiters.
func (w *writer) checkOtherWriters() error {
	w.checkedAt = time.Now()
	if w.session == nil {
		return nil
	}
	var version int64
	if _, err := w.session.one("data_version", nil, &version); err != nil || version == w.dataVersion && w.versionKnown {
		return err
	}
	var work, cancel bool
	if _, err := w.session.one("check_work", nil, &work, &cancel); err != nil {
		return err
	}
	if err := w.lanes.load(w.session); err != nil {
		return err
	}
	if err := w.listened.read(w.session); err != nil {
		return err
	}
	w.dataVersion, w.versionKnown = version, true
	w.waker.notify(wakeup{allQueues: work, cancel: cancel}, w.lanes)
	return nil
}

func (c *call) answer(err error) {
	c.err = err
	close(c.done)
}
