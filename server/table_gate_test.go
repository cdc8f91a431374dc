package server

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
)

// A row says who may call a route: scopes by their first letters, and what a key that is bound to an owner gets: "job" and "group" its owner's, "list" a list
// restricted to its owner, "" nothing.
type row struct{ scopes, bound string }

// unguarded are the patterns without authorisation, and why.
var unguarded = map[string]string{
	"GET /livez":   "says only that the process lives",
	"GET /readyz":  "says only whether the server can serve; more to viewers",
	"GET /metrics": "looks at the key itself",
	"/console/":    "pages find out who visits them",

	"GET /docs":            "what can be asked is no secret",
	"GET /problems/{code}": "what a problem means is no secret",
	"GET /v1/openapi.json": "what can be asked is no secret",
	"GET /v1/openapi.yaml": "what can be asked is no secret",
}

func TestEveryPathIsAuthorisedOrListedAsOpen(t *testing.T) {
	s := newGateScene(t, func(c *Config) { c.Metrics = http.NotFoundHandler() })
	if err := s.srv.Mount("/console", http.NotFoundHandler()); err != nil {
		t.Fatal(err)
	}
	guarded := map[string]bool{}
	for _, r := range s.srv.routes {
		guarded[r.method+" "+api.Prefix+r.path] = true
		if _, ok := gateTable[r.name]; !ok {
			t.Errorf("the route %s (%s %s, scope %q also %q, %T) has no row in the table of the gate: say who may ask it", r.name, r.method, r.path, r.scope, r.also, r.in)
		}
	}
	for _, pattern := range s.srv.mux.patterns {
		if !guarded[pattern] && unguarded[pattern] == "" {
			t.Errorf("%s is behind no gate: mount it with mount or mountRaw, or say here why not", pattern)
		}
	}
	for name := range gateTable {
		if !slices.ContainsFunc(s.srv.routes, func(m mounted) bool { return m.name == name }) {
			t.Errorf("the table of the gate has a row for %s, and there is no such route", name)
		}
	}
}

var pathName = regexp.MustCompile(`\{[^}]*\}`)

// at fills in the parameters of a route's path.
func at(m mounted, job, group holdfast.ID) string {
	return api.Prefix + pathName.ReplaceAllStringFunc(m.path, func(name string) string {
		switch _, grouped := m.in.(api.GroupNamer); {
		case name == "{id}" && grouped:
			return group.String()
		case name == "{id}":
			return job.String()
		}
		return "nobody"
	})
}

// try calls a route with only its path. A long route that does not answer has admitted the caller.
func (s *gateScene) try(who string, m mounted, path string) answerSeen {
	ctx := s.t.Context()
	if m.long {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
	}
	a := s.send(ctx, who, badRequest{method: m.method, path: path})
	if m.long && errors.Is(a.err, context.DeadlineExceeded) {
		return answerSeen{status: http.StatusOK}
	}
	return a
}

// refusedByScope reports whether the key's scope was the reason. Some routes admit a scope and refuse single requests of it.
func (a answerSeen) refusedByScope() bool {
	return a.status == http.StatusForbidden && strings.Contains(a.body, "this key has the scope ")
}

func TestOnlyAllowedScopesMayCallEachRoute(t *testing.T) {
	s := newGateScene(t)
	s.keys["worker of a queue"] = s.makeKey(apikey.Request{Name: "narrow", Scope: apikey.Worker, Queues: []string{"a"}})
	s.keys["viewer of bob"] = s.makeKey(apikey.Request{Name: "peek", Scope: apikey.Viewer, Owner: "bob"})
	for _, m := range s.srv.routes {
		want, path := gateTable[m.name], at(m, holdfast.NewID(), holdfast.NewID())
		for _, who := range []string{"", "malformed", "revoked", "expired"} {
			s.srv.badKeys = newBadKeyLimit() // this test sends more bad keys than one address may
			if a := s.try(who, m, path); a.status != http.StatusUnauthorized || a.code() != "unauthenticated" {
				t.Errorf("%s %s with a key that is %q: %d %s", m.method, path, who, a.status, a.body)
			}
		}
		for _, who := range []string{"viewer", "worker", "worker of a queue", "operator", "admin"} {
			a, may := s.try(who, m, path), strings.Contains(want.scopes, who[:1])
			if may == a.refusedByScope() || a.status == http.StatusUnauthorized || a.err != nil {
				t.Errorf("%s %s as %s, who may: %v: %d %s %v", m.method, path, who, may, a.status, a.body, a.err)
			}
			if a.status >= 500 && a.status != http.StatusServiceUnavailable {
				t.Errorf("%s %s as %s: %d %s", m.method, path, who, a.status, a.body)
			}
		}
		for who, scope := range map[string]string{"own": "o", "viewer of bob": "v"} {
			a, may := s.try(who, m, path), want.bound != "" && strings.Contains(want.scopes, scope)
			if may == (a.status == http.StatusForbidden && (a.refusedByScope() || strings.Contains(a.body, "bound to an owner"))) || a.status == http.StatusUnauthorized {
				t.Errorf("%s %s with the key %s, that may: %v: %d %s", m.method, path, who, may, a.status, a.body)
			}
		}
	}
}

