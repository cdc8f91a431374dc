package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
	"github.com/holdfastdev/holdfast/store"
)

// write puts a text into a field, as typing it would.
func write(p *browser.Page, selector, text string) {
	p.Until(fmt.Sprintf(`document.querySelector(%q) !== null`, selector))
	browser.Eval[bool](p, fmt.Sprintf(`((field) => { field.value = %s; field.dispatchEvent(new Event("input", { bubbles: true })); return true; })(document.querySelector(%q))`, quoted(text), selector))
}

// quoted returns a text as a JavaScript string.
func quoted(text string) string {
	made, _ := json.Marshal(text)
	return string(made)
}

// ready waits until a page is loaded and its script has connected.
func ready(p *browser.Page) { p.See("#live-word", "Live") }

// leads clicks on a link or a submit button, and waits until the next page is ready.
func leads(p *browser.Page, selector string) {
	browser.Eval[bool](p, `window.before = true`)
	p.Click(selector)
	p.Until(`!("before" in window) && document.readyState === "complete"`)
	ready(p)
}

// stays marks a page, so that kept can find out whether it was reloaded.
func stays(p *browser.Page) { browser.Eval[bool](p, `window.stayed = true`) }

func kept(t *testing.T, p *browser.Page) {
	t.Helper()
	if !browser.Eval[bool](p, `window.stayed === true`) {
		t.Error("the page was reloaded")
	}
}

// status returns the HTTP status of the page.
func status(p *browser.Page) int {
	return browser.Eval[int](p, `performance.getEntriesByType("navigation")[0].responseStatus`)
}

// rows returns the ids of the jobs on a page, in order.
func rows(p *browser.Page) []string {
	return browser.Eval[[]string](p, `[...document.querySelectorAll("[data-rows] [data-row]")].map((row) => row.dataset.row)`)
}

// ticked returns the ids of the selected jobs.
func ticked(p *browser.Page) []string {
	return browser.Eval[[]string](p, `[...document.querySelectorAll("[data-row] input[name=job]:checked")].map((box) => box.value)`)
}

// enqueue adds n jobs of a kind, in a queue of that name.
func (s *scene) enqueue(n int, kind string) []holdfast.ID {
	s.t.Helper()
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i] = holdfast.Draft{Kind: kind, Queue: kind, MaxAttempts: 1}
	}
	receipts, err := s.Store.Enqueue(s.t.Context(), drafts)
	if err != nil {
		s.t.Fatal(err)
	}
	ids := make([]holdfast.ID, n)
	for i := range ids {
		ids[i] = receipts[i].ID
	}
	return ids
}

// claim claims n jobs of a queue.
func (s *scene) claim(n int, queue string) []store.Lease {
	s.t.Helper()
	leases, err := s.Store.Claim(s.t.Context(), store.Claim{Worker: "worker-a/1", Queues: []string{queue}, Limit: n, Start: n, Lease: time.Hour})
	if err != nil || len(leases) != n {
		s.t.Fatalf("claimed %d of %d jobs: %v", len(leases), n, err)
	}
	return leases
}

// settle settles jobs with an outcome.
func (s *scene) settle(leases []store.Lease, o failure.Outcome) {
	s.t.Helper()
	settlements := make([]store.Settlement, len(leases))
	for i, lease := range leases {
		settlements[i] = failure.Decide(failure.Rules{}, lease, o).Settlement(lease, o)
	}
	answers, err := s.Store.Settle(s.t.Context(), settlements)
	if err := errors.Join(append(answers, err)...); err != nil {
		s.t.Fatal(err)
	}
}

// fail adds n dead letters of a kind.
func (s *scene) fail(n int, kind, message string) []holdfast.ID {
	s.t.Helper()
	ids := s.enqueue(n, kind)
	s.settle(s.claim(n, kind), failure.Outcome{Err: errors.New(message), Took: time.Second})
	return ids
}

// job reads a job.
func (s *scene) job(id holdfast.ID) holdfast.Job {
	s.t.Helper()
	job, err := s.Operator.Job(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return job
}

// count counts jobs.
func (s *scene) count(f store.Filter) int {
	s.t.Helper()
	n, err := s.Operator.Count(s.t.Context(), f)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// redrives returns all redrives.
func (s *scene) redrives() []redrive.Progress {
	s.t.Helper()
	list, err := s.Operator.Redrives(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// work runs an engine for the queue convert, which also advances redrives, until the test ends.
func (s *scene) work() {
	s.t.Helper()
	e, err := engine.New(s.Store, engine.Config{Name: "worker-c", Queues: []string{"convert"}, Log: slog.New(slog.DiscardHandler), Poll: 100 * time.Millisecond})
	if err != nil {
		s.t.Fatal(err)
	}
	engine.HandleRaw(e, "convert", func(context.Context, *engine.Raw) error { return nil })
	ctx, stop := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !strings.Contains(err.Error(), "stop") {
			s.t.Errorf("the engine ended with %v", err)
		}
	})
}
