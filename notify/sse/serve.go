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
)

const (
	fill   = 32 << 10 // bytes that are gathered before they are sent
	stride = 500      // events that do not match before the client is told how far the feed was read
)

// ServeHTTP tells the feed until the client goes away, is too slow, or the handler is closed.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "the feed is read with GET", http.StatusMethodNotAllowed)
		return
	}
	wanted, err := h.wanted(r)
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
		http.Error(w, "the feed takes no more clients now: "+err.Error()+". Come back later", http.StatusServiceUnavailable)
		return
	}
	defer h.leave()
	c := &client{handler: h, window: window, wanted: wanted, writer: w, control: http.NewResponseController(w), told: unknown}
	if err := c.start(r.Context()); err != nil {
		h.cfg.Log.Warn("a client of the feed cannot be served", "error", err)
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the feed cannot be read now. Come back later", http.StatusServiceUnavailable)
		return
	}
	c.run(r.Context())
}

var errForbidden = errors.New("you may not read this feed")

// wanted is what a request asks for.
type wanted struct {
	after  int64 // unknown: what happens next
	owner  string
	filter subscription.Subscription
}

func (q *wanted) matches(e holdfast.Event) bool {
	return (q.owner == "" || e.Owner == q.owner) && q.filter.Matches(e)
}

func (h *Handler) wanted(r *http.Request) (q wanted, err error) {
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
	// The header is what a client saw last; the query is what it was first asked to begin behind, and stays in its address.
	after := r.Header.Get("Last-Event-ID")
	if after == "" {
		after = query.Get("after")
	}
	if after == "" {
		q.after = unknown
		return q, nil
	}
	if q.after, err = strconv.ParseInt(after, 10, 64); err != nil || q.after < 0 {
		return q, fmt.Errorf("%.40q is no number of an event: give the id of the last one you saw, or 0 for all there are", after)
	}
	return q, nil
}

// A client is one connection.
type client struct {
	handler *Handler
	window  *window
	wanted  wanted
	writer  http.ResponseWriter
	control *http.ResponseController

	at   int64 // what was told or passed over
	told int64 // the last id the client knows
	out  []byte
}

// start finds where to begin, and sends the header at once.
func (c *client) start(ctx context.Context) error {
	f, err := c.handler.store.Feed(ctx, 0, 1)
	if err != nil {
		return err
	}
	c.at = c.wanted.after
	if c.at == unknown {
		c.at = f.Head
	}
	h := c.writer.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	c.writer.WriteHeader(http.StatusOK)
	// The hint is a line of the first event, because some clients take one that stands alone for an event.
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

// run tells until something ends it.
func (c *client) run(ctx context.Context) {
	if err := c.flush(); err != nil {
		if errors.Is(err, http.ErrNotSupported) {
			c.handler.cfg.Log.Error("the feed cannot be flushed: some middleware wraps the response and has no method Unwrap", "error", err)
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
			if c.tell(events) != nil {
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

// read catches up from the store, a page at a time. Few do so at once, so that a thousand who come back together do not drown it.
func (c *client) read(ctx context.Context) error {
	select {
	case c.handler.catchUp <- struct{}{}:
	case <-c.window.ended:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	f, err := c.handler.store.Feed(ctx, c.at, c.handler.cfg.Page)
	<-c.handler.catchUp // given back before anything is written: a slow client must not keep the seat
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
	if err := c.tell(events); err != nil {
		return err
	}
	c.at = f.Next
	return c.flush()
}

// tell writes what matches, and now and then how far it has come.
func (c *client) tell(events []*entry) error {
	for _, e := range events {
		c.at = e.event.Seq
		if c.wanted.matches(e.event) {
			c.out = append(c.out, e.bytes(c.handler.cfg.Source)...)
			c.told = c.at
		} else if c.at-c.told >= stride {
			c.position()
		}
		if len(c.out) < fill {
			continue
		}
		if err := c.flush(); err != nil {
			return err
		}
	}
	return nil
}

// position says how far the feed was read, if the client does not know. It is an event and not only an id, because some clients
// remember ids only of what they show.
func (c *client) position() {
	if c.told != c.at {
		c.out = append(c.out, block(c.at, "position", map[string]int64{"seq": c.at})...)
		c.told = c.at
	}
}

// reset says that the client has missed something, and from where it goes on.
func (c *client) reset(from, missed, head int64) {
	c.out = append(c.out, block(from, "reset", map[string]int64{"asked": c.at, "from": from, "missed": missed, "head": head})...)
	c.at, c.told = from, from
}

// flush sends what was gathered. A client that does not take it in time is cut off.
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
