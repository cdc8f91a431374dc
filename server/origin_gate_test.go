package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWithoutKeysOnlyThisMachineByItsOwnNamesIsServed(t *testing.T) {
	s := newGateScene(t, func(c *Config) { c.Open, c.IgnoreKeys = true, true })
	_, port, _ := strings.Cut(s.addr, ":")
	for _, host := range []string{"localhost", "localhost:" + port, "LOCALHOST:1", "127.0.0.1:" + port, "127.8.9.1", "[::1]:" + port, "[::1]", "localhost."} {
		if a := s.ask("", "GET", "/v1/jobs", "", "Host", host); a.status != http.StatusOK {
			t.Errorf("as %s: %d %s", host, a.status, a.body)
		}
	}
	for _, host := range []string{"evil.example", "evil.example:" + port, "localhost.evil.example", "127.0.0.1.nip.io", "0.0.0.0", "10.0.0.1", "[::]", "192.168.0.1:4747", "localhostx"} {
		if a := s.ask("", "GET", "/v1/jobs", "", "Host", host); a.status != http.StatusForbidden {
			t.Errorf("as %s: %d %s", host, a.status, a.body)
		}
	}
	for _, remote := range []string{"10.0.0.1:9", "[2001:db8::1]:9", "", "@"} {
		r := httptest.NewRequest("GET", "http://localhost/v1/jobs", nil)
		r.RemoteAddr = remote
		w := httptest.NewRecorder()
		s.srv.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden {
			t.Errorf("from %q: %d", remote, w.Code)
		}
	}
	if a := s.ask("viewer", "POST", "/v1/keys", "{}"); a.status == http.StatusCreated || a.status == http.StatusOK {
		t.Error("who brings a key is judged by it:", a.status, a.body)
	}
	if a := s.ask("revoked", "GET", "/v1/jobs", ""); a.status != http.StatusUnauthorized {
		t.Error("who brings a bad key is refused:", a.status)
	}
}

func TestPagesOfOtherOriginsChangeNothing(t *testing.T) {
	for _, open := range []bool{true, false} {
		s := newGateScene(t, func(c *Config) { c.Open, c.IgnoreKeys = open, open })
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
			for _, site := range []string{"cross-site", "same-site", "same-origin", "none", ""} {
				s.fromPages(open, method, site)
			}
		}
	}
}

// fromPages sends requests as pages of several origins do.
func (s *gateScene) fromPages(open bool, method, site string) {
	s.t.Helper()
	for _, origin := range []string{"", "http://" + s.addr, "https://evil.example", "null"} {
		var headers []string
		if site != "" {
			headers = append(headers, "Sec-Fetch-Site", site)
		}
		if origin != "" {
			headers = append(headers, "Origin", origin)
		}
		safe := method == "GET" || method == "HEAD"
		elsewhere := site == "cross-site" || site == "same-site" || site == "" && origin != "" && origin != "http://"+s.addr
		refused := elsewhere && !safe || open && (site == "cross-site" || site == "same-site")
		a := s.ask("admin", method, "/v1/jobs", "", headers...)
		if (a.status == http.StatusForbidden) != refused {
			s.t.Errorf("open %v: %s Sec-Fetch-Site %q Origin %q: %d %s", open, method, site, origin, a.status, a.body)
		}
	}
}

func TestReadsChangeNothing(t *testing.T) {
	s := newGateScene(t)
	job, group := s.job("bob"), s.group("bob")
	before := s.facts()
	for _, m := range s.srv.routes {
		if m.method == "GET" {
			s.try("admin", m, at(m, job, group))
		}
	}
	if after := s.facts(); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}
