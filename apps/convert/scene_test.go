package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/convert/gateway"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

func TestMain(m *testing.M) {
	gateway.Main() // a real gateway in a test starts this very program to read a PDF
	pgtest.Main(m)
}

// A scene is a converter and all that is around it: a store, two folders, and a gateway that the test controls. Faults in the app's own view of
// the store (faulty) do not affect the test's view (store).
type scene struct {
	*testing.T
	*app
	set     settings
	store   store.Store
	faulty  *storetest.Faulty
	gateway *script
	bubble  bool // time is the bubble's own
	logged  *logbook
	workers []*worker
}

// newScene opens a scene. An empty address means an SQLite file of the scene's own. Settings are the defaults but for the folders, unless changed.
func newScene(t *testing.T, address string, change ...func(*settings)) *scene {
	t.Helper()
	return openScene(t, address, newScript(t), change)
}

// tell runs a scenario in virtual time (testing/synctest) on an SQLite file, with a gateway that is called without a network.
func tell(t *testing.T, story func(s *scene), change ...func(*settings)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := openScene(t, "", newBubbleScript(), change)
		s.bubble = true
		story(s)
	})
}

// eachStore checks a law on SQLite and on PostgreSQL. The address is that of an empty store, this law's alone.
func eachStore(t *testing.T, law func(t *testing.T, address string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { law(t, filepath.Join(t.TempDir(), "jobs.db")) })
	t.Run("postgres", func(t *testing.T) { law(t, storefixture.Database(t)) })
}

// quick shortens the delays of retries and breakers, for scenarios in real time.
func quick(set *settings) {
	set.RetryBaseDelay, set.RetryJitterMax = 20*time.Millisecond, 10*time.Millisecond
	set.CircuitCooldown, set.ProbeEvery = 100*time.Millisecond, 50*time.Millisecond
}

func openScene(t *testing.T, address string, g *script, change []func(*settings)) *scene {
	t.Helper()
	data := t.TempDir()
	env := map[string]string{"UPLOADS_PER_MINUTE": "1000000", "DATA_DIR": data, "DATABASE_URL": address, "GATEWAY_URL": g.url}
	set, err := readSettings(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(&set)
	}
	s := &scene{T: t, set: set, gateway: g, logged: &logbook{}}
	s.app, s.faulty = s.process()
	s.store = s.faulty.Store
	t.Cleanup(s.end)
	return s
}

