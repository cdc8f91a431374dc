package notify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/leaktest"
	"github.com/holdfastdev/holdfast/notify"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
	"github.com/holdfastdev/holdfast/store/storetest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A scene is an SQLite store in a synctest bubble.
type scene struct {
	*testing.T
	path   string
	store  store.Store
	faulty *storetest.Faulty // the same store, as services see it
	log    safeBuffer
	stops  []func()
}

// runScene runs a test in a bubble. At the end it stops every service and checks the store.
func runScene(t *testing.T, story func(s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "jobs.db")
		db, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		s := &scene{T: t, path: path, store: db, faulty: storetest.NewFaulty(db)}
		defer func() {
			for _, stop := range slices.Backward(s.stops) {
				stop()
			}
			s.healthy()
			if err := db.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
		}()
		story(s)
	})
}

func (s *scene) healthy() {
	s.Helper()
	findings, err := s.store.CheckIntegrity(context.Background())
	if err != nil {
		s.Errorf("audit: %v", err)
	}
	for _, f := range findings {
		s.Errorf("audit: %s: %s: %s", f.Rule, f.Job, f.Detail)
	}
}

// safeBuffer is a log that is safe for concurrent use.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// serves starts a service with these sinks, and returns a function that stops it.
func (s *scene) serves(sinks map[string]notify.Sink, change ...func(*notify.Config)) (stop func()) {
	s.Helper()
	return s.tellsFrom(s.faulty, sinks, change...)
}

func (s *scene) tellsFrom(db notify.Store, sinks map[string]notify.Sink, change ...func(*notify.Config)) (stop func()) {
	s.Helper()
	cfg := notify.Config{Sinks: sinks, Log: slog.New(slog.NewTextHandler(&s.log, nil))}
	for _, c := range change {
		c(&cfg)
	}
	service, err := notify.New(db, cfg)
	if err != nil {
		s.Fatal(err)
	}
	return s.runs(service.Run)
}

// runs runs something until it is stopped, at the latest at the end of the test.
func (s *scene) runs(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Errorf("Run: %v", err)
		}
	})
	s.stops = append(s.stops, stop)
	return stop
}

// works starts an engine that completes the jobs of kind "note".
func (s *scene) works() (stop func()) {
	s.Helper()
	e, err := engine.New(s.store, engine.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.Fatal(err)
	}
	engine.HandleRaw(e, "note", func(context.Context, *engine.Raw) error { return nil })
	return s.runs(e.Run)
}

// subscribes stores a subscription as ops does, at the end of the feed unless it has another cursor.
func (s *scene) subscribes(sink string, change ...func(*subscription.Subscription)) holdfast.ID {
	s.Helper()
	sub := subscription.Subscription{Sink: sink, Target: "somewhere", Cursor: subscription.FromHead}
	for _, c := range change {
		c(&sub)
	}
	if err := sub.Prepare(); err != nil {
		s.Fatal(err)
	}
	s.keep(0, sub, sub.Listener())
	return sub.ID
}

func (s *scene) keep(version int, sub subscription.Subscription, l store.Listener) {
	s.Helper()
	body, err := json.Marshal(sub)
	if err == nil {
		err = s.store.Apply(context.Background(), store.Change{
			Records: []store.Record{{Namespace: subscription.Namespace, Name: sub.ID.String(), Version: version, Body: body}}, Listen: []store.Listener{l},
		})
	}
	if err != nil {
		s.Fatal(err)
	}
}

// changes changes an existing subscription.
func (s *scene) changes(id holdfast.ID, change func(*subscription.Subscription)) {
	s.Helper()
	for {
		version, sub := s.sub(id)
		change(&sub)
		body, _ := json.Marshal(sub)
		err := s.store.Apply(context.Background(), store.Change{Records: []store.Record{{Namespace: subscription.Namespace, Name: id.String(), Version: version, Body: body}}})
		if err == nil {
			return
		}
	}
}

func (s *scene) sub(id holdfast.ID) (version int, sub subscription.Subscription) {
	s.Helper()
	records, err := s.store.Records(context.Background(), subscription.Namespace)
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range records {
		if r.Name == id.String() {
			if err := json.Unmarshal(r.Body, &sub); err != nil {
				s.Fatal(err)
			}
			return r.Version, sub
		}
	}
	s.Fatalf("there is no subscription %s", id)
	return 0, sub
}

// enqueues enqueues n jobs, each in a call of its own.
func (s *scene) enqueues(n int) []holdfast.ID {
	s.Helper()
	ids := make([]holdfast.ID, n)
	for i := range ids {
		receipts, err := s.store.Enqueue(context.Background(), []holdfast.Draft{{Kind: "note"}})
		if err != nil {
			s.Fatal(err)
		}
		ids[i] = receipts[0].ID
	}
	return ids
}

// deliveries lists the deliveries of a subscription, the oldest first.
func (s *scene) deliveries(id holdfast.ID) (jobs []holdfast.Job) {
	s.Helper()
	f := store.Filter{Queue: subscription.Queue, Owner: subscription.Owner(id), Limit: 200}
	for {
		page, cursor, err := s.store.Jobs(context.Background(), f)
		if err != nil {
			s.Fatal(err)
		}
		jobs = append(jobs, page...)
		if cursor == "" {
			slices.Reverse(jobs)
			return jobs
		}
		f.Cursor = cursor
	}
}

// story is the names of a subscription's events, oldest first.
func (s *scene) story(id holdfast.ID) (names []string) {
	s.Helper()
	events, err := s.store.Events(context.Background(), subscription.Owner(id), 100)
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range slices.Backward(events) {
		names = append(names, e.Name)
	}
	return names
}

// until waits, by the bubble's clock, until a condition is true, and then until all goroutines are idle.
func (s *scene) until(what string, true func() bool) {
	s.Helper()
	defer synctest.Wait()
	for start := time.Now(); !true(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > time.Hour {
			s.Fatalf("waited in vain for: %s\n%s", what, s.log.String())
		}
	}
}

// passes lets time pass.
func (s *scene) passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A fakeSink is a sink that records its deliveries. The test decides what it answers.
type fakeSink struct {
	traits notify.Traits
	host   string
	answer func(ctx context.Context, d notify.Delivery) error

	mu   sync.Mutex
	told []notify.Delivery
	now  int // in progress
	most int // at once, per subscription
}

func (m *fakeSink) Traits() notify.Traits                 { return m.traits }
func (m *fakeSink) Check(subscription.Subscription) error { return nil }
func (m *fakeSink) Host(subscription.Subscription) string { return m.host }

func (m *fakeSink) Deliver(ctx context.Context, d notify.Delivery) (any, error) {
	m.mu.Lock()
	m.told = append(m.told, d)
	m.now++
	m.most = max(m.most, m.now)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.now--
	}()
	if m.answer == nil {
		return map[string]int{"events": len(d.Events)}, nil
	}
	return nil, m.answer(ctx, d)
}

func (m *fakeSink) all() []notify.Delivery {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.told)
}

// events are the numbers of all delivered events, in order.
func (m *fakeSink) events() (seqs []int64) {
	for _, d := range m.all() {
		for _, e := range d.Events {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

// one is a map with one sink, called "fake".
func one(sink notify.Sink) map[string]notify.Sink { return map[string]notify.Sink{"fake": sink} }

// expect compares what is with what should be.
func expect(s *scene, what string, got, want any) {
	s.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.Errorf("%s: %v, want %v", what, got, want)
	}
}
