package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify"
	feedsse "github.com/holdfastdev/holdfast/notify/sse"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// A follower records the events that an independent client gets.
type follower struct {
	mu     sync.Mutex
	events []sse.Event
}

// jobEvents returns the events of jobs, in the order of arrival.
func (f *follower) jobEvents() (events []sse.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if e.Type != "position" && e.Type != "reset" {
			events = append(events, e)
		}
	}
	return events
}

// follow follows a feed until the test ends, and reconnects whenever the connection is lost.
func follow(t *testing.T, url string) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := sse.Client{HTTPClient: &http.Client{Transport: &http.Transport{}}, Backoff: sse.Backoff{InitialInterval: time.Millisecond, MaxInterval: 10 * time.Millisecond}}
	f := &follower{}
	connection := client.NewConnection(request)
	connection.SubscribeToAll(func(e sse.Event) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.events = append(f.events, e)
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil { // a browser reconnects after a clean end by itself; this client does not
			_ = connection.Connect()
		}
	}()
	t.Cleanup(func() { cancel(); <-ended; client.HTTPClient.CloseIdleConnections() })
	return f
}

// until polls until a condition is true.
func until(t *testing.T, what string, yes func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-tick.C {
		if yes() {
			return
		}
	}
	t.Fatalf("timed out waiting until %s", what)
}

// enqueue enqueues jobs and numbers their events.
func enqueue(t *testing.T, s store.Store, drafts ...holdfast.Draft) {
	t.Helper()
	if _, err := s.Enqueue(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sequence(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
}

func TestAnIndependentClientFollowsAFeedThroughLostConnections(t *testing.T) {
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "jobs.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Apply(t.Context(), store.Change{Listen: []store.Listener{{Name: "test", Events: []string{"*"}}}}); err != nil {
		t.Fatal(err)
	}
	h, err := feedsse.New(s, feedsse.Config{Source: "/here", Poll: time.Millisecond, Retry: time.Millisecond, Page: 7})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() { h.Close(); server.Close() })
	f := follow(t, server.URL+"?after=0&kind=mail")
	for round := range 20 {
		for range 10 {
			enqueue(t, s, holdfast.Draft{Kind: "mail"}, holdfast.Draft{Kind: "other"})
		}
		until(t, "some events have arrived", func() bool { return len(f.jobEvents()) > round*10 })
		server.CloseClientConnections()
	}
	until(t, "all events have arrived", func() bool { return len(f.jobEvents()) >= 200 })
	for i, e := range f.jobEvents() {
		var envelope notify.Envelope
		if err := json.Unmarshal([]byte(e.Data), &envelope); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint(2*i + 1); e.LastEventID != want || envelope.ID != want || e.Type != "job.queued" || envelope.Type != "io.holdfast.job.queued" || envelope.Source != "/here" {
			t.Fatalf("event %d is %+v, want the id %s", i, e, want)
		}
	}
}
