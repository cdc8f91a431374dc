package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/intake"
	"github.com/holdfastdev/holdfast/apps/fetchbox/ledger"
	"github.com/holdfastdev/holdfast/apps/fetchbox/view"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// patience is how long a test waits for something that must happen.
const patience = 2 * time.Minute

// An origin is a source of resources that the test controls. What a path answers is in the path: /ok/..., /status/503/..., /flaky/2/... (503 twice, then the content),
// /etag/... (304 for the ETag of its edition).
type origin struct {
	*httptest.Server
	mu      sync.Mutex
	asked   map[string]int
	edition int // changes the content of all
	down    bool
}

func newOrigin(t testing.TB) *origin {
	o := &origin{asked: map[string]int{}}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.Close)
	return o
}

// ServeHTTP answers as the path says.
func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.asked[r.URL.Path]++
	n, down, edition := o.asked[r.URL.Path], o.down, o.edition
	o.mu.Unlock()
	part := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case down:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case part[0] == "status":
		var status int
		_, _ = fmt.Sscan(part[1], &status)
		w.WriteHeader(status)
		return
	case part[0] == "flaky":
		var times int
		_, _ = fmt.Sscan(part[1], &times)
		if n <= times {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
	case part[0] == "etag":
		tag := fmt.Sprintf(`"edition %d"`, edition)
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = fmt.Fprintf(w, "edition %d\n", edition)
		return
	case part[0] == "slow":
		text := contentOf(r.URL.Path)
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		for i := range 10 {
			_, _ = io.WriteString(w, text[len(text)*i/10:len(text)*(i+1)/10])
			_ = http.NewResponseController(w).Flush()
			<-time.After(20 * time.Millisecond)
		}
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, contentOf(r.URL.Path))
}

// contentOf returns what a path contains: more than one line, and different for each path.
func contentOf(path string) string { return strings.Repeat("content of "+path+"\n", 200) }

// requests returns how often a path was asked for.
func (o *origin) requests(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[path]
}

// A scene is a FetchBox at work in this process, with an origin. Faults in the app's own view of the store (faulty) do not affect the test's view (store).
type scene struct {
	*testing.T
	*app
	origin *origin
	store  store.Store
	faulty *storetest.Faulty
	site   *site
	at     string // its address
	key    string // of an operator without an owner of its own
	logged *bytes.Buffer
	stop   func()
}

