package sse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// unknown is the position of a window before the first read.
const unknown int64 = -1

// A window is the newest part of the feed, in memory, for all clients. It ends with the last client, with the handler, or when the feed is found to be shorter than
// before.
type window struct {
	cancel context.CancelFunc
	ended  <-chan struct{}

	mu     sync.Mutex
	from   int64 // it has every event after this number, up to at
	at     int64
	events []*entry
	wake   chan struct{} // closed when something was added
}

func (w *window) over() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// An entry is an event that is encoded once, however many clients get it.
type entry struct {
	event store.Event
	once  sync.Once
	text  []byte
}

func (e *entry) bytes(source string) []byte {
	e.once.Do(func() { e.text = encodeEvent(e.event.Seq, subscription.Type(e.event), notify.Wrap(source, e.event)) })
	return e.text
}

// encodeEvent encodes a server-sent event.
func encodeEvent(seq int64, name string, data any) []byte {
	body, err := json.Marshal(data)
	if err != nil {
		body, _ = json.Marshal(map[string]string{"error": "the event cannot be encoded: " + err.Error()})
	}
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '_'
		}
		return r
	}, name)
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %d\nevent: %s\ndata: %s\n\n", seq, name, body)
	return b.Bytes()
}

// after returns the events after a number. known is false if the window does not reach back that far. If there are none yet, wake is a channel to wait on.
func (w *window) after(seq int64) (events []*entry, at int64, known bool, wake <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at == unknown || seq >= w.at {
		return nil, seq, true, w.wake
	}
	if seq < w.from {
		return nil, seq, false, nil
	}
	first := len(w.events)
	for first > 0 && w.events[first-1].event.Seq > seq {
		first--
	}
	return w.events[first:len(w.events):len(w.events)], w.at, true, nil
}

// add appends a page, drops the oldest events, and wakes all clients.
func (w *window) add(f store.Feed, keep int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.Missed > 0 {
		w.events, w.from = nil, w.at+f.Missed
	}
	w.at = f.Next
	events := w.events
	for _, e := range f.Events {
		events = append(events, &entry{event: e})
	}
	if extra := len(events) - keep; extra > 0 {
		w.from = events[extra-1].event.Seq
		events = append([]*entry(nil), events[extra:]...)
	}
	w.events = events
	close(w.wake)
	w.wake = make(chan struct{})
}

// begin sets the position to the end of the feed when the poller starts.
func (w *window) begin(head int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from, w.at, w.events = head, head, nil
	close(w.wake)
	w.wake = make(chan struct{})
}

// poll reads the store for all clients until the window ends. An error is logged once and does not disconnect clients.
func (h *Handler) poll(ctx context.Context, w *window) {
	tick := time.NewTicker(h.cfg.Poll)
	defer tick.Stop()
	failing := false
	for {
		more, err := h.pollOnce(ctx, w)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, holdfast.ErrInvalid): // the feed ends before the position: the store was restored or replaced
			h.cfg.Log.Warn("feed is shorter than before: disconnecting clients so that they start again", "error", err)
			w.cancel()
			return
		case err != nil && !failing:
			h.cfg.Log.Warn("feed cannot be read, will retry", "error", err)
		}
		failing = err != nil
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pollOnce reads one page, and reports whether there may be another.
func (h *Handler) pollOnce(ctx context.Context, w *window) (more bool, err error) {
	w.mu.Lock()
	at := w.at
	w.mu.Unlock()
	if at == unknown {
		if err := h.listen(ctx); err != nil {
			return false, err
		}
		head, err := h.head(ctx)
		if err != nil {
			return false, err
		}
		w.begin(head)
		return false, nil
	}
	f, err := h.store.Feed(ctx, at, h.cfg.Page)
	if err != nil {
		return false, err
	}
	if f.Next > at {
		w.add(f, 4*h.cfg.Page)
	}
	return len(f.Events) >= h.cfg.Page, nil
}

// listen registers the events of jobs that the store must write to the feed.
func (h *Handler) listen(ctx context.Context) error {
	if len(h.cfg.Listen) == 0 {
		return nil
	}
	return h.store.(keeper).Apply(ctx, store.Change{Listen: []store.Listener{{Name: "feed", Events: h.cfg.Listen}}})
}

func (h *Handler) head(ctx context.Context) (int64, error) {
	f, err := h.store.Feed(ctx, 0, 1)
	return f.Head, err
}
