package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/account"
	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/internal/storefixture"
	"github.com/holdfastdev/holdfast/internal/testprograms"
)

func TestMain(m *testing.M) {
	pgtest.Main(m, func() {
		if pool, err := browsers(); err == nil && pool.Status().Started > 0 {
			pool.Close()
		}
	})
}

// patience is how long a test waits for something that must happen.
const patience = time.Minute

// chromium returns the path of a real Chromium.
func chromium() (string, error) {
	if path := browser.Find(); path != "chromium" {
		return path, nil
	}
	if path, err := exec.LookPath("chromium"); err == nil {
		return path, nil
	}
	return testprograms.Chromium.Ensure()
}

// browsers is a pool of real browsers that the tests of this package share.
var browsers = sync.OnceValues(func() (*browser.Pool, error) {
	path, err := chromium()
	if err != nil {
		return nil, err
	}
	guard, err := safehttp.New(safehttp.Config{AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err != nil {
		return nil, err
	}
	return browser.New(browser.Config{Path: path, Size: 2, Guard: guard, Limits: browser.Limits{Start: 2 * time.Minute}})
})

// An origin has the pages of a test. What a path answers is in the path: /ok/..., /status/404/..., /flaky/2/... (503 twice, then the page), /slow (until the test ends).
type origin struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int
	down  bool
	hold  chan struct{} // /hold answers when it is closed
}

func newOrigin(t testing.TB) *origin {
	o := &origin{asked: map[string]int{}, hold: make(chan struct{})}
	o.Server = httptest.NewServer(o)
	t.Cleanup(func() { o.release(); o.CloseClientConnections(); o.Close() })
	return o
}

func (o *origin) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.hold:
	default:
		close(o.hold)
	}
}

func (o *origin) setDown(down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = down
}

// ServeHTTP answers as the path says.
func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.asked[r.URL.Path]++
	n, down := o.asked[r.URL.Path], o.down
	o.mu.Unlock()
	part := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	status := http.StatusOK
	switch {
	case down:
		status = http.StatusServiceUnavailable
	case part[0] == "status":
		_, _ = fmt.Sscan(part[1], &status)
	case part[0] == "flaky":
		times := 0
		_, _ = fmt.Sscan(part[1], &times)
		if n <= times {
			status = http.StatusServiceUnavailable
		}
	case part[0] == "hold":
		select {
		case <-o.hold:
		case <-r.Context().Done():
		}
	case part[0] == "favicon.ico":
		status = http.StatusNotFound
	}
	if part[0] == "picture" {
		w.Header().Set("Content-Type", "image/svg+xml")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><rect width="40" height="40" fill="red"/></svg>`)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<!doctype html><title>Page %s</title><body style="background: #084; color: #fff"><h1>%s</h1>`, r.URL.Path, r.URL.Path)
}

// A scene is a service at work in this process, with an origin.
type scene struct {
	*testing.T
	*app
	origin *origin
	at     string // its address
	key    string // of the first account, with all scopes
	owner  string // its organisation
	id     account.Identity
	logged *lockedBuffer
	stop   func()
}

// onBoth runs a test on SQLite and on PostgreSQL. Pairs of environment variables change the settings.
func onBoth(t *testing.T, test func(s *scene), env ...string) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(newScene(t, env...)) })
	t.Run("postgres", func(t *testing.T) { test(newScene(t, append(env, "DATABASE_URL", storefixture.Database(t))...)) })
}

