package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/internal/api"
)

func TestReadinessIsPublicAndItsDetailsNeedTheScopeViewer(t *testing.T) {
	var ill atomic.Bool
	s := newGateScene(t, func(c *Config) {
		c.Checks = []Check{{Name: "engine", Ask: func(context.Context) (any, error) {
			if ill.Load() {
				return nil, errors.New("password=hunter2 is wrong")
			}
			return "3 slots", nil
		}}}
	})
	s.job("bob")
	for _, who := range []string{"", "malformed", "revoked", "worker", "own"} {
		if a := s.ask(who, "GET", "/readyz", ""); a.status != http.StatusOK || a.body != "{\"status\":\"ok\"}\n" {
			t.Errorf("%q: %d %s", who, a.status, a.body)
		}
	}
	a := s.ask("viewer", "GET", "/readyz", "")
	var h Health
	if err := json.Unmarshal([]byte(strings.ReplaceAll(a.body, `"age":"`, `"ignored":"`)), &h); a.status != http.StatusOK || err != nil || len(h.Checks) != 2 || len(h.Queues) != 1 || h.Queues[0].Ready != 1 || h.Stuck == nil {
		t.Error(a.status, a.body, err)
	}
	ill.Store(true)
	eventually(t, "it is not ready", func() bool { return s.ask("", "GET", "/readyz", "").status == http.StatusServiceUnavailable })
	if a := s.ask("viewer", "GET", "/readyz", ""); !strings.Contains(a.body, `"engine"`) || strings.Contains(a.body, "hunter2") {
		t.Error(a.body)
	}
	if a := s.ask("", "GET", "/livez", ""); a.status != http.StatusOK {
		t.Error("it lives all the same:", a.status)
	}
}

func TestADrainingServerIsNotReadyAndStillAnswers(t *testing.T) {
	s := newGateScene(t)
	s.srv.Drain()
	if a := s.ask("", "GET", "/readyz", ""); a.status != http.StatusServiceUnavailable || a.body != "{\"status\":\"not ready\"}\n" {
		t.Error(a.status, a.body)
	}
	if a := s.ask("viewer", "GET", "/v1/jobs", ""); a.status != http.StatusOK {
		t.Error(a.status, a.body)
	}
}

type standings []duty.Status

func (s standings) Duties(context.Context) ([]duty.Status, error) { return s, nil }

func TestMissingOrLateDutiesFailTheHealthCheck(t *testing.T) {
	for _, c := range []struct {
		duties standings
		well   bool
	}{
		{standings{{Name: "promote", Workers: 1}}, true},
		{standings{{Name: "promote", Workers: 1, Lag: time.Hour}}, false},
		{standings{{Name: "promote"}}, false},
		{nil, false},
	} {
		if _, err := DutiesRun(c.duties, time.Minute).Ask(t.Context()); (err == nil) != c.well || err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("%+v: %v", c.duties, err)
		}
	}
}

func TestMetricsNeedTheScopeViewer(t *testing.T) {
	s := newGateScene(t, func(c *Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("jobs 1\n")) })
	})
	for who, status := range map[string]int{"": 401, "malformed": 401, "revoked": 401, "viewer": 200, "worker": 403, "operator": 200, "admin": 200, "own": 403} {
		if a := s.ask(who, "GET", "/metrics", ""); a.status != status || status == 200 && a.body != "jobs 1\n" {
			t.Errorf("%q: %d %s", who, a.status, a.body)
		}
	}
}

func TestEveryAnswerHasTheSecurityHeaders(t *testing.T) {
	s := newGateScene(t)
	for _, path := range []string{"/v1/jobs", "/v1/nothing", "/livez", "/readyz", "/", "/v1/jobs/bad"} {
		a := s.ask("admin", "GET", path, "")
		for name, value := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Request-Id": "the-same",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Access-Control-Allow-Origin": "", "Server": "", "Set-Cookie": "",
		} {
			if a.header.Get(name) != value {
				t.Errorf("%s: %s: %q", path, name, a.header.Get(name))
			}
		}
	}
}

func TestARequestKeepsItsIdIfTheIdIsPrintable(t *testing.T) {
	s := newGateScene(t)
	for id, fit := range map[string]bool{"abc-DEF_1.2": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "a b": false, "a\tb": false, "ä": false, "a\"b": false, "<b>": false} {
		a := s.ask("admin", "GET", "/v1/nothing", "", "X-Request-Id", id)
		given := a.header.Get("X-Request-Id")
		if (given == id) != fit || given == "" || !strings.Contains(a.body, `"request_id":"`+given+`"`) {
			t.Errorf("%q: %q %s", id, given, a.body)
		}
	}
}

func TestAPanicEndsTheRequestAndNotTheServer(t *testing.T) {
	s := newGateScene(t)
	mount(s.srv, api.Route[struct{}, api.Nothing]{Name: "panic", Method: "GET", Path: "/test/panic", Tag: "test"},
		func(context.Context, Caller, *struct{}) (api.Nothing, error) { panic("sesame") })
	mountRaw(s.srv, api.Route[struct{}, api.Nothing]{Name: "panic-later", Method: "GET", Path: "/test/later", Tag: "test"},
		func(w http.ResponseWriter, _ *http.Request, _ Caller, _ *struct{}) error {
			_, _ = w.Write([]byte("half of"))
			w.(http.Flusher).Flush()
			panic("sesame")
		})
	a := s.ask("admin", "GET", "/v1/test/panic", "")
	if a.status != http.StatusInternalServerError || a.code() != "internal" || strings.Contains(a.body, "sesame") || !strings.Contains(a.body, "the-same") {
		t.Error(a.status, a.body)
	}
	if a := s.ask("admin", "GET", "/v1/test/later", ""); a.err == nil {
		t.Error("half of an answer was taken for a whole one:", a.body)
	}
	if log := s.log.String(); !strings.Contains(log, "sesame") || !strings.Contains(log, `"request_id":"the-same"`) || !strings.Contains(log, "stack") {
		t.Error(log)
	}
	if a := s.ask("admin", "GET", "/v1/jobs", ""); a.status != http.StatusOK || s.srv.admission.running != 0 {
		t.Error(a.status, s.srv.admission.running)
	}
}

func TestUnknownPathsAndWrongMethodsAreProblems(t *testing.T) {
	s := newGateScene(t)
	for _, path := range []string{"/v1", "/v1/", "/v2/jobs", "/v1/jobs/", "/v1//jobs", "/v1/./jobs", "/v1/../jobs", "/favicon.ico", "/debug/pprof/", "/v1/%00"} {
		if a := s.ask("admin", "GET", path, ""); a.status != http.StatusNotFound || a.code() != "not_found" || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	for _, method := range []string{"PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
		a := s.ask("admin", method, "/v1/jobs", "")
		if allow := strings.Join(a.header.Values("Allow"), ","); a.status != http.StatusMethodNotAllowed || !strings.Contains(allow, "GET") || a.code() != "method_not_allowed" {
			t.Errorf("%s: %d %s Allow %q", method, a.status, a.body, allow)
		}
	}
}
