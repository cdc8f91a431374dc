package sse_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/holdfastdev/holdfast"
	feedsse "github.com/holdfastdev/holdfast/notify/sse"
	"github.com/holdfastdev/holdfast/store"
)

// patience is how long a test waits for something that must happen. It is generous: nothing is measured by it.
const patience = 60 * time.Second

// until polls until a condition is true.
func until(t *testing.T, what string, yes func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		if yes() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}

// A feedStore is a store that has only a feed, with the guarantees of a real one.
type feedStore struct {
	mu     sync.Mutex
	events []store.Event
	purged int64
	reads  int
	heard  []store.Listener
	broken error
}

func (m *feedStore) Feed(_ context.Context, after int64, limit int) (store.Feed, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	head := int64(len(m.events))
	if m.broken != nil {
		return store.Feed{}, m.broken
	}
	if after > head {
		return store.Feed{}, &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("the feed ends at %d", head)}
	}
	f := store.Feed{Head: head, Purged: m.purged}
	if after < m.purged {
		f.Missed, after = m.purged-after, m.purged
	}
	f.Events = append(f.Events, m.events[after:min(after+int64(limit), head)]...)
	f.Next = after + int64(len(f.Events))
	return f, nil
}

func (m *feedStore) Apply(_ context.Context, c store.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard = append(m.heard, c.Listen...)
	return nil
}

// happen appends events of jobs of some kind.
func (m *feedStore) happen(n int, kind, owner string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range n {
		m.events = append(m.events, store.Event{Seq: int64(len(m.events) + 1), Job: holdfast.NewID(), Name: store.EventFailed, Kind: kind, Owner: owner, Queue: "q", At: time.Unix(1, 0)})
	}
}

func (m *feedStore) forget(upTo int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.purged = upTo
}

func (m *feedStore) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads
}

// open serves a feed over a real connection.
func open(t *testing.T, m feedsse.Store, cfg feedsse.Config) (*feedsse.Handler, *httptest.Server) {
	t.Helper()
	if cfg.Poll == 0 {
		cfg.Poll = time.Millisecond
	}
	if cfg.Retry == 0 {
		cfg.Retry = time.Millisecond
	}
	h, err := feedsse.New(m, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() { h.Close(); s.Close() })
	return h, s
}

// A reader is a client that records the events it gets.
type reader struct {
	mu     sync.Mutex
	events []sse.Event
}

func (r *reader) all() []sse.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]sse.Event(nil), r.events...)
}

// ids are the numbers of the events of the feed, in the order of arrival.
func (r *reader) ids() (ids []string) {
	for _, e := range r.all() {
		if e.Type != "position" && e.Type != "reset" {
			ids = append(ids, e.LastEventID)
		}
	}
	return ids
}

// settled reports whether the client has received its position.
func (r *reader) settled() bool { return len(r.all()) > 0 }

// connect follows a feed until the test ends, and reconnects whenever the connection is lost.
func connect(t *testing.T, url string, header map[string]string) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	client := sse.Client{HTTPClient: &http.Client{Transport: &http.Transport{}}, Backoff: sse.Backoff{InitialInterval: time.Millisecond, MaxInterval: 10 * time.Millisecond}}
	r := &reader{}
	connection := client.NewConnection(request)
	connection.SubscribeToAll(func(e sse.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, e)
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil { // a browser reconnects after a clean end by itself; this client does not
			_ = connection.Connect()
		}
	}()
	t.Cleanup(func() { cancel(); <-ended; client.HTTPClient.CloseIdleConnections() })
	return r
}

// inARow fails unless the ids are the numbers from first to last.
func inARow(t *testing.T, ids []string, first, last int) {
	t.Helper()
	if len(ids) != last-first+1 {
		t.Fatalf("%d events, not %d: %q...", len(ids), last-first+1, ids[:min(len(ids), 5)])
	}
	for i, id := range ids {
		if id != fmt.Sprint(first+i) {
			t.Fatalf("event %s at the place of %d", id, first+i)
		}
	}
}
