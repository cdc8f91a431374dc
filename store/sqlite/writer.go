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
	waiting int32 = iota
	taken
	abandoned
)

// A call is one caller's request to run a function in a write transaction.
type call struct {
	do    func(*tx) error // may run more than once; each run must start from nothing
	joins bool            // reads nothing that the calls before it have added to row batches
	state atomic.Int32
	since time.Time // when the caller submitted it
	news  news
	err   error
	done  chan struct{}
}

// A writer owns the connection that writes, and the queue of calls in front of it. Its loop runs in one goroutine.
type writer struct {
	cfg   Config
	bell  *bell
	lanes *lanes

	mu     sync.Mutex
	queue  []*call
	closed bool

	kick  chan struct{} // wakes the loop: a call may be waiting, an Await began, or the store is closing
	ended chan error

	// Only the goroutine of loop uses the fields below.
	session *session  // nil after a failure: the next call opens a new connection
	version int64     // SQLite's data_version as last read; it changes when another connection commits
	looked  time.Time // when data_version was last read
	seen    bool      // whether version was read on the present connection
	ears    ears      // the events that have listeners, as last read
}

func newWriter(cfg Config, b *bell, known *lanes, first *session) *writer {
	return &writer{cfg: cfg, bell: b, lanes: known, session: first, kick: make(chan struct{}, 1), ended: make(chan error, 1)}
}

// write runs do in a transaction and returns after that transaction is on disk. If do returns an error, its changes are
// undone and no other call is affected. do may run more than once.
func (w *writer) write(ctx context.Context, do func(*tx) error) error {
	return w.carry(ctx, &call{do: do})
}

// writeShared is write for a call that reads none of the rows that other calls have added to row batches. Its own rows
// may be inserted together with theirs.
func (w *writer) join(ctx context.Context, do func(*tx) error) error {
	return w.carry(ctx, &call{do: do, joins: true})
}

// submit queues a call and waits for its result, or until ctx ends while the call is still waiting.
func (w *writer) carry(ctx context.Context, c *call) error {
	if err := ctx.Err(); err != nil {
		return explain(err)
	}
	c.since, c.done = time.Now(), make(chan struct{})
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return errClosed
	}
	w.queue = append(w.queue, c)
	w.mu.Unlock()
	w.ring()
	select {
	case <-c.done:
	case <-ctx.Done():
		if c.state.CompareAndSwap(waiting, abandoned) {
			return explain(ctx.Err())
		}
		<-c.done
	}
	return explain(c.err)
}

// signal wakes the loop. It never blocks.
func (w *writer) ring() {
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
	w.ring()
	return <-w.ended
}

// loop commits one group of calls after the other until the writer is closed. There is no timer: a transaction begins
// as soon as a call waits, and takes all calls that are in the queue at that moment.
func (w *writer) loop() {
	for w.wait() {
		switch err := w.begin(w.wanted); {
		case errors.Is(err, errUnwanted):
		case err != nil:
			w.mend(err)
			for _, c := range w.take() {
				c.answer(err)
			}
		default:
			group := w.take()
			w.serve(group, false)
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
		if w.bell.awaited() {
			tick = time.After(glance - min(glance, time.Since(w.looked)))
		}
		select {
		case <-w.kick:
		case <-tick:
			if err := w.look(); err != nil && !busy(err) {
				w.mend(err)
			}
		}
	}
}

// maxGroup is the largest number of calls in one transaction: enough to share the sync among many, few enough to answer
// soon.
const fold = 1024

// takeCalls removes up to maxGroup calls from the queue and returns those whose caller has not given up.
func (w *writer) take() []*call {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.queue), fold)
	group := make([]*call, 0, n)
	for _, c := range w.queue[:n] {
		if c.state.CompareAndSwap(waiting, taken) {
			group = append(group, c)
		}
	}
	w.queue = append(w.queue[:0], w.queue[n:]...)
	clear(w.queue[len(w.queue):cap(w.queue)])
	return group
}

// dropAbandoned removes calls whose caller has given up. Calls that have waited too long for another process's lock are
// answered with the error last. It reports whether any call is left.
func (w *writer) wanted(last error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := w.queue[:0]
	for _, c := range w.queue {
		switch {
		case c.state.Load() == abandoned:
		case time.Since(c.since) < longest:
			left = append(left, c)
		case c.state.CompareAndSwap(waiting, taken):
			c.answer(last)
		}
	}
	clear(w.queue[len(left):])
	w.queue = left
	return len(left) > 0
}

var errUnwanted = errors.New("no caller waits for this transaction")

// begin opens a write transaction, and a connection if there is none. While another process holds the lock, begin tries
// again for as long as wanted returns true; then it returns errAbandoned.
func (w *writer) begin(wanted func(last error) bool) error {
	for pause := time.Duration(0); ; {
		err := w.tryBegin()
		if !busy(err) {
			return err
		}
		if !wanted(err) {
			return errUnwanted
		}
		pause = longer(pause)
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
		w.lanes.forget()
		w.seen = false
	}
	if _, err = w.session.exec("begin"); err == nil {
		err = w.look()
	}
	if err == nil && w.ears.unsure {
		err = w.ears.read(w.session)
	}
	if err != nil {
		w.undo()
	}
	return err
}

// resetConnection rolls back any open transaction. If the connection is broken or the rollback failed, it closes the
// connection; the next call opens another one.
func (w *writer) mend(err error) {
	w.undo()
	if w.session != nil && (broken(err) || !w.session.conn.AutocommitEnabled()) {
		_ = w.session.close()
		w.session = nil
	}
}

func (w *writer) undo() {
	if w.session != nil && !w.session.conn.AutocommitEnabled() {
		_, _ = w.session.exec("rollback")
	}
}

// checkInterval is how often the writer checks for commits of other processes while an Await is in progress.
const glance = 40 * time.Millisecond

// checkOtherWriters reads whether another connection has committed since the last check: another process, or a
// transaction of the application (see Store.In). If so, there may be new lanes, other listeners and new work, so it
// reads them again and wakes all waiters.
func (w *writer) look() error {
	w.looked = time.Now()
	if w.session == nil {
		return nil
	}
	var version int64
	if _, err := w.session.one("data_version", nil, &version); err != nil || version == w.version && w.seen {
		return err
	}
	var work, cancel bool
	if _, err := w.session.one("check_work", nil, &work, &cancel); err != nil {
		return err
	}
	if err := w.lanes.learn(w.session); err != nil {
		return err
	}
	if err := w.ears.read(w.session); err != nil {
		return err
	}
	w.version, w.seen = version, true
	w.bell.ring(news{all: work, cancel: cancel}, w.lanes)
	return nil
}

func (c *call) answer(err error) {
	c.err = err
	close(c.done)
}
