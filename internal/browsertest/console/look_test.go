package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
	"github.com/holdfastdev/holdfast/store"
)

var failures = store.ErrorFilter{}

// TestEveryScreenCanBeUsed checks every screen in both themes, at desktop and phone width, and at 200 % zoom.
func TestEveryScreenCanBeUsed(t *testing.T) {
	s := stage(t, apikey.Admin, nil)
	for name, path := range s.screens() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := browser.New(t)
			for _, theme := range []string{"light", "dark"} {
				p.Likes(theme, true)
				p.Size(1280, 900)
				p.Go(s.site + path)
				p.Until(`document.documentElement.classList.contains("js")`)
				for _, barrier := range p.Barriers() {
					t.Errorf("%s, %s: %s", path, theme, barrier)
				}
			}
			for _, width := range []int64{360, 640} {
				p.Size(width, 800)
				p.Go(s.site + path)
				if over := browser.Eval[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
					t.Errorf("%s is %d px wider than a window of %d px: %s", path, over, width, widest(p))
				}
			}
			if browser.Eval[bool](p, `document.querySelector(".error-page") !== null`) {
				t.Errorf("%s is refused", path)
			}
			if n := browser.Eval[int](p, `document.querySelectorAll("main h1").length`); n != 1 {
				t.Errorf("%s has %d headings of the first level", path, n)
			}
			for _, complaint := range p.Complaints() {
				t.Errorf("%s: %s", path, complaint)
			}
		})
	}
}

// widest returns the elements that are too wide.
func widest(p *browser.Page) string {
	return browser.Eval[string](p, `[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".table-wrap, pre, .chart-wrap, [popover]")).slice(0, 3).map((e) => e.tagName + "." + e.className).join(", ")`)
}

// polyglots are texts that run as code wherever a page does not escape them.
var polyglots = []string{
	`jaVasCript:/*-/*` + "`" + `/*\` + "`" + `/*'/*"/**/(/* */oNcliCk=window.struck=1 )//%0D%0A%0d%0a//</stYle/</titLe/</teXtarEa/</scRipt/--!>\x3csVg/<sVg/oNloAd=window.struck=1//>\x3e`,
	`"><img src=x onerror="window.struck=1"><script>window.struck=1</script>`,
	`'-window.struck=1-'{{constructor.constructor('window.struck=1')()}}</textarea><svg onload=window.struck=1>`,
}

// TestHostileTextsAreInert puts code into every text that clients choose, and checks every screen.
func TestHostileTextsAreInert(t *testing.T) {
	s := stage(t, apikey.Admin, func(column, text string) string {
		return fmt.Sprintf("%s %s %s", column, polyglots[len(column)%len(polyglots)], text)
	})
	p := browser.New(t)
	for name, path := range s.screens() {
		p.Go(s.site + path)
		p.Until(`document.documentElement.classList.contains("js")`)
		if browser.Eval[bool](p, `"struck" in window`) {
			t.Errorf("%s: %s executed a text", name, path)
		}
		if n := browser.Eval[int](p, `document.querySelectorAll("main script, main img[src=x], main [onload], main [onerror], main [onclick], a[href^='javascript' i]").length`); n != 0 {
			t.Errorf("%s: %s rendered text as markup %d times", name, path, n)
		}
	}
	for _, complaint := range p.Complaints() {
		if !strings.Contains(complaint, "404") {
			t.Error(complaint)
		}
	}
}
