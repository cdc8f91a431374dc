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
)

// The words of a notification: which store sent it, what it is about, and the queues.
const (
	callerTxWake = "- work" // from nobody in particular: a guest's transaction
	allQueues    = "*"
	payloadMax   = 7000 // the database takes 8000 bytes
	notifyGap    = 2 * time.Millisecond
	listenPing   = 30 * time.Second
)

// A hub brings wake-ups to those who wait, here at once and elsewhere through the database. A wake-up that finds nobody
// waiting is kept for the next one who asks, so none falls between a claim and the wait that follows it.
type hub struct {
	self string // tells this store's notifications from others'

	mu                sync.Mutex
	waiters           map[*waiter]bool
	undelivered       map[string]bool // queues
	undeliveredCancel bool
	pending           map[string]bool // queues to tell other processes about
	pendingCancel     bool            // and that a job is to be cancelled
	notifyDue         chan struct{}

	listen sync.Once
}

type waiter struct {
	queues []string
	wake   chan holdfast.Wake
}

func (h *hub) init() {
	h.self = holdfast.NewID().String()
	h.waiters, h.undelivered, h.pending = map[*waiter]bool{}, map[string]bool{}, map[string]bool{}
	h.notifyDue = make(chan struct{}, 1)
}

// wake tells everybody that there may be work in the queues, or a job to stop.
func (s *Store) wake(queues []string, cancel bool) {
	if len(queues) == 0 && !cancel {
		return
	}
	h := &s.hub
	h.deliver(queues, cancel)
	h.mu.Lock()
	for _, queue := range queues {
		h.pending[queue] = true
	}
	h.pendingCancel = h.pendingCancel || cancel
	h.mu.Unlock()
	h.signalNotify()
}

func (h *hub) signalNotify() {
	select {
	case h.notifyDue <- struct{}{}:
	default: // already reminded
	}
}

// tell wakes those who wait in this process.
func (h *hub) deliver(queues []string, cancel bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	heard, nobody := map[string]bool{}, len(h.waiters) == 0
	for w := range h.waiters {
		wake := holdfast.Wake{Cancel: cancel}
		for _, queue := range queues {
			if queue == allQueues || len(w.queues) == 0 || slices.Contains(w.queues, queue) {
				wake.Work, heard[queue] = true, true
			}
		}
		if wake != (holdfast.Wake{}) {
			w.wake <- wake
			delete(h.waiters, w)
		}
	}
	for _, queue := range queues {
		if !heard[queue] {
			h.undelivered[queue] = true
		}
	}
	h.undeliveredCancel = h.undeliveredCancel || cancel && nobody
}

// join registers a waiter, unless a wake-up is already there for it.
func (h *hub) addWaiter(w *waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wake := holdfast.Wake{Cancel: h.undeliveredCancel}
	h.undeliveredCancel = false
	for _, queue := range append([]string{allQueues}, w.queues...) {
		wake.Work = wake.Work || h.undelivered[queue]
		delete(h.undelivered, queue)
	}
	if len(w.queues) == 0 && len(h.undelivered) > 0 {
		wake.Work = true
		clear(h.undelivered)
	}
	if wake != (holdfast.Wake{}) {
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

// Await returns when there may be new work in the queues (in any, if none is named) or a job to cancel, or when patience runs out.
func (s *Store) Await(ctx context.Context, queues []string, patience time.Duration) (holdfast.Wake, error) {
	if err := ctx.Err(); err != nil {
		return holdfast.Wake{}, err
	}
	s.hub.listen.Do(func() { s.loops.Go(s.listen) })
	w := &waiter{queues, make(chan holdfast.Wake, 1)}
	s.hub.addWaiter(w)
	defer s.hub.removeWaiter(w)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case wake := <-w.wake:
		return wake, nil
	case <-ctx.Done():
		return holdfast.Wake{}, ctx.Err()
	case <-timer.C:
		return holdfast.Wake{}, nil
	case <-s.ctx.Done():
		return holdfast.Wake{}, &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "could not wait for work: the store is closed"}
	}
}

