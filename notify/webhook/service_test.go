package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/notify/webhook"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// fastRetrySink is the real sink with a shorter backoff.
type fastRetrySink struct{ *webhook.Sink }

func (i fastRetrySink) Traits() notify.Traits {
	t := i.Sink.Traits()
	t.Policy.Backoff = failure.Fixed(20 * time.Millisecond)
	return t
}

// A testReceiver is a receiver that verifies each request. It answers the n-th request as the n-th manner says, and later ones with success.
type testReceiver struct {
	*httptest.Server
	t       *testing.T
	secret  string
	manners []http.HandlerFunc

	mu     sync.Mutex
	calls  []string       // ids
	stamps map[string]int // timestamps
}

func open(t *testing.T, secret string, manners ...http.HandlerFunc) *testReceiver {
	t.Helper()
	h := &testReceiver{t: t, secret: secret, manners: manners, stamps: make(map[string]int)}
	h.Server = httptest.NewServer(h)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

func (h *testReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if err := verify(h.secret, r.Header, body); err != nil {
		h.t.Errorf("a request that was not signed: %v", err)
	}
	h.mu.Lock()
	n := len(h.calls)
	h.calls = append(h.calls, r.Header.Get("webhook-id"))
	h.stamps[r.Header.Get("webhook-timestamp")]++
	h.mu.Unlock()
	if n < len(h.manners) {
		h.manners[n](w, r)
	}
}

func (h *testReceiver) ids() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.calls...)
}

// A testService is a real store and a real service, in real time.
type testService struct {
	*testing.T
	path  string
	store store.Store
	log   strings.Builder
	mu    sync.Mutex
}

func (p *testService) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

// build starts a service without retry budgets, so that a test does not wait for them.
func build(t *testing.T, receivers ...*testReceiver) *testService {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	p := &testService{T: t, path: path, store: db}
	s := sink(t, webhook.Config{Allow: loopback, AllowHTTP: true, Timeout: time.Second})
	unrationed := make(map[string]engine.Dependency)
	for _, r := range receivers {
		unrationed[r.Listener.Addr().String()] = engine.Dependency{NoBudget: true}
	}
	service, err := notify.New(db, notify.Config{
		Engine: engine.Config{Dependencies: unrationed},
		Sinks:  map[string]notify.Sink{"webhook": fastRetrySink{s}}, Log: slog.New(slog.NewTextHandler(p, nil)), Beat: 20 * time.Millisecond,
		Secret: func(name string) (string, error) {
			return map[string]string{"new": newSecret, "old": oldSecret}[name], nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- service.Run(context.Background()) }()
	t.Cleanup(func() {
		_ = service.Stop(context.Background())
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return p
}

func (p *testService) subscribes(target string) holdfast.ID {
	p.Helper()
	sub := subscription.Subscription{Sink: "webhook", Target: target, Events: []string{"queued"}, Secrets: []string{"new", "old"}}
	if err := sub.Prepare(); err != nil {
		p.Fatal(err)
	}
	body, err := json.Marshal(sub)
	if err == nil {
		err = p.store.Apply(p.Context(), store.Change{Records: []store.Record{{Namespace: subscription.Namespace, Name: sub.ID.String(), Body: body}}, Listen: []store.Listener{sub.Listener()}})
	}
	if err != nil {
		p.Fatal(err)
	}
	return sub.ID
}

func (p *testService) enqueues() {
	p.Helper()
	if _, err := p.store.Enqueue(p.Context(), []holdfast.Draft{{Kind: "note"}}); err != nil {
		p.Fatal(err)
	}
}

func (p *testService) deliveries(id holdfast.ID, state holdfast.State) int {
	p.Helper()
	jobs, _, err := p.store.Jobs(p.Context(), store.Filter{Queue: subscription.Queue, Owner: subscription.Owner(id), State: state})
	if err != nil {
		p.Fatal(err)
	}
	return len(jobs)
}

func (p *testService) until(what string, true func() bool) {
	p.Helper()
	beat := time.NewTicker(10 * time.Millisecond)
	defer beat.Stop()
	for start := time.Now(); !true(); <-beat.C {
		if time.Since(start) > time.Minute {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.Fatalf("waited in vain for: %s\n%s", what, p.log.String())
		}
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, _ := w.(http.Hijacker).Hijack()
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

func stuck(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func throttled(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	w.WriteHeader(http.StatusTooManyRequests)
}

func TestAMisbehavingReceiverGetsTheEventInTheEndUnderOneId(t *testing.T) {
	bad := open(t, oldSecret, status(500), reset, stuck, status(404), throttled)
	good := open(t, newSecret)
	p := build(t, bad)
	badID, goodID := p.subscribes(bad.URL), p.subscribes(good.URL)
	p.enqueues()
	p.until("the bad one to have it", func() bool { return p.deliveries(badID, holdfast.Complete) == 1 })
	ids := bad.ids()
	if len(ids) < 6 {
		t.Errorf("%d attempts", len(ids))
	}
	for _, id := range ids {
		if id != fmt.Sprintf("%s_1", badID) {
			t.Errorf("attempts under %v", ids)
		}
	}
	if len(bad.stamps) < 2 {
		t.Error("the timestamp is not the attempt's")
	}
	p.until("its neighbour to have it", func() bool { return p.deliveries(goodID, holdfast.Complete) == 1 })
}

func TestAReceiverThatAnswersGoneIsCalledNoMore(t *testing.T) {
	p := build(t)
	gone := open(t, newSecret, status(410))
	id := p.subscribes(gone.URL)
	p.enqueues()
	p.until("the end", func() bool { return p.deliveries(id, holdfast.Failed) == 1 })
	jobs, _, err := p.store.Jobs(p.Context(), store.Filter{Owner: subscription.Owner(id)})
	if err != nil || len(jobs) != 1 || jobs[0].LastFailure.Context["http_status"] != "410" {
		t.Errorf("%v: %+v", err, jobs)
	}
	events, err := p.store.Events(p.Context(), subscription.Owner(id), 10)
	if err != nil || len(events) != 1 || events[0].Name != "disabled" || !strings.Contains(events[0].Reason, "410") {
		t.Errorf("%v: %+v", err, events)
	}
	witness := open(t, newSecret)
	p.subscribes(witness.URL)
	p.enqueues()
	p.until("somebody else to be told", func() bool { return len(witness.ids()) >= 1 })
	if len(gone.ids()) != 1 {
		t.Errorf("called %d times", len(gone.ids()))
	}
}

func TestNoSecretIsInTheDatabaseTheLogOrTheFeed(t *testing.T) {
	echo := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, newSecret+" "+oldSecret)
	}
	h := open(t, newSecret, echo, reset, echo)
	p := build(t, h)
	id := p.subscribes(h.URL)
	p.enqueues()
	p.until("the delivery", func() bool { return p.deliveries(id, holdfast.Complete) == 1 })
	feed, err := p.store.Feed(p.Context(), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	told, _ := json.Marshal(feed)
	p.mu.Lock()
	texts := map[string]string{"log": p.log.String(), "feed": string(told)}
	p.mu.Unlock()
	files, _ := filepath.Glob(p.path + "*")
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(body)
	}
	for where, text := range texts {
		for _, secret := range []string{newSecret[6:], oldSecret[6:]} {
			if strings.Contains(text, secret) {
				t.Errorf("a secret is in %s", where)
			}
		}
	}
}