// settingsFor returns settings for a test, in a folder of its own.
func settingsFor(t testing.TB, env ...string) settings {
	t.Helper()
	folder := t.TempDir()
	policies := filepath.Join(folder, "policies.yaml")
	text := "retry:\n  policies:\n"
	for _, kind := range []service.JobType{service.TypeScreenshot, service.TypePDF} {
		text += fmt.Sprintf("    - jobType: %s\n      maxRetries: 2\n      baseDelay: 20ms\n", kind)
	}
	if err := os.WriteFile(policies, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"DATA_DIR": folder, "ALLOW_PRIVATE": "on", "RETRY_POLICIES": policies, "WORKER_LEASE_TTL_SEC": "5", "STOP_GRACE_SEC": "5", "REQUESTS_PER_MINUTE": "100000"}
	for i := 0; i+1 < len(env); i += 2 {
		all[env[i]] = env[i+1]
	}
	set, err := readSettings(func(name string) string { return all[name] })
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// newScene opens a service whose engine does not run yet.
func newScene(t *testing.T, env ...string) *scene {
	t.Helper()
	pool, err := browsers()
	if err != nil {
		t.Fatal(err)
	}
	return openScene(t, settingsFor(t, env...), pool)
}

func openScene(t *testing.T, set settings, camera service.Camera) *scene {
	t.Helper()
	s := &scene{T: t, origin: newOrigin(t), logged: &lockedBuffer{}}
	s.openApp(set, camera)
	face, err := s.app.face()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(face)
	t.Cleanup(func() { _ = face.Close(); server.Close() })
	s.at = server.URL
	s.signUp()
	return s
}

func (s *scene) openApp(set settings, camera service.Camera) {
	s.Helper()
	var err error
	s.app, err = open(s.Context(), set, camera, slog.New(slog.NewJSONHandler(s.logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(s.end)
}

// signUp makes the first account.
func (s *scene) signUp() {
	s.Helper()
	text, err := s.firstAccount(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	_, s.key, _ = strings.Cut(strings.TrimSpace(text), "API key: ")
	if s.id, err = s.accounts.OpenKey(s.Context(), s.key, "test"); err != nil {
		s.Fatal(err)
	}
	s.owner = s.id.Organisation
}

// works runs the engine until the test ends or stops it.
func (s *scene) works() {
	s.Helper()
	e, err := s.engine()
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Errorf("Run: %v", err)
		}
	})
}

func (s *scene) end() {
	if s.origin != nil {
		s.origin.release()
	}
	if s.stop != nil {
		s.stop()
	}
	if findings, err := s.jobs.CheckIntegrity(context.Background()); len(findings) > 0 || err != nil {
		s.Errorf("the store is not well: %v %v", findings, err)
	}
	if findings, err := s.service.Ledger().Check(context.Background(), nil); len(findings) > 0 || err != nil {
		s.Errorf("the ledger is not sound: %v %v", findings, err)
	}
	if err := s.app.close(); err != nil {
		s.Error(err)
	}
	if s.Failed() {
		for line := range strings.Lines(s.logged.String()) {
			if !strings.Contains(line, `"event":"request"`) {
				s.Log(strings.TrimSpace(line))
			}
		}
	}
}

// sound checks the credits against the shots, after all of them have ended.
func (s *scene) sound() {
	s.Helper()
	s.until("the ledger fits the shots", func() bool {
		findings, err := s.service.Check(context.Background())
		return err == nil && len(findings) == 0
	})
}

// until waits for something that must happen.
func (s *scene) until(what string, done func() bool) {
	s.Helper()
	for deadline := time.Now().Add(patience); !done(); {
		if time.Now().After(deadline) {
			s.Fatalf("not in time: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// An answer is what a request was answered with.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
}

func (a answer) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
}

// code returns the error code of a refusal.
func (a answer) code() string {
	var body struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(a.Body, &body) // otherwise there is none
	return body.Error
}

// call sends a request of the first account to the API. Pairs of headers are added.
func (s *scene) call(method, path string, body any, header ...string) answer {
	s.Helper()
	return s.callAs(s.key, method, path, body, header...)
}

func (s *scene) callAs(key, method, path string, body any, header ...string) answer {
	s.Helper()
	var text io.Reader
	if body != nil {
		raw, isRaw := body.(string)
		if !isRaw {
			encoded, err := json.Marshal(body)
			if err != nil {
				s.Fatal(err)
			}
			raw = string(encoded)
		}
		text = strings.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(context.Background(), method, s.at+path, text)
	if err != nil {
		s.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	all, err := io.ReadAll(a.Body)
	if err != nil {
		s.Fatal(err)
	}
	return answer{a.StatusCode, a.Header, all}
}

// submit asks for a shot of a page of the origin and returns it.
func (s *scene) submit(path string, more ...map[string]any) service.Job {
	s.Helper()
	body := map[string]any{"url": s.origin.URL + path, "width": 320, "height": 200}
	for _, m := range more {
		for k, v := range m {
			body[k] = v
		}
	}
	a := s.call("POST", "/api/v1/screenshots", body)
	if a.Status != http.StatusAccepted {
		s.Fatalf("%d %s", a.Status, a.Body)
	}
	var job service.Job
	a.into(s, &job)
	return job
}

func (s *scene) get(id holdfast.ID) (job service.Job) {
	s.Helper()
	s.call("GET", "/api/v1/screenshots/"+id.String(), nil).into(s, &job)
	return job
}

// ended waits until a shot has a status.
func (s *scene) ended(id holdfast.ID, status string) (job service.Job) {
	s.Helper()
	s.until("shot "+id.String()+" is "+status, func() bool {
		job = s.get(id)
		return job.Status == status
	})
	return job
}

// has checks the balance, which must become so.
func (s *scene) has(available, reserved, spent int64) {
	s.Helper()
	var got [3]int64
	s.until(fmt.Sprintf("the balance is %d, %d, %d", available, reserved, spent), func() bool {
		b, err := s.service.Ledger().Balance(context.Background(), s.owner)
		got = [3]int64{b.Available, b.Reserved, b.Spent}
		return err == nil && got == [3]int64{available, reserved, spent}
	})
}