// notify tells other processes. What gathers while one notification is on its way leaves with the next: nothing is dropped,
// and busy producers cost a few hundred notifications a second at most. A store that is closed says its last word first.
func (s *Store) notify() {
	for n := 0; ; {
		select {
		case <-s.hub.notifyDue:
		case <-s.ctx.Done():
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = s.send(ctx) // whoever misses it polls
			return
		}
		if err := s.send(s.ctx); err != nil {
			n = min(n+1, 8)
			backoff(s.ctx, n)
			continue
		}
		n = 0
		gap := time.NewTimer(notifyGap)
		select {
		case <-gap.C:
		case <-s.ctx.Done():
			gap.Stop()
		}
	}
}

func (h *hub) takePending() ([]string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	queues, cancel := slices.Sorted(maps.Keys(h.pending)), h.pendingCancel
	clear(h.pending)
	h.pendingCancel = false
	return queues, cancel
}

// restore puts back what could not be sent.
func (h *hub) restorePending(queues []string, cancel bool) {
	h.mu.Lock()
	for _, queue := range queues {
		h.pending[queue] = true
	}
	h.pendingCancel = h.pendingCancel || cancel
	h.mu.Unlock()
	h.signalNotify()
}

// send tells what has gathered, and puts it back if it cannot.
func (s *Store) send(ctx context.Context) (err error) {
	ctx, done := withDeadline(ctx, defaultDeadline)
	defer done()
	queues, cancel := s.hub.takePending()
	defer func() {
		if err != nil {
			s.hub.restorePending(queues, cancel)
		}
	}()
	if cancel {
		if _, err := s.work.Exec(ctx, s.sql["notify"], s.hub.self+" cancel"); err != nil {
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
	_, err = s.work.Exec(ctx, s.sql["notify"], s.hub.self+" work "+list)
	return err
}

// listen hears other processes for as long as the store lives, over a connection of its own that is replaced when it breaks.
func (s *Store) listen() {
	for n := 0; s.ctx.Err() == nil; {
		err := s.listenOnce(func() { n = 0 })
		if errors.Is(err, errPooled) {
			s.pooling.logPolling()
			return
		}
		if err != nil {
			n = min(n+1, 9)
			backoff(s.ctx, n)
		}
	}
}

func (s *Store) listenOnce(connected func()) error {
	ctx, cancel := context.WithTimeout(s.ctx, defaultDeadline)
	defer cancel()
	config := s.work.Config().ConnConfig.Copy()
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
		return errPooled // and LISTEN would stay behind in a session of others
	}
	if err := conn.PgConn().Exec(ctx, "LISTEN holdfast").Close(); err != nil {
		return err
	}
	connected()
	if err := s.catchUp(ctx, conn); err != nil {
		return err
	}
	for {
		ctx, cancel := context.WithTimeout(s.ctx, listenPing)
		note, err := conn.WaitForNotification(ctx)
		quiet := err != nil && ctx.Err() != nil && s.ctx.Err() == nil && !conn.IsClosed()
		cancel()
		switch {
		case err == nil:
			s.hub.receive(note.Payload)
		case !quiet:
			return err
		case s.ping(conn) != nil:
			return err
		}
	}
}

// catchUp makes good for what was said while nobody listened.
func (s *Store) catchUp(ctx context.Context, conn *pgx.Conn) error {
	var work, cancel bool
	if err := conn.QueryRow(ctx, s.sql["check_missed_wakes"]).Scan(&work, &cancel); err != nil {
		return err
	}
	var queues []string
	if work {
		queues = []string{allQueues}
	}
	s.hub.deliver(queues, cancel)
	return nil
}

// ping finds out whether a silent connection is a dead one.
func (s *Store) ping(conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(s.ctx, defaultDeadline)
	defer cancel()
	return conn.Ping(ctx)
}

// read passes on what another store said.
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
