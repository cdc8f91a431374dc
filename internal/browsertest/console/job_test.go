package console_test

import (
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
	"github.com/holdfastdev/holdfast/store"
)

// TestADeadLetterIsEditedAndRetried: the difference is shown first, and unchanged values stay exactly the same, including numbers that are too large for JavaScript.
func TestADeadLetterIsEditedAndRetried(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	id := s.Failed[0]
	was := string(s.job(id).Args)
	p := s.open("/jobs/" + id.String())
	ready(p)
	p.See("main", "Timeline")
	if n := browser.Eval[int](p, `document.querySelectorAll("#job-waterfall .waterfall-rows svg").length`); n == 0 {
		t.Error("there is no timeline picture")
	}
	p.Press("e")
	p.Until(`location.pathname.endsWith("/edit")`)
	ready(p)
	text := browser.Eval[string](p, `document.querySelector("textarea[name=args]").value`)
	for _, whole := range []string{"9007199254740993", `"": "an empty key"`} {
		if !strings.Contains(text, whole) {
			t.Errorf("%s is not in the form", whole)
		}
	}
	write(p, "textarea[name=args]", text+"}")
	leads(p, `.edit-form button[type=submit]`)
	p.See("[role=alert]", "Your input is kept below")
	if now := browser.Eval[string](p, `document.querySelector("textarea[name=args]").value`); now != text+"}" {
		t.Errorf("the edited text is lost: %s", now)
	}
	write(p, "textarea[name=args]", strings.Replace(text, "convert-0.pdf", "mended.pdf", 1))
	leads(p, `.edit-form button[type=submit]`)
	p.See("#difference", "Changes")
	for tone, line := range map[string]string{"-": "convert-0.pdf", "+": "mended.pdf"} {
		if !browser.Eval[bool](p, `[...document.querySelectorAll("#difference li")].some((li) => li.querySelector(".diff-sign").textContent.trim().startsWith(`+quoted(tone)+`) && li.textContent.includes(`+quoted(line)+`))`) {
			t.Errorf("the difference has no line %s %s: %s", tone, line, browser.Eval[string](p, `document.querySelector("#difference").innerText`))
		}
	}
	if now := string(s.job(id).Args); now != was {
		t.Fatalf("the preview of the difference changed the job: %s", now)
	}
	leads(p, "#difference button[type=submit]")
	p.See("#flash", "Edited and retried")
	p.See("#job-summary .badge", "queued")
	if now, want := string(s.job(id).Args), strings.Replace(was, "convert-0.pdf", "mended.pdf", 1); now != want {
		t.Errorf("the arguments are %s, not %s", now, want)
	}
}

// TestCopyingWorksWithoutTLS: over plain HTTP, browsers have no clipboard API.
func TestCopyingWorksWithoutTLS(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	p := s.open("/jobs/" + s.Failed[0].String())
	ready(p)
	browser.Eval[bool](p, `(Object.defineProperty(Navigator.prototype, "clipboard", { get: () => undefined }), document.addEventListener("copy", () => { window.copied = document.activeElement.value; }), navigator.clipboard === undefined)`)
	p.Click(".job-id [data-copy]")
	p.Until(`window.copied === ` + quoted(s.Failed[0].String()))
	p.See(".job-id [data-copy]", "Copied")
	if n := browser.Eval[int](p, `document.querySelectorAll("body > textarea").length`); n != 0 {
		t.Errorf("%d temporary fields were left", n)
	}
	p.Press("y")
	p.Until(`window.copied === location.href`)
}

// TestALongErrorFitsThePage: an error of a megabyte is listed, searched for and shown.
func TestALongErrorFitsThePage(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	id := s.fail(1, "talkative", strings.Repeat("the parser gave up<b> at a line without an end ", 1<<20/47))[0]
	p := browser.New(t)
	for _, path := range []string{"/jobs/" + id.String(), "/jobs?q=kind:talkative", "/dead-letters?kind=talkative", "/failures/" + s.job(id).LastFailure.Fingerprint, "/failures", "/overview"} {
		p.Go(s.site + path)
		ready(p)
		p.See("main", "talkative")
		if n := browser.Eval[int](p, `document.documentElement.outerHTML.length`); n > 400_000 {
			t.Errorf("%s is %d long", path, n)
		}
		if over := browser.Eval[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			t.Errorf("%s is %d px too wide: %s", path, over, widest(p))
		}
		if high := browser.Eval[int](p, `document.documentElement.scrollHeight`); high > 6000 {
			t.Errorf("%s is %d px high", path, high)
		}
	}
	p.Go(s.site + "/jobs/" + id.String())
	ready(p)
	p.Click("#job-attempts details summary")
	p.See("#job-attempts details pre", "the parser gave up<b> at a line")
}

// TestJobsThatAreNotThere: one that never existed, one that retention has deleted, and an invalid id.
func TestJobsThatAreNotThere(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	if _, err := s.Store.Purge(t.Context(), store.Purge{Rules: []store.RetentionRule{{Name: "unneeded", State: holdfast.Complete, Kind: "mail"}}, Scan: 1000}); err != nil {
		t.Fatal(err)
	}
	p := browser.New(t)
	for path, want := range map[string]struct {
		status int
		words  string
	}{
		"/jobs/" + holdfast.NewID().String():       {404, "Not found"},
		"/jobs/" + s.Complete[0].String():          {410, `by the rule "unneeded"`},
		"/jobs/17":                                 {404, "Not found"},
		"/jobs/" + holdfast.NewID().String() + "/": {404, "no such page"},
		"/failures/0000":                           {404, "Not found"},
		"/groups/" + holdfast.NewID().String():     {404, "Not found"},
		"/redrives/" + holdfast.NewID().String():   {404, "Not found"},
	} {
		p.Go(s.site + path)
		p.See("main .error-page", want.words)
		if got := status(p); got != want.status {
			t.Errorf("%s: %d, not %d", path, got, want.status)
		}
		p.See(".menu-side", "Dead letters") // the menu is there
	}
	p.Press("g")
	p.Press("j")
	p.Until(`location.pathname === "/jobs"`)
	ready(p)
}

// TestClocksThatDisagree: the store's clock is ahead of the others and is set back while a job runs. No duration is negative.
func TestClocksThatDisagree(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	ahead.Store(int64(2 * time.Hour))
	s := stageBy(t, apikey.Operator, nil, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	ids := s.enqueue(2, "skew")
	leases := s.claim(2, "skew")
	ahead.Store(int64(time.Hour))
	s.settle(leases[:1], failure.Outcome{Took: 3 * time.Second})
	s.settle(leases[1:], failure.Outcome{Err: &failure.HTTPError{Status: 503}, Took: time.Nanosecond})
	p := browser.New(t)
	minus := regexp.MustCompile(`(^|\W)[-−]\d[\d.,]* ?(µs|ms|s|min|h|d)\b`) // not in the middle of an id
	for _, path := range []string{"/jobs/" + ids[0].String(), "/jobs/" + ids[1].String(), "/jobs/" + s.Running[0].String(), "/jobs?columns=duration,ended,age,waits", "/overview", "/failures", "/workers", "/queues", "/breakers", "/analytics", "/dead-letters"} {
		p.Go(s.site + path)
		ready(p)
		if less := minus.FindString(p.Text()); less != "" {
			t.Errorf("%s shows %q", path, less)
		}
		if browser.Eval[bool](p, `[...document.querySelectorAll("svg rect")].some((r) => r.width.baseVal.value < 0)`) {
			t.Errorf("%s draws a negative size", path)
		}
	}
	for _, complaint := range p.Complaints() {
		t.Error(complaint)
	}
}
