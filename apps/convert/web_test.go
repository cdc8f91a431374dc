package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// 001 section 3.3: a banner while the breaker holds. C7.
func TestTheBannerSaysThatJobsWillResume(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick)
		c := newCaller(t, s.served())
		state := func() (g Gateway) {
			t.Helper()
			if err := json.Unmarshal([]byte(c.asks("GET", "/api/gateway").is(200, "").body), &g); err != nil {
				t.Fatal(err)
			}
			return g
		}
		if g := state(); g.State != "closed" || g.Mode != "hold" || g.Message != nil || g.Held != 0 || g.NextProbeAt != nil {
			t.Errorf("while all is well: %+v", g)
		}
		s.gateway.stops()
		s.works()
		var ids []holdfast.ID
		for n := range 5 {
			ids = append(ids, c.has(s, n))
		}
		s.until("the worker has said what it depends on", func() bool {
			return s.operator.OpenBreaker(t.Context(), dependencyGateway, ops.Actor{Name: "test"}) == nil
		})
		s.until("the banner", func() bool { g := state(); return g.State == "open" && g.Held == 5 })
		g := state()
		if g.Message == nil || *g.Message != "Converter busy — jobs will resume automatically." || g.NextProbeAt == nil {
			t.Errorf("while it is held: %+v", g)
		}
		if v := c.get(ids[4]); v.Status != "queued" || !v.Held {
			t.Errorf("a job that is held: %+v", v)
		}
		s.gateway.starts()
		for _, id := range ids {
			s.becomes(id, holdfast.Complete)
		}
		s.until("the banner goes", func() bool { return state().State == "closed" })
	})
}

func TestMappingsComeFromTheGatewayOrWhileItIsDownFromTheSettings(t *testing.T) {
	s := newScene(t, "", func(set *settings) { set.Mappings = []string{"text", "invoice"} })
	c := newCaller(t, s.served())
	if got := c.asks("GET", "/api/mappings").is(200, "").body; !strings.Contains(got, `{"name":"layout","title":"Layout"}`) {
		t.Error(got)
	}
	s.gateway.stops()
	other := newCaller(t, s.served()) // another process, which has not reached the gateway yet
	if got := other.asks("GET", "/api/mappings").is(200, "").body; !strings.Contains(got, `{"name":"invoice","title":"invoice"}`) || strings.Contains(got, "layout") {
		t.Error(got)
	}
	if got := c.asks("GET", "/api/mappings").is(200, "").body; !strings.Contains(got, "layout") {
		t.Errorf("what was known is forgotten: %s", got)
	}
}

func TestWrongPathsMethodsAndSitesAreRefusedInJSON(t *testing.T) {
	s := newScene(t, "")
	c := newCaller(t, s.served())
	for _, path := range []string{"/api/", "/api/nothing", "/api/jobs/x/y/z", "/api/upload/more"} {
		c.asks("GET", path).is(404, "UNKNOWN")
	}
	for _, q := range [][3]string{
		{"DELETE", "/api/jobs/" + holdfast.NewID().String(), "GET, HEAD"},
		{"POST", "/api/jobs", "GET, HEAD"},
		{"GET", "/api/upload", "POST"},
		{"PUT", "/api/jobs/x/retry", "POST"},
	} {
		if got := c.asks(q[0], q[1]).is(405, "UNKNOWN"); got.header.Get("Allow") != q[2] {
			t.Errorf("%v: Allow is %q", q, got.header.Get("Allow"))
		}
	}
	c.asks("POST", "/api/jobs/"+holdfast.NewID().String()+"/retry", "Sec-Fetch-Site", "cross-site").is(403, "FORBIDDEN")
	c.asks("POST", "/api/upload", "Origin", "https://evil.example").is(403, "FORBIDDEN")
	c.asks("GET", "/api/jobs", "Authorization", "Bearer nonsense")
}

