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

// How a call fares on its way to the writer. A caller may give up only while the call is waiting: from the moment it is
// taken its outcome is known soon, and the caller waits for it.
const (
	waiting int32 = iota
	taken
	abandoned
)

// A call is one caller's wish to write.
type call struct {
	do    func(*tx) error // may run more than once, and then starts from nothing
	joins bool            // reads nothing that a call before it gathers
	state atomic.Int32
	since time.Time
	news  news
	err   error
	done  chan struct{}
}

// A writer is the goroutine that owns the writing connection, and the queue of calls before it.
type writer struct {
	cfg   Config
	bell  *bell
	lanes *lanes

	mu     sync.Mutex
	queue  []*call
	closed bool

	kick  chan struct{} // there may be something in the queue, somebody to watch for, or the end
	ended chan error

	// What follows is the goroutine's own.
	session *session // nil after trouble: the next call connects again
	version int64    // of the data, as last seen: it changes when another connection commits
	looked  time.Time
	seen    bool // whether the data was looked at since the connection was made
	ears    ears // what is listened for in the data, as last seen
}

func newWriter(cfg Config, b *bell, known *lanes, first *session) *writer {
	return &writer{cfg: cfg, bell: b, lanes: known, session: first, kick: make(chan struct{}, 1), ended: make(chan error, 1)}
}

// write runs do in a transaction and returns after that is on disk. Whatever do refuses is undone, and touches no other call.
func (w *writer) write(ctx context.Context, do func(*tx) error) error {
	return w.carry(ctx, &call{do: do})
}

// join is write for a call whose rows may be written together with those of its neighbours.
func (w *writer) join(ctx context.Context, do func(*tx) error) error {
	return w.carry(ctx, &call{do: do, joins: true})
}

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

func (w *writer) ring() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// close lets the calls in the queue finish, and ends the goroutine.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.ring()
	return <-w.ended
}

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
				runtime.Gosched() // they were answered and may have more: let them all come before the next transaction begins
			}
		}
	}
	if w.session == nil {
		w.ended <- nil
		return
	}
	w.ended <- w.session.close()
}

// wait returns true when there is a call, and false when there will be none. While somebody awaits work it looks, now and
// then, whether another process left some.
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

// fold is how many calls share a transaction at most: enough to make the sync cheap, few enough to answer soon.
const fold = 1024

// take removes the calls from the queue that still have a caller.
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

// wanted drops the calls whose callers gave up or have waited long enough for somebody else's lock, and reports whether
// any is left.
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

var errUnwanted = errors.New("nobody waits for this transaction any more")

// begin opens a transaction that may write, connecting first if need be. While another process has the lock it tries again
// for as long as somebody wants it to.
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

// mend leaves the connection without a transaction, or without trust: then the next call opens another.
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

// glance is how often the file is looked at for the work of other processes, while somebody awaits it.
const glance = 40 * time.Millisecond

// look notices whether another connection has committed since the last look: another process, or the caller's own
// transaction. Then lanes may be new, and there may be work.
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
