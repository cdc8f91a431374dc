// Package console_test tests the console in a real browser.
package console_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
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
		"group-graph": "/groups/" + s.order().String(), "deliveries": "/deliveries", "audit": "/audit", "health": "/health", "settings": "/settings",
	}
}

// order enqueues a group whose members wait for each other in each way, with the first of them failed, and returns its id.
func (s *scene) order() holdfast.ID {
	s.t.Helper()
	ctx := s.t.Context()
	group, err := s.Store.CreateGroup(ctx, holdfast.Group{Name: "order 1842", Owner: "acme"})
	if err != nil {
		s.t.Fatal(err)
	}
	drafts := []holdfast.Draft{
		{Kind: "reserve", Step: "reserve"}, {Kind: "charge", Step: "charge"}, {Kind: "refund", Step: "refund", When: []holdfast.Condition{{Step: "charge", On: holdfast.OnFailed}}},
	}
	for range 12 {
		drafts = append(drafts, holdfast.Draft{Kind: "print-a-label", When: []holdfast.Condition{{Step: "reserve"}, {Step: "charge"}}})
	}
	drafts = append(drafts,
		holdfast.Draft{Kind: "ship", Step: "ship", When: []holdfast.Condition{{Step: "reserve"}, {Step: "charge"}}},
		holdfast.Draft{Kind: "release", Step: "release-the-reserved-goods-of-the-order", When: []holdfast.Condition{{Step: "ship", On: holdfast.OnCancelled}}},
		holdfast.Draft{Kind: "report", Step: "report", When: []holdfast.Condition{{Step: "ship", On: holdfast.OnEnded}, {Step: "refund", On: holdfast.OnEnded}}})
	for i := range drafts {
		drafts[i].Group, drafts[i].Owner, drafts[i].Queue = group.ID, "acme", "orders"
	}
	if _, err := s.Store.Enqueue(ctx, drafts); err != nil {
		s.t.Fatal(err)
	}
	leases, err := s.Store.Claim(ctx, store.Claim{Worker: "w", Queues: []string{"orders"}, Kinds: []string{"charge"}, Limit: 1, Start: 1, Lease: time.Hour})
	if err != nil || len(leases) != 1 {
		s.t.Fatalf("%d leases: %v", len(leases), err)
	}
	failed := store.Settlement{
		Batch: leases[0].Batch, Job: leases[0].ID, Token: leases[0].Token, To: holdfast.Failed, Queue: leases[0].Queue, Charge: store.ChargeFailure, Limit: 1,
		Failure: &holdfast.Failure{Code: "CARD_REFUSED", Category: "user", Message: "The bank refused the card."},
	}
	if answers, err := s.Store.Settle(ctx, []store.Settlement{failed}); err != nil || answers[0] != nil {
		s.t.Fatal(err, answers)
	}
	for {
		pages, err := s.Store.Sequence(ctx, 100)
		done, failed := s.Store.AdvanceGroups(ctx, 100)
		if err != nil || failed != nil {
			s.t.Fatal(err, failed)
		}
		if pages+done == 0 {
			return group.ID
		}
	}
}
