// Package sse sends events over HTTP as they happen, as server-sent events, which browsers and curl understand.
//
//	handler, err := sse.New(store, sse.Config{Listen: []string{"*"}})
//	mux.Handle("GET /events", handler)
//
// Each event has its number in the feed as id, its type as name (job.failed, group.partial, ...) and its CloudEvents form as data. A client that reconnects with
// the last id it saw (browsers send it themselves) continues after it, without gaps and without duplicates; a client without an id starts with the next
// event. Three things in the stream are not events of the feed:
//
//   - "position" only says how far the feed was read, so that a reconnect is cheap when few events match;
//   - "reset" says that the events after the given id are no longer there, how many, and where the stream continues;
//   - a comment every few seconds keeps the connection open.
//
// The query filters as a subscription does: ?event=, kind=, owner=, group= and code=, each any number of times.
package sse

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A Store is where events are read from.
type Store interface {
	Feed(ctx context.Context, after int64, limit int) (store.Feed, error)
}

// keeper is a store that accepts which events to write to the feed.
type keeper interface {
	Apply(ctx context.Context, c store.Change) error
}

// Config configures a Handler. The zero value works.
type Config struct {
	Source string // CloudEvents source; "/holdfast" when empty

	// Listen are the events of jobs that are written to the feed; "*" for all. Without any, clients see the events that subscriptions listen for, and always what
	// people did and the events of groups, breakers and duties. The store must have the method Keep.
	Listen []string
	// Owner binds a request to an owner: it sees only that owner's events. An empty owner sees everything; false is answered with 403. When nil, every request sees
	// everything.
	Owner func(*http.Request) (owner string, ok bool)

	Clients int           // maximum number at the same time, more get 503; 1000 when zero
	Poll    time.Duration // interval of reading the store, for all clients together; 250 ms when zero
	Comment time.Duration // interval of comments on an idle connection; 15 s when zero
	Retry   time.Duration // reconnect time that clients are told; 2 s when zero
	Write   time.Duration // time limit of one write; a slower client is disconnected; 10 s when zero
	Page    int           // events in one read; 500 when zero

	Log *slog.Logger // slog.Default when nil
}

// A Handler serves the feed. One goroutine reads the store for all clients; only clients that catch up read the store themselves, at most four at a time.
type Handler struct {
	store Store
	cfg   Config

	catchUp chan struct{} // limits the clients that read the store themselves at the same time

	mu      sync.Mutex
	clients int
	closed  bool
	window  *window
	polling sync.WaitGroup
}

// New makes a handler. It does not use the store before the first client connects.
func New(db Store, cfg Config) (*Handler, error) {
	if _, ok := db.(keeper); len(cfg.Listen) > 0 && !ok {
		return nil, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "Listen needs a store with the method Keep: give the store itself, or leave Listen out"}
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
	return &Handler{store: db, cfg: cfg, catchUp: make(chan struct{}, 4)}, nil
}

var (
	errFull   = errors.New("too many clients")
	errClosed = errors.New("the server is shutting down")
)

// join admits a client. The first one starts the poller.
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

// leave removes a client. The last one stops the poller.
func (h *Handler) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.clients--; h.clients == 0 {
		h.window.cancel()
		h.window = nil
	}
}

// Clients is the number of connected clients.
func (h *Handler) Clients() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clients
}

// Close disconnects every client and admits no more. Pass it to http.Server.RegisterOnShutdown: a server that shuts down waits for its requests, and these never
// end by themselves.
func (h *Handler) Close() {
	h.mu.Lock()
	h.closed = true
	if h.window != nil {
		h.window.cancel()
	}
	h.mu.Unlock()
	h.polling.Wait()
}
