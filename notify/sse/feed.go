// Package sse tells what happens over HTTP while it happens, as server-sent events, which browsers and curl understand as they are.
//
//	handler, err := feed.New(store, feed.Config{Listen: []string{"*"}})
//	mux.Handle("GET /events", handler)
//
// Each event has its number in the feed as id, its type as name (job.failed, group.partial, ...) and its CloudEvents form as data. Who
// comes back with the last id it saw (browsers do so by themselves) goes on behind it, without a gap and without a twin; who brings no id
// begins with what happens next. Three events are not of the feed:
//
//   - "position" only says how far the feed was read, so that a resume is cheap when little of it matches;
//   - "reset" says that what was asked for is not there any more, in numbers, and goes on with what is left;
//   - a comment every few seconds keeps the connection open.
//
// The query narrows as a subscription does: ?event=, kind=, owner=, group= and code=, each as often as wanted.
package sse

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Store is what is told from.
type Store interface {
	Feed(ctx context.Context, after int64, limit int) (holdfast.Feed, error)
}

// keeper is a store that can be told what to write to the feed.
type keeper interface {
	Keep(ctx context.Context, c holdfast.Change) error
}

// Config says how a Handler works. The zero value works: every field says what it then means.
type Config struct {
	Source string // of events, as receivers see it; "/holdfast" when empty

	// Listen are the events of jobs that are to be in the feed; "*" for all. Without any, clients see what subscriptions listen for,
	// and always what people did and what befell groups, breakers and duties. The store must be able to Keep.
	Listen []string
	// Owner binds a request to an owner: it sees that owner's events and no others. An empty owner sees everything; false is
	// answered with 403. When nil every request sees everything.
	Owner func(*http.Request) (owner string, ok bool)

	Clients int           // at once, more are answered with 503; 1000 when zero
	Poll    time.Duration // how often the store is asked, for all clients together; 250 ms when zero
	Comment time.Duration // how often a comment keeps a silent connection open; 15 s when zero
	Retry   time.Duration // how soon a client that lost its connection is asked to come back; 2 s when zero
	Write   time.Duration // how long a client may take to accept what it is sent before it is cut off; 10 s when zero
	Page    int           // events read at a time; 500 when zero

	Log *slog.Logger // slog.Default when nil
}

// A Handler serves the feed. However many clients it has, one poller asks the store for them; only who catches up reads by itself.
type Handler struct {
	store Store
	cfg   Config

	catchUp chan struct{} // a seat for each who may read the store by itself at the same time

	mu      sync.Mutex
	clients int
	closed  bool
	window  *window
	polling sync.WaitGroup
}

// New makes a handler. It asks the store for nothing before the first client comes.
func New(store Store, cfg Config) (*Handler, error) {
	if _, ok := store.(keeper); len(cfg.Listen) > 0 && !ok {
		return nil, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "a feed that listens for events needs a store that can keep that: give the store itself, or leave Listen out"}
	}
	for _, d := range []struct {
		field     *time.Duration
		otherwise time.Duration
	}{{&cfg.Poll, 250 * time.Millisecond}, {&cfg.Comment, 15 * time.Second}, {&cfg.Retry, 2 * time.Second}, {&cfg.Write, 10 * time.Second}} {
		if *d.field <= 0 {
			*d.field = d.otherwise
		}
	}
	if cfg.Clients <= 0 {
		cfg.Clients = 1000
	}
	if cfg.Page <= 0 {
		cfg.Page = 500
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Handler{store: store, cfg: cfg, catchUp: make(chan struct{}, 4)}, nil
}

var (
	errFull   = errors.New("as many clients as there may be")
	errClosed = errors.New("the feed is closing")
)

// join takes a client on. The first one starts the poller.
func (h *Handler) join() (*window, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, errClosed
	case h.clients >= h.cfg.Clients:
		return nil, errFull
	}
	h.clients++
	if h.window == nil || h.window.over() {
		ctx, cancel := context.WithCancel(context.Background())
		h.window = &window{cancel: cancel, ended: ctx.Done(), wake: make(chan struct{}), at: unknown}
		w := h.window
		h.polling.Go(func() { h.poll(ctx, w) })
	}
	return h.window, nil
}

// leave lets a client go. The last one ends the poller.
func (h *Handler) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients--; h.clients == 0 {
		h.window.cancel()
		h.window = nil
	}
}

// Clients counts those who are connected.
func (h *Handler) Clients() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clients
}

// Close sends every client away and takes on no more. Give it to http.Server.RegisterOnShutdown: a server that shuts down waits for its
// requests, and these would never end.
func (h *Handler) Close() {
	h.mu.Lock()
	h.closed = true
	if h.window != nil {
		h.window.cancel()
	}
	h.mu.Unlock()
	h.polling.Wait()
}