// settingsFor returns settings for a test, in a folder of its own. Pairs of environment variables change them.
func settingsFor(t testing.TB, env ...string) settings {
	t.Helper()
	all := map[string]string{
		"DATA_DIR": t.TempDir(), "NATS_ADDR": "off", "ALLOW_PRIVATE": "on", "RETRY_BASE_DELAY_MS": "10", "DOWNLOAD_RETRY_LIMIT": "3", "STORAGE_RETRY_LIMIT": "3", "WORKER_LEASE_TTL_SEC": "5",
		"HOST_CONCURRENCY": "100", "STOP_GRACE_SEC": "5",
	}
	for i := 0; i+1 < len(env); i += 2 {
		all[env[i]] = env[i+1]
	}
	set, err := readSettings(func(name string) string { return all[name] })
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// newScene opens a FetchBox that works.
func newScene(t *testing.T, env ...string) *scene {
	t.Helper()
	s := idleScene(t, env...)
	s.works()
	return s
}

// idleScene opens a FetchBox whose engine does not run.
func idleScene(t *testing.T, env ...string) *scene {
	t.Helper()
	s := &scene{T: t, origin: newOrigin(t), logged: &bytes.Buffer{}}
	log := &lockedWriter{to: s.logged}
	s.app = &app{set: settingsFor(t, env...), log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if err := s.openStore(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	s.store = s.jobs
	s.faulty = storetest.NewFaulty(s.store)
	s.jobs = s.faulty
	if err := s.openRest(context.Background()); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.site, err = s.app.site(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.site)
	t.Cleanup(func() { _ = s.site.Close(); server.Close() })
	s.at = server.URL
	s.key = s.newKey(apikey.Request{Name: "test", Scope: apikey.Operator})
	return s
}

// works runs the engine until the test ends or stops it.
func (s *scene) works() {
	s.Helper()
	e, err := s.app.engine()
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
	if s.stop != nil {
		s.stop()
	}
	if findings, err := s.store.CheckIntegrity(context.Background()); len(findings) > 0 || err != nil {
		s.Errorf("the store is not well: %v %v", findings, err)
	}
	if err := s.app.close(); err != nil {
		s.Error(err)
	}
}

type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

// Write writes.
func (l *lockedWriter) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(text)
}

func (s *scene) newKey(request apikey.Request) string {
	s.Helper()
	_, text, err := s.operator.CreateKey(context.Background(), request, ops.Actor{Name: "test", Reason: "test"})
	if err != nil {
		s.Fatal(err)
	}
	return text
}

func (s *scene) until(what string, yes func() bool) {
	s.Helper()
	for end := time.Now().Add(patience); !yes(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("timed out waiting until %s\n%s", what, s.logged)
		}
	}
}

// An answer is that of the API.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request with the scene's key. Headers come in pairs.
func (s *scene) ask(method, path, body string, headers ...string) answer {
	s.Helper()
	return client{s.at, s.key}.ask(s, method, path, body, headers...)
}

// A client sends requests to an address with an API key.
type client struct{ at, key string }

func (c client) ask(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	a, err := c.try(method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (c client) try(method, path, body string, headers ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, c.at+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, text}, err
}

// is checks the status of an answer, and decodes it.
func (a answer) is(t testing.TB, status int, into any) {
	t.Helper()
	if a.status != status {
		t.Fatalf("answered with %d, want %d: %s", a.status, status, a.body)
	}
	if into != nil {
		if err := json.Unmarshal(a.body, into); err != nil {
			t.Fatalf("%v: %s", err, a.body)
		}
	}
}

// refused is an answer with an error.
type refused struct {
	Error struct {
		Code     string `json:"code"`
		Message  string `json:"message"`
		Problems []struct {
			Line  int    `json:"line"`
			Field string `json:"field"`
			Code  string `json:"code"`
		} `json:"problems"`
	} `json:"error"`
}

// manifestOf returns a manifest of paths of an origin.
func manifestOf(at string, paths ...string) string {
	var resources []string
	for _, path := range paths {
		resources = append(resources, fmt.Sprintf(`{"url":%q}`, at+path))
	}
	return `{"resources":[` + strings.Join(resources, ",") + `]}`
}

// submits submits a manifest of paths of the origin.
func (s *scene) submits(paths ...string) holdfast.ID {
	s.Helper()
	return s.submitsManifest(manifestOf(s.origin.URL, paths...))
}

func (s *scene) submitsManifest(text string) holdfast.ID {
	s.Helper()
	var done intake.Accepted
	s.ask("POST", "/api/jobs", text).is(s, http.StatusAccepted, &done)
	return done.Job
}

// becomes waits until the snapshot of a job has a status.
func (s *scene) becomes(job holdfast.ID, status ledger.Status) (v view.Job) {
	s.Helper()
	s.until("the job is "+string(status), func() bool {
		v = view.Job{}
		s.ask("GET", "/api/jobs/"+job.String(), "").is(s, http.StatusOK, &v)
		return v.Status == status && v.ResourcesQueued+v.ResourcesRunning == 0
	})
	return v
}

// resourcesOf returns the resources of a job by their path.
func (s *scene) resourcesOf(job holdfast.ID) map[string]view.Resource {
	s.Helper()
	all := map[string]view.Resource{}
	for cursor := ""; ; {
		var page struct {
			Resources []view.Resource `json:"resources"`
			Next      *string         `json:"next_cursor"`
		}
		s.ask("GET", "/api/jobs/"+job.String()+"/resources?cursor="+cursor, "").is(s, http.StatusOK, &page)
		for _, v := range page.Resources {
			all[strings.TrimPrefix(v.URL, s.origin.URL)] = v
		}
		if page.Next == nil {
			return all
		}
		cursor = *page.Next
	}
}

// letters are the dead letters in the stream, once there are as many as wanted.
func (s *scene) lettersOnce(want int) (all []deadletter.Letter) {
	s.Helper()
	s.until(fmt.Sprintf("there are %d dead letters", want), func() bool {
		at, err := s.stream.Position(context.Background())
		return err == nil && int(at.Letters) >= want
	})
	for letter, err := range s.stream.From(context.Background(), 1) {
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, letter)
	}
	if len(all) != want {
		s.Errorf("%d dead letters, want %d", len(all), want)
	}
	return all
}

// object reads a stored object.
func (s *scene) object(key string) string {
	s.Helper()
	return objectIn(s, s.transfer.bucket, key)
}

func objectIn(t testing.TB, bucket blob.Store, key string) string {
	t.Helper()
	file, err := bucket.Open(context.Background(), key)
	if err != nil {
		t.Errorf("the object %s: %v", key, err)
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// filesIn returns the files of a folder, also unfinished ones, without those whose name is in except.
func filesIn(t testing.TB, folder string, except ...string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && d.IsDir() {
			return nil
		}
		for _, name := range except {
			if err == nil && d.Name() == name {
				return nil
			}
		}
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
