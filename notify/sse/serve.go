package sse

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

const (
	flushBytes    = 32 << 10 // bytes that are buffered before they are sent
	positionEvery = 500      // events without a match after which the client is sent its position
)

// ServeHTTP sends events until the client disconnects, is too slow, or the handler is closed.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "method not allowed: use GET", http.StatusMethodNotAllowed)
		return
	}
	query, err := h.query(r)
	switch {
	case errors.Is(err, errForbidden):
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	window, err := h.join()
	if err != nil {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the event stream is not available: "+err.Error()+". Try again later", http.StatusServiceUnavailable)
		return
	}
	defer h.leave()
	c := &client{handler: h, window: window, query: query, writer: w, control: http.NewResponseController(w), sent: unknown}
	if err := c.start(r.Context()); err != nil {
		h.cfg.Log.Warn("event stream failed, client gets 503", "error", err)
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the events cannot be read. Try again later", http.StatusServiceUnavailable)
		return
	}
	c.run(r.Context())
}

var errForbidden = errors.New("this request may not read the events")

// feedQuery is what a request asks for.
type feedQuery struct {
	after  int64 // unknown: start with the next event
	owner  string
	filter subscription.Subscription
}

func (q *feedQuery) matches(e store.Event) bool {
	return (q.owner == "" || e.Owner == q.owner) && q.filter.Matches(e)
}

func (h *Handler) query(r *http.Request) (q feedQuery, err error) {
	if h.cfg.Owner != nil {
		owner, ok := h.cfg.Owner(r)
		if !ok {
			return q, errForbidden
		}
		q.owner = owner
	}
	query := r.URL.Query()
	q.filter = subscription.Subscription{Events: query["event"], Kinds: query["kind"], Owners: query["owner"], Codes: query["code"]}
	for _, text := range query["group"] {
		id, err := holdfast.ParseID(text)
		if err != nil {
			return q, err
		}
		q.filter.Groups = append(q.filter.Groups, id)
	}
	// The header is the last event that the client saw; the query is where it first started, and stays in its URL.
	after := r.Header.Get("Last-Event-ID")
	if after == "" {
		after = query.Get("after")
	}
	if after == "" {
		q.after = unknown
		return q, nil
	}
	if q.after, err = strconv.ParseInt(after, 10, 64); err != nil || q.after < 0 {
		return q, fmt.Errorf("%.40q is not an event number: give the id of the last event you saw, or 0 for all events", after)
	}
	return q, nil
}

// A client is one connection.
type client struct {
	handler *Handler
	window  *window
	query   feedQuery
	writer  http.ResponseWriter
	control *http.ResponseController

	at   int64 // last event that was sent or skipped
	sent int64 // last id that the client knows
	out  []byte
}

// start finds the position and sends the header.
func (c *client) start(ctx context.Context) error {
	f, err := c.handler.store.Feed(ctx, 0, 1)
	if err != nil {
		return err
	}
	c.at = c.query.after
	if c.at == unknown {
		c.at = f.Head
	}
	h := c.writer.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	c.writer.WriteHeader(http.StatusOK)
	// The retry hint is part of the first event, because some clients take a hint of its own for an event.
	c.out = fmt.Appendf(c.out, "retry: %d\n", c.handler.cfg.Retry.Milliseconds())
	switch {
	case c.at > f.Head:
		c.reset(f.Head, 0, f.Head)
	case c.at < f.Purged:
		c.reset(f.Purged, f.Purged-c.at, f.Head)
	default:
		c.position()
	}
	return nil
}

// run sends events until the connection ends.
func (c *client) run(ctx context.Context) {
	if err := c.flush(); err != nil {
		if errors.Is(err, http.ErrNotSupported) {
			c.handler.cfg.Log.Error("event stream cannot be flushed: a middleware wraps the response without a method Unwrap", "error", err)
		}
		return
	}
	tick := time.NewTicker(c.handler.cfg.Comment)
	defer tick.Stop()
	for !c.window.over() && ctx.Err() == nil {
		events, at, known, wake := c.window.after(c.at)
		switch {
		case !known:
			if c.read(ctx) != nil {
				return
			}
			continue
		case wake == nil:
			if c.writeEvents(events) != nil {
				return
			}
			c.at = at
			continue
		}
		if c.flush() != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-c.window.ended:
		case <-wake:
		case <-tick.C:
			c.out = append(c.out, ": still here\n\n"...)
			c.position()
		}
	}
}

// read catches up from the store, one page at a time. At most four clients do so at once, so that many clients that reconnect together do not overload it.
func (c *client) read(ctx context.Context) error {
	select {
	case c.handler.catchUp <- struct{}{}:
	case <-c.window.ended:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	f, err := c.handler.store.Feed(ctx, c.at, c.handler.cfg.Page)
	<-c.handler.catchUp // before anything is written: a slow client must not block the others
	if err != nil {
		return err
	}
	if f.Missed > 0 {
		c.reset(c.at+f.Missed, f.Missed, f.Head)
	}
	events := make([]*entry, len(f.Events))
	for i, e := range f.Events {
		events[i] = &entry{event: e}
	}
	if err := c.writeEvents(events); err != nil {
		return err
	}
	c.at = f.Next
	return c.flush()
}

// writeEvents writes the events that match, and the position after many that do not.
func (c *client) writeEvents(events []*entry) error {
	for _, e := range events {
		c.at = e.event.Seq
		if c.query.matches(e.event) {
			c.out = append(c.out, e.bytes(c.handler.cfg.Source)...)
			c.sent = c.at
		} else if c.at-c.sent >= positionEvery {
			c.position()
		}
		if len(c.out) < flushBytes {
			continue
		}
		if err := c.flush(); err != nil {
			return err
		}
	}
	return nil
}

// position sends how far the feed was read, unless the client knows. It is an event with a name, because some clients remember only the ids of events that they
// handle.
func (c *client) position() {
	if c.sent != c.at {
		c.out = append(c.out, encodeEvent(c.at, "position", map[string]int64{"seq": c.at})...)
		c.sent = c.at
	}
}

// reset tells the client that it has missed events, and where the stream continues.
func (c *client) reset(from, missed, head int64) {
	c.out = append(c.out, encodeEvent(from, "reset", map[string]int64{"asked": c.at, "from": from, "missed": missed, "head": head})...)
	c.at, c.sent = from, from
}

// flush sends what is buffered. A client that does not accept it in time is disconnected.
func (c *client) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	if err := c.control.SetWriteDeadline(time.Now().Add(c.handler.cfg.Write)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err := c.writer.Write(c.out)
	c.out = c.out[:0]
	if err != nil {
		return err
	}
	return c.control.Flush()
}
