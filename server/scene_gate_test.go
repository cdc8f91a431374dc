package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// A gateScene is a running server with a key of every kind.
type gateScene struct {
	t        testing.TB
	store    store.Store
	operator ops.Operator
	srv      *Server
	addr     string
	keys     map[string]string // by name: viewer, worker, ..., own, foreign, revoked, expired
	log      *safeBuffer
}

// A safeBuffer is safe for concurrent use.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(text)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var me = ops.Actor{Name: "ada"}

func newGateScene(t testing.TB, change ...func(*Config)) *gateScene {
	t.Helper()
	s := newBareScene(t, change...)
	for _, scope := range []apikey.Scope{apikey.Viewer, apikey.Worker, apikey.Operator, apikey.Admin} {
		s.keys[string(scope)] = s.makeKey(apikey.Request{Name: string(scope), Scope: scope})
	}
	s.keys["own"] = s.makeKey(apikey.Request{Name: "own", Scope: apikey.Operator, Owner: "bob"})
	s.keys["foreign"] = s.makeKey(apikey.Request{Name: "foreign", Scope: apikey.Operator, Owner: "eve"})
	s.keys["malformed"] = "hf_no_key_00000000"
	s.keys["revoked"] = s.makeKey(apikey.Request{Name: "revoked", Scope: apikey.Admin})
	id, _, _ := apikey.Parse(s.keys["revoked"])
	if err := s.operator.RevokeKey(t.Context(), id, me); err != nil {
		t.Fatal(err)
	}
	s.keys["expired"] = s.keepKey(apikey.Request{Name: "expired", Scope: apikey.Admin, ExpireIn: time.Second}, time.Now().Add(-time.Hour))
	return s
}

// newBareScene is a server whose store has no keys.
func newBareScene(t testing.TB, change ...func(*Config)) *gateScene {
	t.Helper()
	st, err := anystore.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	s := &gateScene{t: t, store: st, operator: ops.New(st, ops.Config{}), keys: map[string]string{}, log: &safeBuffer{}}
	cfg := Config{Store: st, Operator: s.operator, Log: slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, f := range change {
		f(&cfg)
	}
	if s.srv, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = listener.Addr().String()
	web := s.srv.HTTP("")
	go func() { _ = web.Serve(listener) }()
	t.Cleanup(func() {
		s.srv.Drain()
		_ = web.Close()
		_ = s.srv.Close()
		_ = st.Close()
	})
	return s
}

func (s *gateScene) makeKey(o apikey.Request) string {
	s.t.Helper()
	_, text, err := s.operator.CreateKey(s.t.Context(), o, me)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// keepKey stores a key that was made at another time.
func (s *gateScene) keepKey(o apikey.Request, at time.Time) string {
	s.t.Helper()
	k, text := apikey.New(o, at)
	body, _ := json.Marshal(k)
	if err := s.store.Apply(s.t.Context(), store.Change{Records: []store.Record{{Namespace: apikey.Namespace, Name: k.ID, Body: body}}}); err != nil {
		s.t.Fatal(err)
	}
	return text
}

// An answerSeen is the answer to a request.
type answerSeen struct {
	status int
	header http.Header
	body   string
	err    error
}

// whole is the complete answer without the date.
func (a answerSeen) whole() string {
	header := a.header.Clone()
	header.Del("Date")
	var b strings.Builder
	_ = header.Write(&b)
	return http.StatusText(a.status) + "\n" + b.String() + "\n" + a.body
}

func (a answerSeen) code() string {
	var p struct{ Code, Detail string }
	_ = json.Unmarshal([]byte(a.body), &p)
	return p.Code
}

// ask sends a request with the named key. Headers are given as name, value, name, value.
func (s *gateScene) ask(who, method, path, body string, headers ...string) answerSeen {
	s.t.Helper()
	return s.send(s.t.Context(), who, badRequest{method, path, body, headers})
}

func (s *gateScene) send(ctx context.Context, who string, b badRequest) answerSeen {
	s.t.Helper()
	body, headers := b.body, b.headers
	var from io.Reader
	if body != "" {
		from = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, b.method, "http://"+s.addr+b.path, from)
	if err != nil {
		s.t.Fatal(err)
	}
	if text, ok := s.keys[who]; ok {
		r.Header.Set("Authorization", "Bearer "+text)
	}
	r.Header.Set("X-Request-Id", "the-same")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		return answerSeen{err: err}
	}
	defer response.Body.Close()
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return answerSeen{status: response.StatusCode, header: response.Header}
	}
	text, err := io.ReadAll(response.Body)
	return answerSeen{response.StatusCode, response.Header, string(text), err}
}

// job enqueues a job of an owner.
func (s *gateScene) job(owner string) holdfast.ID {
	s.t.Helper()
	receipts, err := s.store.Enqueue(s.t.Context(), []holdfast.Draft{{Kind: "mail", Owner: owner}})
	if err != nil {
		s.t.Fatal(err)
	}
	return receipts[0].ID
}

func (s *gateScene) group(owner string) holdfast.ID {
	s.t.Helper()
	g, err := s.store.CreateGroup(s.t.Context(), holdfast.Group{ID: holdfast.NewID(), Owner: owner})
	if err != nil {
		s.t.Fatal(err)
	}
	return g.ID
}

// eventually waits until a condition is true.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); {
		if time.Now().After(end) {
			t.Fatal("timed out waiting for: " + what)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// checkOf computes the check of a key, as a forger would.
func checkOf(text string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) }

// facts describes the jobs, groups and holds in the store, as text.
func (s *gateScene) facts() string {
	s.t.Helper()
	jobs, _, err := s.store.Jobs(s.t.Context(), store.Filter{Limit: 200})
	if err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	for _, job := range jobs {
		fmt.Fprintln(&b, job.ID, job.Owner, job.Digest())
	}
	groups, _, err := s.store.Groups(s.t.Context(), store.GroupFilter{Limit: 200})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, g := range groups {
		fmt.Fprintln(&b, g.ID, g.Owner, g.State, g.Generation)
	}
	holds, err := s.store.Holds(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintln(&b, len(holds))
	return b.String()
}

func keyID(text string) string {
	id, _, _ := apikey.Parse(text)
	return id
}
