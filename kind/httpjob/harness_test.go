package httpjob_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/jobkind"
	"github.com/holdfastdev/holdfast/kind/httpjob"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// A receiver handles the n-th request with the n-th handler, and later ones with success.
type receiver struct {
	*httptest.Server
	handlers []http.HandlerFunc

	mu   sync.Mutex
	seen []*http.Request
}

func newReceiver(t *testing.T, handlers ...http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{handlers: handlers}
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	n := len(r.seen)
	r.seen = append(r.seen, request.Clone(context.Background()))
	r.mu.Unlock()
	if n < len(r.handlers) {
		r.handlers[n](w, request)
		return
	}
	_, _ = w.Write([]byte("well"))
}

func (r *receiver) requests() []*http.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*http.Request(nil), r.seen...)
}

func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte("so it is"))
	}
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func resets(w http.ResponseWriter, _ *http.Request) {
	conn, _, _ := w.(http.Hijacker).Hijack()
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

func breaksOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = w.Write([]byte("half of"))
}

// stuck never answers. It reads the request body, because only then does the server notice that the client has gone.
func stuck(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// A harness is a real store and a real engine, in real time. The receiver's address, 127.0.0.1, may be called; the rest of loopback may not.
type harness struct {
	*testing.T
	path  string
	store store.Store
	gate  holdfast.Enqueuer

	mu  sync.Mutex
	log strings.Builder
}

// Write collects the log.
func (p *harness) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *harness) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// build starts an engine without a retry budget for these receivers, so that a test need not wait for retries.
func build(t *testing.T, change func(*httpjob.Config), receivers ...*receiver) *harness {
	t.Helper()
	unrationed := make(map[string]engine.Dependency)
	for _, r := range receivers {
		unrationed[r.Listener.Addr().String()] = engine.Dependency{NoBudget: true}
	}
	return buildIn(t, change, engine.Config{Dependencies: unrationed})
}

func buildIn(t *testing.T, change func(*httpjob.Config), how engine.Config) *harness {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	p := &harness{T: t, path: path, store: db, gate: jobkind.Preparing(db, httpjob.Prepare)}
	log := slog.New(slog.NewTextHandler(p, &slog.HandlerOptions{Level: slog.LevelDebug}))
	how.Log, how.Poll = log, 20*time.Millisecond
	e, err := engine.New(db, how)
	if err != nil {
		t.Fatal(err)
	}
	cfg := httpjob.Config{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, AnyPort: true, Log: log,
		Policy: failure.Policy{MaxAttempts: 20, Backoff: failure.Fixed(10 * time.Millisecond)},
	}
	if change != nil {
		change(&cfg)
	}
	if err := httpjob.Register(e, cfg); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(context.Background()) }()
	t.Cleanup(func() {
		_ = e.Stop(context.Background())
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return p
}

// run enqueues a request and waits for its end.
func (p *harness) run(r httpjob.Request) holdfast.Job {
	p.Helper()
	draft, err := httpjob.Draft(r)
	if err != nil {
		p.Fatal(err)
	}
	draft.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	return p.runDraft(p.gate, draft)
}

func (p *harness) runDraft(to holdfast.Enqueuer, draft holdfast.Draft) holdfast.Job {
	p.Helper()
	return p.runAll(to, draft)[0]
}

// runAll enqueues drafts and waits until all jobs have ended.
func (p *harness) runAll(to holdfast.Enqueuer, drafts ...holdfast.Draft) (jobs []holdfast.Job) {
	p.Helper()
	receipts, err := to.Enqueue(p.Context(), drafts)
	if err != nil {
		p.Fatal(err)
	}
	for _, receipt := range receipts {
		var job holdfast.Job
		p.waitUntil("the end of a job", func() bool {
			if job, err = p.store.Job(p.Context(), receipt.ID); err != nil {
				p.Fatal(err)
			}
			return job.State.Terminal()
		})
		jobs = append(jobs, job)
	}
	return jobs
}

// waitForPolicy waits until the limits of the policy are in the store.
func (p *harness) waitForPolicy() {
	p.Helper()
	p.waitUntil("the policy", func() bool {
		holds, err := p.store.Holds(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		return len(holds) > 0
	})
}

func (p *harness) waitUntil(what string, true func() bool) {
	p.Helper()
	beat := time.NewTicker(10 * time.Millisecond)
	defer beat.Stop()
	for start := time.Now(); !true(); <-beat.C {
		if time.Since(start) > time.Minute {
			p.Fatalf("timed out waiting for %s\n%s", what, p.logged())
		}
	}
}

func response(t *testing.T, job holdfast.Job) (r httpjob.Response) {
	t.Helper()
	if job.State != holdfast.Complete {
		t.Fatalf("%s: %+v", job.State, job.LastFailure)
	}
	if err := json.Unmarshal(job.Result, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// storedTexts returns all that a job leaves behind: the files of the database, the log, the feed and the story.
func (p *harness) storedTexts(job holdfast.ID) map[string]string {
	p.Helper()
	feed, err := p.store.Feed(p.Context(), 0, 1000)
	if err != nil {
		p.Fatal(err)
	}
	history, err := p.store.History(p.Context(), job)
	if err != nil {
		p.Fatal(err)
	}
	told, _ := json.Marshal(feed)
	story, _ := json.Marshal(history)
	texts := map[string]string{"log": p.logged(), "feed": string(told), "story": string(story)}
	files, _ := filepath.Glob(p.path + "*")
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			p.Fatal(err)
		}
		texts[filepath.Base(file)] = string(body)
	}
	return texts
}
