package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Payloads of notifications: the id of the sending store, the subject ("work" or "cancel"), and queues.
const (
	callerTxWake = "- work" // sent by a caller's transaction: no store ignores it as its own
	allQueues    = "*"
	payloadMax   = 7000                 // PostgreSQL allows 8000 bytes
	notifyGap    = 2 * time.Millisecond // minimum time between notifications
	listenPing   = 30 * time.Second     // idle time after which the connection is checked
)

// A hub delivers wake-ups: to waiters in this process directly, to other processes through LISTEN and NOTIFY. A wake-up for which no waiter is
// registered is kept for the next waiter, so none is lost between a claim and the Await that follows it.
//
// Wake-ups are hints. A lost one costs a worker at most one poll interval, and an unnecessary one costs a claim that finds nothing.
type hub struct {
	db      *database
	pooling *pooling
	ctx     context.Context // ends when the store is closed
	self    string          // id of this store: it ignores its own notifications

	mu                sync.Mutex
	waiters           map[*waiter]bool
	undelivered       map[string]bool // queues with a wake-up for which no waiter was registered
	undeliveredCancel bool
	pending           map[string]bool // queues to notify other processes of
	pendingCancel     bool            // notify other processes of a cancel request
	notifyDue         chan struct{}   // buffer of one

	listening sync.Once
}

type waiter struct {
	queues []string
	wake   chan store.Wake
}

func newHub(ctx context.Context, db *database, p *pooling) *hub {
	return &hub{
		db: db, pooling: p, ctx: ctx, self: holdfast.NewID().String(),
		waiters: map[*waiter]bool{}, undelivered: map[string]bool{}, pending: map[string]bool{}, notifyDue: make(chan struct{}, 1),
	}
}

// wake wakes workers, here and in other processes, because queues may have work or a job has a cancel request.
func (h *hub) wake(queues []string, cancel bool) {
	if len(queues) == 0 && !cancel {
		return
	}
	h.deliver(queues, cancel)
	h.mu.Lock()
	for _, queue := range queues {
		h.pending[queue] = true
	}
	h.pendingCancel = h.pendingCancel || cancel
	h.mu.Unlock()
	h.signalNotify()
}

// signalNotify makes the notification loop send what is pending.
func (h *hub) signalNotify() {
	select {
	case h.notifyDue <- struct{}{}:
	default: // already signalled
	}
}

// deliver wakes the waiters of this process.
func (h *hub) deliver(queues []string, cancel bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delivered, noWaiter := map[string]bool{}, len(h.waiters) == 0
	for w := range h.waiters {
		wake := store.Wake{Cancel: cancel}
		for _, queue := range queues {
			if queue == allQueues || len(w.queues) == 0 || slices.Contains(w.queues, queue) {
				wake.Work, delivered[queue] = true, true
			}
		}
		if wake != (store.Wake{}) {
			w.wake <- wake
			delete(h.waiters, w)
		}
	}
	for _, queue := range queues {
		if !delivered[queue] {
			h.undelivered[queue] = true
		}
	}
	h.undeliveredCancel = h.undeliveredCancel || cancel && noWaiter
}

// addWaiter registers a waiter, or wakes it at once if an undelivered wake-up is there for it.
func (h *hub) addWaiter(w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wake := store.Wake{Cancel: h.undeliveredCancel}
	h.undeliveredCancel = false
	for _, queue := range append([]string{allQueues}, w.queues...) {
		wake.Work = wake.Work || h.undelivered[queue]
		delete(h.undelivered, queue)
	}
	if len(w.queues) == 0 && len(h.undelivered) > 0 {
		wake.Work = true
		clear(h.undelivered)
	}
	if wake != (store.Wake{}) {
		w.wake <- wake
		return
	}
	h.waiters[w] = true
}

func (h *hub) removeWaiter(w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiters, w)
}

// EndHint returns a channel that has a value when the job may have ended in this process; holdfast.Wait uses it. The caller must call stop, once.
func (s *Store) EndHint(id holdfast.ID) (ended <-chan struct{}, stop func()) {
	return s.ends.EndHint(id)
}

// Await returns when there may be work in the queues (in any, if none is named) or a cancel request, or when patience has passed. It may return
// without a reason.
func (s *Store) Await(ctx context.Context, queues []string, patience time.Duration) (store.Wake, error) {
	if err := ctx.Err(); err != nil {
		return store.Wake{}, err
	}
	s.hub.listening.Do(func() { s.loops.Go(s.hub.listen) })
	w := &waiter{queues, make(chan store.Wake, 1)}
	s.hub.addWaiter(w)
	defer s.hub.removeWaiter(w)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case wake := <-w.wake:
		return wake, nil
	case <-ctx.Done():
		return store.Wake{}, ctx.Err()
	case <-timer.C:
		return store.Wake{}, nil
	case <-s.ctx.Done():
		return store.Wake{}, &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "could not wait for work: the store is closed"}
	}
}

