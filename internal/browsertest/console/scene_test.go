// Package console_test tests the console in a real browser.
package console_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
	"github.com/holdfastdev/holdfast/internal/fixture"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// A scene is a console over a store with failures.
type scene struct {
	*fixture.Scene
	t    *testing.T
	site string
}

// stage opens a scene for a visitor with a scope. Tests that use it run in parallel.
func stage(t *testing.T, scope apikey.Scope, say func(column, text string) string) *scene {
	t.Helper()
	t.Parallel()
	return stageBy(t, scope, say, nil)
}

// stageBy opens a scene over a store with its own clock.
func stageBy(t *testing.T, scope apikey.Scope, say func(column, text string) string, clock func() time.Time) *scene {
	t.Helper()
	return begin(t, openStore(t, clock), scope, say)
}

func openStore(t *testing.T, clock func() time.Time) store.Store {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "holdfast.db"), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// begin fills a store with failures and opens a console over it.
func begin(t *testing.T, db store.Store, scope apikey.Scope, say func(column, text string) string) *scene {
	t.Helper()
	made, err := fixture.Make(t.Context(), db, say)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{Scene: made, t: t}
	s.site = s.serve(console.Config{Who: func(*http.Request) (console.Visitor, error) { return console.Visitor{Name: "ada", Scope: scope}, nil }})
	return s
}

// serve opens a console over the store and returns its address, without a slash at the end.
func (s *scene) serve(cfg console.Config) string {
	s.t.Helper()
	cfg.Operator = s.Operator
	c, err := console.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	site := httptest.NewServer(c)
	s.t.Cleanup(func() { c.Close(); site.Close() })
	return site.URL + cfg.Prefix
}

// open opens a page of the console.
func (s *scene) open(path string) *browser.Page {
	s.t.Helper()
	return browser.Open(s.t, s.site+path)
}

// screens returns the paths of all screens, with one example of each kind of object.
func (s *scene) screens() map[string]string {
	s.t.Helper()
	groups, _, err := s.Operator.ErrorGroups(s.t.Context(), failures)
	if err != nil || len(groups) == 0 {
		s.t.Fatalf("%d error groups: %v", len(groups), err)
	}
	return map[string]string{
		"overview": "/overview", "failures": "/failures", "failure": "/failures/" + groups[0].Fingerprint, "jobs": "/jobs", "job": "/jobs/" + s.Failed[0].String(),
		"job-edit": "/jobs/" + s.Failed[0].String() + "/edit", "dead-letters": "/dead-letters", "redrives": "/redrives", "redrive-new": "/redrives/new", "breakers": "/breakers", "groups": "/groups",
		"group": "/groups/" + s.Partial.String(), "queues": "/queues", "workers": "/workers", "schedules": "/schedules", "policies": "/policies", "policy-of-a-kind": "/policies?kind=convert", "analytics": "/analytics",
		"deliveries": "/deliveries", "audit": "/audit", "health": "/health", "settings": "/settings",
	}
}