func TestEveryAnswerHasSecurityHeaders(t *testing.T) {
	s := newScene(t, "")
	c := newCaller(t, s.served())
	for _, path := range []string{"/", "/api/jobs", "/api/nothing", "/healthz", "/nothing"} {
		h := c.asks("GET", path).header
		policy := h.Get("Content-Security-Policy")
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") == "" || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || h.Get("X-Request-Id") == "" {
			t.Errorf("%s: %v", path, h)
		}
	}
	if id := c.asks("GET", "/api/jobs", "X-Request-Id", "trace-1").header.Get("X-Request-Id"); id != "trace-1" {
		t.Errorf("a request's own id is not kept: %s", id)
	}
	if id := c.asks("GET", "/api/jobs", "X-Request-Id", "<script>").header.Get("X-Request-Id"); id == "<script>" {
		t.Error("an id that is unfit is repeated")
	}
}

func TestAPanicIsAnsweredAndItsDetailsAreOnlyLogged(t *testing.T) {
	s := newScene(t, "")
	handler, err := s.handler()
	if err != nil {
		t.Fatal(err)
	}
	f := handler.(*webHandler)
	f.mux.HandleFunc("GET /api/broken", func(http.ResponseWriter, *http.Request) { panic("the secret of /tmp/somewhere") })
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/api/broken", nil))
	outcome{TB: t, what: "a panic", status: w.Code, header: w.Header(), body: w.Body.String()}.is(500, "UNKNOWN")
	if !strings.Contains(s.logged.String(), "request_panicked") {
		t.Error("the log does not know")
	}
}

func TestReadinessReportsWhetherFilesCanBeStored(t *testing.T) {
	s := newScene(t, "")
	handler, err := s.handler()
	if err != nil {
		t.Fatal(err)
	}
	f := handler.(*webHandler)
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+path, nil))
		return w.Code, w.Body.String()
	}
	if code, body := ask("/healthz"); code != 200 {
		t.Error(code, body)
	}
	if code, body := ask("/readyz"); code != 200 || !strings.Contains(body, `"gateway":"closed"`) {
		t.Error(code, body)
	}
	if left := len(filesIn(t, s.set.Uploads)) + len(filesIn(t, s.set.Results)); left != 0 {
		t.Errorf("asking leaves %d files", left)
	}
	if code, body := ask("/metrics"); code != 200 || !strings.Contains(body, "holdfast_") {
		t.Error(code, body)
	}
	f.results = brokenStore{f.results}
	f.health = f.newHealth() // without the results of before
	if code, body := ask("/readyz"); code != 503 || !strings.Contains(body, `{"name":"results","well":false}`) || strings.Contains(body, "secret") {
		t.Error(code, body)
	}
	f.Drain()
	if code, body := ask("/readyz"); code != 503 || !strings.Contains(body, "serving") {
		t.Error(code, body)
	}
	if code, _ := ask("/healthz"); code != 200 {
		t.Error("who is about to end does not answer any more")
	}
}

func TestMetricsAreForThisMachineUnlessConfiguredOtherwise(t *testing.T) {
	for _, c := range []struct {
		addr string
		on   bool
		want int
	}{{"127.0.0.1:0", false, 200}, {"localhost:80", false, 200}, {"0.0.0.0:80", false, 404}, {"[::]:80", false, 404}, {"0.0.0.0:80", true, 200}} {
		s := newScene(t, "", func(set *settings) { set.Addr, set.Metrics = c.addr, c.on })
		handler, err := s.handler()
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/metrics", nil))
		expect(t, fmt.Sprint("metrics on ", c.addr), w.Code, c.want)
	}
}

func TestAnUnavailableStoreAnswersWithRetryAfter(t *testing.T) {
	s := newScene(t, "")
	c := newCaller(t, s.served())
	id := c.has(s, 1)
	s.faulty.Plan(storetest.Fault{Verb: "Artifacts", Always: true})
	got := c.asks("GET", "/api/jobs/"+id.String()).is(503, "IO_ERROR")
	if got.header.Get("Retry-After") == "" || strings.Contains(got.body, "fault") {
		t.Errorf("%v %s", got.header, got.body)
	}
}
