package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
	"github.com/holdfastdev/holdfast/ops"
)

// TestABreakerOpensLive: the page shows it without a reload.
func TestABreakerOpensLive(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	by := ops.Actor{Name: "grace", Reason: "the vendor says so"}
	if err := s.Operator.CloseBreaker(t.Context(), "gateway", by); err != nil {
		t.Fatal(err)
	}
	p := s.open("/breakers")
	p.See("#live-word", "Live")
	p.See("main .badge", "recovering")
	browser.Eval[bool](p, `window.stayed = true`)
	if err := s.Operator.OpenBreaker(t.Context(), "gateway", by); err != nil {
		t.Fatal(err)
	}
	p.See("main .badge", "open")
	p.See(".menu-side .count.bad", "1")
	if !browser.Eval[bool](p, `window.stayed === true`) {
		t.Error("the page was reloaded")
	}
}

// TestPauseReallyPauses: a paused page sends no requests, and shows all changes at once when it resumes.
func TestPauseReallyPauses(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	p := s.open("/breakers")
	p.See("#live-word", "Live")
	other := s.open("/breakers")
	other.See("#live-word", "Live")
	p.Click("#live-pause")
	p.See("#live-word", "Paused")
	browser.Eval[bool](p, `window.since = performance.now(), true`)
	by := ops.Actor{Name: "grace", Reason: "it comes and goes"}
	for _, step := range []struct {
		act   func(context.Context, string, ops.Actor) error
		shown string
	}{{s.Operator.CloseBreaker, "recovering"}, {s.Operator.OpenBreaker, "open"}, {s.Operator.CloseBreaker, "recovering"}} {
		if err := step.act(t.Context(), "gateway", by); err != nil {
			t.Fatal(err)
		}
		other.See("main .badge", step.shown) // the other page is live and shows the change
	}
	if n := browser.Eval[int](p, `performance.getEntriesByType("resource").filter((r) => r.startTime > window.since).length`); n != 0 {
		t.Errorf("a paused page sent %d requests", n)
	}
	p.See("main .badge", "open")
	p.Reload() // the tab stays paused
	p.See("#live-word", "Paused")
	p.Click("#live-pause")
	p.See("#live-word", "Live")
	p.See("main .badge", "recovering")
}

// TestRowsDoNotJump: while a list is in use, new jobs are offered and not inserted.
func TestRowsDoNotJump(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	p := s.open("/jobs")
	p.See("#live-word", "Live")
	p.Click("tbody tr:first-child input[name=job]")
	first := browser.Eval[string](p, `document.querySelector("[data-row]").dataset.row`)
	if _, err := s.Store.Enqueue(t.Context(), []holdfast.Draft{{Kind: "mail", Queue: "bulk"}}); err != nil {
		t.Fatal(err)
	}
	p.See(".live-chip", "Updated")
	if now := browser.Eval[string](p, `document.querySelector("[data-row]").dataset.row`); now != first {
		t.Errorf("a row moved: %s was first, now %s", first, now)
	}
	if !browser.Eval[bool](p, `document.querySelector("[data-row] input[name=job]").checked`) {
		t.Error("the selection is lost")
	}
	p.Click(".live-chip")
	p.Until(`document.querySelector("[data-row]").dataset.row !== "` + first + `"`)
	if !browser.Eval[bool](p, `document.querySelector("[data-row='`+first+`'] input[name=job]").checked`) {
		t.Error("the selection is lost after showing what is new")
	}
}

// TestTheConnectionIsVisible: a page shows when the connection is lost, and reconnects by itself.
func TestTheConnectionIsVisible(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	c, err := console.New(console.Config{Operator: s.Operator})
	if err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		c.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { c.Close(); site.Close() })
	p := browser.Open(t, site.URL+"/overview")
	p.See("#live-word", "Live")
	down.Store(true)
	site.CloseClientConnections()
	p.See("#live-word", "Offline")
	down.Store(false)
	p.See("#live-word", "Live")
}