// notify sends notifications to other processes until the store is closed. Wake-ups that arrive while one is being sent are combined in the next, so
// that none is lost and busy producers cause a few hundred notifications a second at most. When the store is closed it sends what is pending.
func (h *hub) notify() {
	for n := 0; ; {
		select {
		case <-h.notifyDue:
		case <-h.ctx.Done():
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = h.send(ctx) // other processes poll if this is lost
			return
		}
		if err := h.send(h.ctx); err != nil {
			n = min(n+1, 8)
			backoff(h.ctx, n)
			continue
		}
		n = 0
		gap := time.NewTimer(notifyGap)
		select {
		case <-gap.C:
		case <-h.ctx.Done():
			gap.Stop()
		}
	}
}

// takePending returns and clears what is to be sent.
func (h *hub) takePending() ([]string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	queues, cancel := slices.Sorted(maps.Keys(h.pending)), h.pendingCancel
	clear(h.pending)
	h.pendingCancel = false
	return queues, cancel
}

// restorePending puts back what could not be sent.
func (h *hub) restorePending(queues []string, cancel bool) {
	h.mu.Lock()
	for _, queue := range queues {
		h.pending[queue] = true
	}
	h.pendingCancel = h.pendingCancel || cancel
	h.mu.Unlock()
	h.signalNotify()
}

// send sends what is pending, and puts it back on an error.
func (h *hub) send(ctx context.Context) (err error) {
	ctx, done := withDeadline(ctx, defaultDeadline)
	defer done()
	queues, cancel := h.takePending()
	defer func() {
		if err != nil {
			h.restorePending(queues, cancel)
		}
	}()
	if cancel {
		if err := h.db.work.exec(ctx, h.db.sql["notify"], h.self+" cancel"); err != nil {
			return err
		}
	}
	if len(queues) == 0 {
		return nil
	}
	list := strings.Join(queues, " ")
	if len(list) > payloadMax {
		list = allQueues
	}
	return h.db.work.exec(ctx, h.db.sql["notify"], h.self+" work "+list)
}

// listen receives notifications of other processes until the store is closed, on a connection of its own, which is replaced when it breaks. Behind a
// pooler notifications do not arrive; then it logs that once and returns.
func (h *hub) listen() {
	for n := 0; h.ctx.Err() == nil; {
		err := h.listenOnce(func() { n = 0 })
		if errors.Is(err, errPooled) {
			h.pooling.logPolling()
			return
		}
		if err != nil {
			n = min(n+1, 9)
			backoff(h.ctx, n)
		}
	}
}

// listenOnce receives notifications on one connection until that fails.
func (h *hub) listenOnce(connected func()) error {
	ctx, cancel := context.WithTimeout(h.ctx, defaultDeadline)
	defer cancel()
	config, err := h.db.work.connConfig(ctx)
	if err != nil {
		return err
	}
	config.OnNotification = nil // one of the application would keep notifications from WaitForNotification
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if viaPooler, err := pooled(ctx, conn.PgConn()); err != nil {
		return err
	} else if viaPooler {
		return errPooled // LISTEN would remain in a session that others use later
	}
	if err := conn.PgConn().Exec(ctx, "LISTEN "+h.db.schema.channel()).Close(); err != nil {
		return err
	}
	connected()
	if err := h.catchUp(ctx, conn); err != nil {
		return err
	}
	for {
		ctx, cancel := context.WithTimeout(h.ctx, listenPing)
		note, err := conn.WaitForNotification(ctx)
		quiet := err != nil && ctx.Err() != nil && h.ctx.Err() == nil && !conn.IsClosed()
		cancel()
		switch {
		case err == nil:
			h.receive(note.Payload)
		case !quiet:
			return err
		case h.ping(conn) != nil:
			return err
		}
	}
}

// catchUp wakes waiters for what may have been notified before this connection listened.
func (h *hub) catchUp(ctx context.Context, conn *pgx.Conn) error {
	var work, cancel bool
	if err := conn.QueryRow(ctx, h.db.sql["check_missed_wakes"]).Scan(&work, &cancel); err != nil {
		return err
	}
	var queues []string
	if work {
		queues = []string{allQueues}
	}
	h.deliver(queues, cancel)
	return nil
}

// ping checks whether an idle connection still works.
func (h *hub) ping(conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(h.ctx, defaultDeadline)
	defer cancel()
	return conn.Ping(ctx)
}

// receive delivers a notification of another store.
func (h *hub) receive(payload string) {
	words := strings.Fields(payload)
	if len(words) < 2 || words[0] == h.self {
		return
	}
	switch words[1] {
	case "work":
		h.deliver(words[2:], false)
	case "cancel":
		h.deliver(nil, true)
	}
}