// process opens one more app on the same store, files and gateway, as a process of its own would.
func (s *scene) process() (*app, *storetest.Faulty) {
	s.Helper()
	log := slog.New(slog.NewJSONHandler(s.logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	a, err := open(context.Background(), s.set, log)
	if err != nil {
		s.Fatal(err)
	}
	faulty := storetest.NewFaulty(a.jobs)
	a.jobs, a.http, a.sessionKey.key = faulty, &http.Client{Transport: s.gateway}, testSessionKey
	if s.faulty != nil {
		s.Cleanup(func() { _ = a.close() })
	}
	return a, faulty
}

// end stops everything. The integrity check of the store must pass, and no unfinished files may be left.
func (s *scene) end() {
	s.gateway.release()
	for _, w := range s.workers {
		w.stop()
	}
	s.sound()
	if err := s.store.Close(); err != nil {
		s.Errorf("closing: %v", err)
	}
}

func (s *scene) sound() {
	s.Helper()
	findings, err := s.store.CheckIntegrity(context.Background())
	if err != nil {
		s.Errorf("audit: %v", err)
	}
	for _, f := range findings {
		s.Errorf("audit: %s: %s: %s", f.Rule, f.Job, f.Detail)
	}
}

// A worker is an engine at work.
type worker struct {
	*engine.Engine
	s      *scene
	faulty *storetest.Faulty
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
	once   sync.Once
}

// works starts an engine of the scene's app; on all queues unless some are named.
func (s *scene) works(queues ...string) *worker {
	s.Helper()
	return s.worksAs(s.app, s.faulty, queues...)
}

// joins starts an engine of another app, as a separate process would.
func (s *scene) joins(queues ...string) *worker {
	s.Helper()
	a, faulty := s.process()
	return s.worksAs(a, faulty, queues...)
}

func (s *scene) worksAs(a *app, faulty *storetest.Faulty, queues ...string) *worker {
	s.Helper()
	if len(queues) == 0 {
		queues = []string{queueConvert, queueRefuse}
	}
	e, err := a.engine(queues...)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &worker{Engine: e, s: s, faulty: faulty, cancel: cancel, ended: make(chan struct{})}
	s.workers = append(s.workers, w)
	go func() {
		defer close(w.ended)
		w.err = e.Run(ctx)
	}()
	return w
}

// stop asks for a graceful stop, as SIGTERM does, and waits for it.
func (w *worker) stop() {
	w.s.Helper()
	w.once.Do(func() {
		w.cancel()
		<-w.ended
		if w.err != nil {
			w.s.Errorf("Run: %v", w.err)
		}
	})
}

// dies cuts the engine off from its store for good and abandons it: to all other processes it looks killed.
func (w *worker) dies() {
	w.faulty.Plan(storetest.Fault{Always: true}, storetest.Fault{Verb: "Await", Always: true})
	w.once.Do(func() {
		w.cancel()
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		go func() { _ = w.Stop(gone) }()
	})
}

// samplePDF returns a small PDF that differs for each number.
func samplePDF(n int) []byte {
	return fmt.Appendf(nil, "%%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Number %d >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%%%EOF\n", n)
}

// enters puts a PDF and its job where an upload puts them, without HTTP.
func (s *scene) enters(n int, options ...func(*holdfast.Draft)) holdfast.ID {
	s.Helper()
	ctx, id, pdf := context.Background(), holdfast.NewID(), samplePDF(n)
	if _, err := s.uploads.Put(ctx, sourceKey(id), bytes.NewReader(pdf)); err != nil {
		s.Fatal(err)
	}
	sum := sha256.Sum256(pdf)
	args := Conversion{Name: fmt.Sprintf("file-%d.pdf", n), Mapping: "text", SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(pdf)), Source: sourceKey(id)}
	options = append([]func(*holdfast.Draft){func(d *holdfast.Draft) { d.ID, d.Queue, d.Owner = id, queueConvert, "session:test" }}, options...)
	if _, err := holdfast.Enqueue(ctx, s.store, args, options...); err != nil {
		s.Fatal(err)
	}
	if err := s.keepSource(ctx, id, sourceKey(id), int64(len(pdf))); err != nil {
		s.Fatal(err)
	}
	return id
}

func (s *scene) job(id holdfast.ID) holdfast.Job {
	s.Helper()
	job, err := s.store.Job(context.Background(), id)
	if err != nil {
		s.Fatal(err)
	}
	return job
}

func (s *scene) attempts(id holdfast.ID) []store.Attempt {
	s.Helper()
	history, err := s.store.History(context.Background(), id)
	if err != nil {
		s.Fatal(err)
	}
	return history.Attempts
}

// becomes waits until a job is in a state, and returns the job.
func (s *scene) becomes(id holdfast.ID, state holdfast.State) holdfast.Job {
	s.Helper()
	var job holdfast.Job
	s.until("job "+string(state), func() bool {
		job = s.job(id)
		return job.State == state
	})
	return job
}

// until waits for something to be true: up to two minutes, or for an hour of virtual time.
func (s *scene) until(what string, true func() bool) {
	s.Helper()
	limit, step := 2*time.Minute, 10*time.Millisecond
	if s.bubble {
		limit, step = time.Hour, 100*time.Millisecond
		defer synctest.Wait()
	}
	for start := time.Now(); !true(); <-time.After(step) {
		if time.Since(start) > limit {
			s.Fatalf("timed out waiting for: %s\n%s", what, s.logged)
		}
	}
}

// breaker returns the state of the gateway's breaker: closed when there is no record.
func (s *scene) breaker() string {
	s.Helper()
	all, err := s.operator.Breakers(context.Background())
	if err != nil {
		s.Fatal(err)
	}
	for _, b := range all {
		if b.Dependency == dependencyGateway {
			return string(b.State)
		}
	}
	return "closed"
}

// filesIn returns the files of a folder, including unfinished ones, by name with their content.
func filesIn(t testing.TB, place string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(place, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[filepath.Base(path)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// oneXML checks that the results contain one complete XML for each of these jobs, and nothing else.
func (s *scene) oneXML(ids ...holdfast.ID) {
	s.Helper()
	all := filesIn(s, s.set.Results)
	for _, id := range ids {
		text, ok := all[resultKey(id)]
		if !ok || checkXML(strings.NewReader(text)) != nil {
			s.Errorf("the XML of %s is not there, or not whole: %q", id, text)
		}
		delete(all, resultKey(id))
	}
	for name := range maps.Keys(all) {
		s.Errorf("%s is in the results without a reason", name)
	}
}

// A logbook keeps the log, to print it when a test fails.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps a line.
func (l *logbook) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var _ io.Writer = (*logbook)(nil)

// expect compares a value with the wanted one.
func expect[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