func TestForeignJobsAreAnsweredExactlyLikeUnknownOnes(t *testing.T) {
	s := newGateScene(t)
	for _, m := range s.srv.routes {
		want := gateTable[m.name]
		if want.bound != "job" && want.bound != "group" {
			continue
		}
		job, group := s.job("bob"), s.group("bob")
		foreign := s.try("foreign", m, at(m, job, group))
		unknownJob, unknownGroup := holdfast.NewID(), holdfast.NewID()
		unknown := s.try("foreign", m, at(m, unknownJob, unknownGroup))
		if foreign.status != http.StatusNotFound {
			t.Errorf("%s: what is foreign answers %d %s", m.name, foreign.status, foreign.body)
		}
		same := strings.NewReplacer(unknownJob.String(), job.String(), unknownGroup.String(), group.String()).Replace(unknown.whole())
		if foreign.whole() != same {
			t.Errorf("%s: foreign\n%s\nunknown\n%s", m.name, foreign.whole(), same)
		}
		if own := s.try("own", m, at(m, job, group)); own.status == http.StatusNotFound && want.bound == "job" && !strings.Contains(m.path, "deliver") {
			t.Errorf("%s: what is one's own answers %d %s", m.name, own.status, own.body)
		}
	}
}

func TestListsShowBoundKeysOnlyTheirOwnersEntries(t *testing.T) {
	s := newGateScene(t)
	bobs, eves := s.job("bob"), s.job("eve")
	s.group("bob")
	for _, m := range s.srv.routes {
		if gateTable[m.name].bound != "list" || m.method != "GET" || m.long {
			continue
		}
		path := at(m, bobs, bobs)
		a := s.ask("own", "GET", path, "")
		if a.status != http.StatusOK || strings.Contains(a.body, eves.String()) || strings.Contains(a.body, `"eve"`) {
			t.Errorf("%s: %d %s", m.name, a.status, a.body)
		}
		if a := s.ask("own", "GET", path+"?owner=eve", ""); a.status != http.StatusNotFound && a.status != http.StatusBadRequest {
			t.Errorf("%s of somebody else: %d %s", m.name, a.status, a.body)
		}
	}
	if a := s.ask("own", "GET", "/v1/jobs", ""); !strings.Contains(a.body, bobs.String()) {
		t.Error("what is one's own is not shown:", a.body)
	}
}

func TestStuckJobsAreShownToTheirOwner(t *testing.T) {
	s := newGateScene(t)
	bobs, eves := s.job("bob"), s.job("eve")
	leases, err := s.store.Claim(t.Context(), store.Claim{Worker: "w1", Queues: []string{holdfast.DefaultQueue}, Limit: 2, Start: 2, Lease: time.Hour})
	if err != nil || len(leases) != 2 {
		t.Fatal(leases, err)
	}
	eventually(t, "the clock of the store has moved on", func() bool {
		all := s.ask("viewer", "GET", "/v1/stuck?after=1ns", "")
		return strings.Contains(all.body, bobs.String()) && strings.Contains(all.body, eves.String())
	})
	if a := s.ask("own", "GET", "/v1/stuck?after=1ns", ""); !strings.Contains(a.body, bobs.String()) || strings.Contains(a.body, eves.String()) || !strings.Contains(a.body, `"looked":1`) {
		t.Error("a key of bob's is shown:", a.status, a.body)
	}
}

func TestAPurgedJobIsGoneForItsOwnerAndUnknownToOthers(t *testing.T) {
	s := newGateScene(t)
	job := s.job("bob")
	if _, err := s.store.Cancel(t.Context(), store.Intervention{Job: job, Actor: "ada"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job is purged", func() bool {
		_, err := s.store.Purge(t.Context(), store.Purge{Rules: []store.RetentionRule{{Name: "rest"}}, Scan: 100})
		if err == nil {
			_, err = s.store.Job(t.Context(), job)
		}
		return errors.Is(err, holdfast.ErrPurged)
	})
	for _, m := range s.srv.routes {
		if gateTable[m.name].bound != "job" {
			continue
		}
		unknown := holdfast.NewID()
		never := strings.ReplaceAll(s.try("foreign", m, at(m, unknown, unknown)).whole(), unknown.String(), job.String())
		if foreign := s.try("foreign", m, at(m, job, job)); foreign.status != http.StatusNotFound || foreign.whole() != never {
			t.Errorf("%s: foreign\n%s\nunknown\n%s", m.name, foreign.whole(), never)
		}
	}
	if own := s.ask("own", "GET", "/v1/jobs/"+job.String(), ""); own.status != http.StatusGone || own.code() != "purged" {
		t.Error("to its owner it is:", own.status, own.body)
	}
}
