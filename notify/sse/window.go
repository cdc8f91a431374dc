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
)

// unknown is where a window stands before the store was asked.
const unknown int64 = -1

// A window is the newest stretch of the feed, in memory, for all clients. It ends with the last client, with the handler, or when the
// store turns out to be another.
type window struct {
	cancel context.CancelFunc
	ended  <-chan struct{}

	mu     sync.Mutex
	from   int64 // every event behind this number, up to at, is in it
	at     int64
	events []*entry
	wake   chan struct{} // closed when something came
}

func (w *window) over() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// An entry is an event that is written down once, however many clients get it.
type entry struct {
	event holdfast.Event
	once  sync.Once
	text  []byte
}

func (e *entry) bytes(source string) []byte {
	e.once.Do(func() { e.text = block(e.event.Seq, subscription.Type(e.event), notify.Wrap(source, e.event)) })
	return e.text
}

// block is an event as it goes over the wire.
func block(seq int64, name string, data any) []byte {
	body, err := json.Marshal(data)
	if err != nil {
		body, _ = json.Marshal(map[string]string{"error": "the event cannot be written down: " + err.Error()})
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

// after answers with what came behind a number. When that reaches back further than the window, known is false. When there is nothing
// yet, it comes with a channel to wait on.
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

// add puts a page at the end, lets go of the oldest, and wakes everybody.
func (w *window) add(f holdfast.Feed, keep int) {
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

// begin says where the feed ended when the poller started.
func (w *window) begin(head int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from, w.at, w.events = head, head, nil
	close(w.wake)
	w.wake = make(chan struct{})
}

// poll asks the store for all clients until the window ends. Trouble is logged once, and costs nobody the connection.
func (h *Handler) poll(ctx context.Context, w *window) {
	tick := time.NewTicker(h.cfg.Poll)
	defer tick.Stop()
	troubled := false
	for {
		more, err := h.look(ctx, w)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, holdfast.ErrInvalid): // the feed ends before what it had told: the store was put back, or is another
			h.cfg.Log.Warn("the feed is shorter than it was: clients are sent away, to begin anew", "error", err)
			w.cancel()
			return
		case err != nil && !troubled:
			h.cfg.Log.Warn("the feed cannot be read; its clients wait", "error", err)
		}
		troubled = err != nil
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

// look reads one page, and reports whether there may be another.
func (h *Handler) look(ctx context.Context, w *window) (more bool, err error) {
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

// listen has the events written that clients are to see.
func (h *Handler) listen(ctx context.Context) error {
	if len(h.cfg.Listen) == 0 {
		return nil
	}
	return h.store.(keeper).Keep(ctx, holdfast.Change{Listen: []holdfast.Listener{{Name: "feed", Events: h.cfg.Listen}}})
}

func (h *Handler) head(ctx context.Context) (int64, error) {
	f, err := h.store.Feed(ctx, 0, 1)
	return f.Head, err
}
