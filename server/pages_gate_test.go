package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/api"
)

// withPages mounts pages in place of a console: they echo the request, and one of them streams until its request ends.
func withPages(t *testing.T, change ...func(*Config)) *gateScene {
	t.Helper()
	s := newGateScene(t, change...)
	pages := http.NewServeMux()
	pages.HandleFunc("/console/", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "<p>"+r.Method+" "+r.URL.Path+" "+string(text))
	})
	pages.HandleFunc("/console/panic", func(http.ResponseWriter, *http.Request) { panic("sesame") })
	pages.HandleFunc("/console/live", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: hello\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		_, _ = io.WriteString(w, "event: goodbye\n\n")
	})
	if err := s.srv.Mount("/console", pages, "/live"); err != nil {
		t.Fatal(err)
	}
	return s
}

const asBrowser = "text/html,application/xhtml+xml,*/*;q=0.8"

func TestTheRootRedirectsToThePages(t *testing.T) {
	s := withPages(t)
	for _, accept := range []string{asBrowser, "*/*", ""} {
		if a := s.ask("", "GET", "/", "", "Accept", accept); a.status != http.StatusSeeOther || a.header.Get("Location") != "/console/" {
			t.Error(a.status, a.header)
		}
	}
	for _, other := range []badRequest{{"POST", "/", "{}", []string{"Accept", asBrowser}}, {"GET", "/nothing", "", []string{"Accept", asBrowser}}} {
		if a := s.send(t.Context(), "", other); a.status != http.StatusNotFound || a.code() != "not_found" {
			t.Errorf("%+v: %d %s", other, a.status, a.body)
		}
	}
}

func TestTheRootOfAServerWithoutPagesNamesPathsThatExist(t *testing.T) {
	s := newGateScene(t)
	a := s.ask("", "GET", "/", "")
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Fatal(a.status, a.header)
	}
	for _, path := range []string{"/docs", "/v1/openapi.json"} {
		if b := s.ask("", "GET", path, ""); !strings.Contains(a.body, path+" ") || b.status != http.StatusOK {
			t.Errorf("%s answers %d, and the root answers %q", path, b.status, a.body)
		}
	}
}

func TestPagesHaveTheirOwnAnswersAndTheSameOriginChecks(t *testing.T) {
	s := withPages(t)
	a := s.ask("", "POST", "/console/x", "a=b")
	if a.status != http.StatusAccepted || a.body != "<p>POST /console/x a=b" || a.header.Get("Content-Security-Policy") != "default-src 'self'" || len(a.header.Values("Content-Security-Policy")) != 1 || a.header.Get("X-Request-Id") != "the-same" {
		t.Error(a.status, a.body, a.header)
	}
	large := strings.Repeat("x", 3*pagesAhead)
	if a := s.ask("", "POST", "/console/x", large); a.body != "<p>POST /console/x "+large {
		t.Error("a large form came as", len(a.body))
	}
	if a := s.ask("", "GET", "/console", ""); a.status/100 != 3 || a.header.Get("Location") != "/console/" {
		t.Error(a.status, a.header)
	}
	if a := s.ask("", "POST", "/console/x", "a=b", "Sec-Fetch-Site", "cross-site"); a.status != http.StatusForbidden {
		t.Error("a page of others changes something:", a.status)
	}
	if a := s.ask("", "GET", "/console/../v1/jobs", ""); a.status != http.StatusNotFound {
		t.Error(a.status, a.body)
	}
	if a := s.ask("", "GET", "/console/panic", ""); a.status != http.StatusInternalServerError || strings.Contains(a.body, "sesame") {
		t.Error(a.status, a.body)
	}
	open := withPages(t, func(c *Config) { c.Open, c.IgnoreKeys = true, true })
	for host, status := range map[string]int{"localhost": http.StatusAccepted, "127.0.0.1:4747": http.StatusAccepted, "evil.example": http.StatusForbidden} {
		if a := open.ask("", "GET", "/console/x", "", "Host", host); a.status != status {
			t.Errorf("as %s: %d", host, a.status)
		}
	}
}

func TestPagesAreMountedOnceAtAPathOfTheirOwn(t *testing.T) {
	for _, prefix := range []string{"", "/", "console", "/console/", "/v1", "/v1/console"} {
		if newGateScene(t).srv.Mount(prefix, http.NotFoundHandler()) == nil {
			t.Errorf("pages are mounted at %q", prefix)
		}
	}
	if withPages(t).srv.Mount("/more", http.NotFoundHandler()) == nil {
		t.Error("pages are mounted twice")
	}
}

func TestKnowAuthenticatesLikeTheAPI(t *testing.T) {
	s := newGateScene(t)
	who, err := s.srv.Authenticate(t.Context(), "192.0.2.1:99", " "+s.keys["operator"]+"\n")
	if err != nil || who.Name != "operator" || who.Scope != apikey.Operator || who.Key == "" {
		t.Error(who, err)
	}
	if who, err := s.srv.Authenticate(t.Context(), "192.0.2.1:99", s.keys["own"]); err != nil || who.Owner != "bob" {
		t.Error(who, err)
	}
	for _, bad := range []string{"", "malformed", "revoked", "expired"} {
		if _, err := s.srv.Authenticate(t.Context(), "192.0.2.1:99", s.keys[bad]); !errors.Is(err, api.ErrUnauthenticated) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for range badKeyBurst {
		_, err = s.srv.Authenticate(t.Context(), "192.0.2.1:1234", s.keys["malformed"])
	}
	if !errors.Is(err, holdfast.ErrThrottled) {
		t.Error("bad keys may be tried on and on:", err)
	}
	if _, err := s.srv.Authenticate(t.Context(), "192.0.2.2:1", s.keys["malformed"]); !errors.Is(err, api.ErrUnauthenticated) {
		t.Error("somebody else is made to wait:", err)
	}
	operatorKey := keyID(s.keys["operator"])
	if err := s.operator.RevokeKey(t.Context(), operatorKey, me); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a revoked key opens nothing", func() bool {
		_, err := s.srv.Authenticate(t.Context(), "192.0.2.3:1", s.keys["operator"])
		return err != nil
	})
}

// listens opens a stream and reads its first line.
func (s *gateScene) listens() *bufio.Reader {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), "GET", "http://"+s.addr+"/console/live", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = response.Body.Close() })
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); err != nil || line != "event: hello\n" {
		s.t.Fatal(line, err)
	}
	return lines
}

func TestPageStreamsEndWhenTheServerCloses(t *testing.T) {
	s := withPages(t, func(c *Config) { c.Limits.Streams = 1 })
	lines := s.listens()
	if a := s.ask("", "GET", "/console/live", ""); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Error("one listener too many is let in:", a.status, a.body)
	}
	s.srv.close()
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(rest), "goodbye") {
		t.Errorf("%q %v", rest, err)
	}
	eventually(t, "the stream is counted out", func() bool { return s.srv.streams.count() == 0 })
}

// Many clients send an incomplete form; then another client reads a page.
func TestSlowFormsBlockNoOther(t *testing.T) {
	s := withPages(t)
	for range 2 * pagesRunning {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "POST /console/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\na="); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(50 * time.Millisecond)
	if a := s.ask("", "GET", "/console/x", ""); a.status != http.StatusAccepted {
		t.Error(a.status, a.body)
	}
}
