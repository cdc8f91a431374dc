package sse_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

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
