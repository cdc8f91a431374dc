package console_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
	"github.com/holdfastdev/holdfast/store"
)

const tab = "\t"

// TestASearchIsCompleted writes a whole search with a few keys.
func TestASearchIsCompleted(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	p := s.open("/jobs")
	ready(p)
	p.Click("#jobs-q")
	p.Press("sta")
	p.See(".completion", "state:")
	p.Press(tab)
	p.Until(`document.querySelector("#jobs-q").value === "state:"`)
	p.See(".completion", "state:cancelled")
	p.Press("f")
	p.Until(`document.querySelector(".completion").innerText.trim() === "state:failed"`)
	p.Press(browser.ArrowDown)
	p.Until(`document.querySelector(".completion [aria-selected=true]")?.id === document.activeElement.getAttribute("aria-activedescendant")`)
	p.Press("\r")
	p.Until(`document.querySelector("#jobs-q").value === "state:failed "`)
	p.Press("kind:conv")
	p.See(".completion", "kind:convert") // the server knows the kinds
	p.Press("\x1b")
	p.Until(`document.querySelector(".completion") === null`)
	p.Press("e")
	p.See(".completion", "kind:convert")
	p.Press(tab)
	p.Until(`document.querySelector("#jobs-q").value === "state:failed kind:convert "`)
	p.Press("\r")
	p.Until(`new URLSearchParams(location.search).get("q")?.trim() === "state:failed kind:convert" && document.querySelectorAll("[data-row]").length === 9`)
}

// TestASearchThatCannotBeRead: the page shows the error, suggests a correction, and lists no jobs.
func TestASearchThatCannotBeRead(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	p := s.open("/jobs?q=stat:failed")
	ready(p)
	p.See("#jobs-problem", "stat")
	p.See("main", "Search syntax")
	if n := len(rows(p)); n != 0 {
		t.Errorf("%d jobs are listed", n)
	}
	if by := browser.Eval[string](p, `document.querySelector("#jobs-q").getAttribute("aria-describedby")`); by != "jobs-problem" {
		t.Errorf("the field is described by %q", by)
	}
	leads(p, "#jobs-problem a")
	p.Until(`new URLSearchParams(location.search).get("q") === "state:failed"`)
	if len(rows(p)) == 0 {
		t.Error("the suggested search finds nothing")
	}
	for query, words := range map[string]string{"timeout": "Free text is not searched", "state:lost": "state", "age:soon": "age", "kind:a%20OR%20kind:b": "OR", "-kind:mail": ""} {
		p.Go(s.site + "/jobs?q=" + query)
		p.See("#jobs-problem", words)
	}
}

// TestAnAddressIsAPage: columns, limit, search and position are in the address, and another user with the same address sees the same rows.
func TestAnAddressIsAPage(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	s.fail(60, "crowd", "out of paper")
	p := s.open("/jobs?q=kind:crowd&limit=25")
	ready(p)
	p.Click("[popovertarget=jobs-view]:not([popovertargetaction])")
	p.See("#jobs-view", "List options")
	for _, name := range []string{"tags", "generation"} {
		p.Click("#jobs-view input[value=" + name + "]")
	}
	leads(p, "#jobs-view button[type=submit]")
	leads(p, "a[rel=next]")
	leads(p, "a[rel=next]")
	here, listed, heads := browser.Eval[string](p, `location.href`), rows(p), columns(p)
	if len(listed) != 10 || !strings.Contains(heads, "Tags") || !strings.Contains(heads, "Generation") {
		t.Errorf("the third page has %d rows and the columns %s", len(listed), heads)
	}
	other := browser.Open(t, here)
	ready(other)
	if !slices.Equal(rows(other), listed) || columns(other) != heads {
		t.Errorf("another user sees %d rows and the columns %s", len(rows(other)), columns(other))
	}
	s.enqueue(5, "crowd") // new jobs at the top do not move this page
	other.Reload()
	ready(other)
	if !slices.Equal(rows(other), listed) {
		t.Error("after a reload the page shows other jobs")
	}
	leads(other, "a[rel=first]")
	if !strings.Contains(columns(other), "Tags") || len(rows(other)) != 25 {
		t.Error("the link to the first page loses columns or the limit")
	}
}

func columns(p *browser.Page) string {
	return browser.Eval[string](p, `[...document.querySelectorAll("table.jobs th")].map((th) => th.textContent.trim()).join(" ")`)
}

// TestEveryJobIsOnOnePage: jobs of the same millisecond, and more dead letters than any list shows at once, are each on exactly one page.
func TestEveryJobIsOnOnePage(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	want := make([]string, 0, 205)
	for _, id := range s.fail(205, "crowd", "out of paper") {
		want = append(want, id.String())
	}
	slices.Sort(want)
	p := browser.New(t)
	for _, path := range []string{"/jobs?q=kind:crowd&limit=100", "/dead-letters?kind=crowd"} {
		p.Go(s.site + path)
		ready(p)
		met := rows(p)
		for range 20 {
			if !browser.Eval[bool](p, `document.querySelector("a[rel=next]") !== null`) {
				break
			}
			leads(p, "a[rel=next]")
			met = append(met, rows(p)...)
		}
		slices.Sort(met)
		if !slices.Equal(met, want) {
			t.Errorf("%s: %d jobs were met, %d of them once, of %d", path, len(met), len(slices.Compact(slices.Clone(met))), len(want))
		}
	}
	if n := s.count(store.Filter{Kind: "crowd", DeadLetters: true}); n != len(want) {
		t.Errorf("there are %d dead letters", n)
	}
}
