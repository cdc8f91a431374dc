package client_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/client"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/server"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// A testServer is a store and a server in front of it.
type testServer struct {
	testing.TB
	near store.Store
	web  *httptest.Server
}

func newTestServer(t testing.TB, change ...func(*server.Config)) *testServer {
	t.Helper()
	near, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "jobs.db")})
	if err != nil {
		t.Fatal(err)
	}
	cfg := server.Config{Store: near, Operator: ops.New(near, ops.Config{}), Open: true, IgnoreKeys: true, Log: silent}
	for _, f := range change {
		f(&cfg)
	}
	srv, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := &testServer{t, near, httptest.NewUnstartedServer(srv)}
	p.web.Config = srv.HTTP("")
	p.web.Start()
	t.Cleanup(func() {
		_ = srv.Close()
		p.web.CloseClientConnections()
		p.web.Close()
		_ = near.Close()
	})
	return p
}

func (p *testServer) dial(cfg client.Config) *client.Client {
	p.Helper()
	c, err := client.Dial(p.web.URL, cfg)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = c.Close() })
	return c
}

// ask sends one HTTP request, as curl would.
func (p *testServer) ask(method, path, body string, headers ...string) (int, http.Header, string) {
	p.Helper()
	request, err := http.NewRequestWithContext(p.Context(), method, p.web.URL+"/v1"+path, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.Fatal(err)
	}
	return response.StatusCode, response.Header, string(text)
}

func (p *testServer) jobs() int {
	p.Helper()
	n := 0
	counts, err := p.near.Counts(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	for _, c := range counts {
		n += c.Jobs
	}
	return n
}

func TestAJobIsAcknowledgedOnceUnderItsIdempotencyKey(t *testing.T) {
	p := newTestServer(t)
	status, header, first := p.ask("POST", "/jobs", `{"kind":"mail","args":{"to":"ada"}}`, `Idempotency-Key: "once"`, "traceparent: 00-aa-bb-01")
	var receipt api.Receipt
	if err := api.Unmarshal([]byte(first), &receipt); err != nil || status != http.StatusCreated || header.Get("Location") != "/v1/jobs/"+receipt.ID.String() {
		t.Fatal(status, header, first, err)
	}
	if status, _, again := p.ask("POST", "/jobs", `{"kind":"mail","args":{"to":"ada"}}`, "Idempotency-Key: once", "traceparent: 00-aa-bb-01"); status != http.StatusOK || !strings.Contains(again, receipt.ID.String()) {
		t.Fatal(status, again)
	}
	if status, _, other := p.ask("POST", "/jobs", `{"kind":"mail","args":{"to":"bob"}}`, "Idempotency-Key: once"); status != http.StatusUnprocessableEntity || !strings.Contains(other, "idempotency_key_reused") {
		t.Fatal(status, other)
	}
	job, err := p.near.Job(t.Context(), receipt.ID)
	if err != nil || job.IdempotencyKey != "once" || p.jobs() != 1 {
		t.Fatal(job, err)
	}
}

func TestAnArrayIsEnqueuedAllOrNone(t *testing.T) {
	p := newTestServer(t)
	if status, _, text := p.ask("POST", "/jobs/bulk", `[{"kind":"mail"},{"kind":"two words"}]`); status != http.StatusBadRequest || p.jobs() != 0 {
		t.Fatal(status, text)
	}
	status, _, text := p.ask("POST", "/jobs/bulk", `[{"kind":"mail"},{"kind":"mail","delay":"1h"}]`, "Content-Type: application/json")
	if status != http.StatusOK || strings.Count(text, `"id"`) != 2 || p.jobs() != 2 {
		t.Fatal(status, text)
	}
	if status, _, text := p.ask("POST", "/jobs/bulk", "["+strings.Repeat(`{"kind":"mail"},`, api.MostDrafts)+`{"kind":"mail"}]`); status != http.StatusBadRequest || !strings.Contains(text, "ndjson") {
		t.Fatal(status, text)
	}
}

func TestABadLineOfAStreamDoesNotStopTheOthers(t *testing.T) {
	p := newTestServer(t)
	var lines strings.Builder
	for i := range 3000 {
		switch {
		case i == 700:
			lines.WriteString("{\"kind\":\n")
		case i == 1500:
			lines.WriteString("{\"kind\":\"two words\"}\n")
		case i == 1600:
			lines.WriteString("\n")
		default:
			fmt.Fprintf(&lines, `{"kind":"mail","unique_key":"%d"}`+"\n", i%2900)
		}
	}
	_, _, text := p.ask("POST", "/jobs/bulk", lines.String(), "Content-Type: application/x-ndjson")
	answers := strings.Split(strings.TrimSpace(text), "\n")
	if want := `{"lines":3000,"enqueued":2897,"existing":100,"refused":2}`; answers[len(answers)-1] != want || len(answers) != 3000 || p.jobs() != 2897 {
		t.Fatalf("%d lines, the last %s, %d jobs", len(answers), answers[len(answers)-1], p.jobs())
	}
	for _, want := range []string{`{"line":701,"problem"`, `{"line":1501,"problem"`, `{"line":1602,"id"`} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing is said of %s", want)
		}
	}
	_, _, text = p.ask("POST", "/jobs/bulk?quiet=true", strings.Repeat("{\"kind\":\"mail\"}\n", 100)+`{"kind":"last"}`, "Content-Type: application/x-ndjson")
	if text != `{"lines":101,"enqueued":101,"existing":0,"refused":0}`+"\n" {
		t.Fatal(text)
	}
}

func TestAStreamIsAnsweredWhileItIsSent(t *testing.T) {
	p := newTestServer(t)
	from, to := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), "POST", p.web.URL+"/v1/jobs/bulk", from)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answers := bufio.NewReader(response.Body)
	for i := range 3 {
		if _, err := io.WriteString(to, "{\"kind\":\"mail\"}\n"); err != nil {
			t.Fatal(err)
		}
		line, err := answers.ReadString('\n')
		if err != nil || !strings.Contains(line, fmt.Sprintf(`{"line":%d,"id":`, i+1)) {
			t.Fatal(line, err)
		}
	}
	_ = to.Close()
	if rest, err := io.ReadAll(answers); err != nil || !strings.Contains(string(rest), `"enqueued":3`) {
		t.Fatal(string(rest), err)
	}
}

// A lossy transport loses the answers of requests that the server has executed.
type lossy struct {
	lose  func(*http.Request) bool
	calls atomic.Int64
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	l.calls.Add(1)
	lost := l.lose(r)
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && lost {
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return nil, errors.New("the answer is lost")
	}
	return response, err
}

// losesOnce loses the first answer to a path.
func losesOnce(path string) *lossy {
	var lost atomic.Bool
	return &lossy{lose: func(r *http.Request) bool { return r.URL.Path == "/v1"+path && !lost.Swap(true) }}
}

func TestAnEnqueueWhoseAnswerIsLostIsNotDoneTwice(t *testing.T) {
	p := newTestServer(t)
	ctx := t.Context()
	before, err := p.near.Enqueue(ctx, []holdfast.Draft{{Kind: "mail", UniqueKey: "taken"}})
	if err != nil {
		t.Fatal(err)
	}
	db := p.dial(client.Config{HTTP: &http.Client{Transport: losesOnce("/jobs/bulk")}}).Store()
	receipts, err := db.Enqueue(ctx, []holdfast.Draft{
		{Kind: "mail"}, {Kind: "mail", UniqueKey: "taken"}, {Kind: "mail", UniqueKey: "free"}, {Kind: "mail", IdempotencyKey: "once"}, {Kind: "mail"},
	})
	if err != nil || len(receipts) != 5 || receipts[1] != (holdfast.Receipt{ID: before[0].ID, Existing: true}) {
		t.Fatal(receipts, err)
	}
	for i, r := range receipts {
		if _, err := p.near.Job(ctx, r.ID); err != nil || r.Existing != (i == 1) {
			t.Errorf("receipt %d: %v %v", i, r, err)
		}
	}
	if p.jobs() != 5 {
		t.Fatal(p.jobs())
	}
}

func TestAnIDThatExistsIsAConflictAlsoWhenAnAnswerWasLost(t *testing.T) {
	p := newTestServer(t)
	taken := holdfast.Draft{ID: holdfast.NewID(), Kind: "mail"}
	if _, err := p.near.Enqueue(t.Context(), []holdfast.Draft{taken}); err != nil {
		t.Fatal(err)
	}
	var tried atomic.Bool
	db := p.dial(client.Config{HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if !tried.Swap(true) {
			return nil, errors.New("it never arrives")
		}
		return http.DefaultTransport.RoundTrip(r)
	})}}).Store()
	_, err := db.Enqueue(t.Context(), []holdfast.Draft{taken, {Kind: "mail"}})
	if !errors.Is(err, holdfast.ErrConflict) || p.jobs() != 1 {
		t.Fatal(err, p.jobs())
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
