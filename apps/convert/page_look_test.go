package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
)

// furnished returns a page with rows in every state.
func furnished(t *testing.T) *visitor {
	t.Helper()
	s := newScene(t, "", quick)
	v := s.visited()
	own := func(d *holdfast.Draft) { d.Owner = v.owner() }
	w := s.works()
	complete, expired := s.enters(1, own), s.enters(2, own)
	s.becomes(complete, holdfast.Complete)
	s.becomes(expired, holdfast.Complete)
	s.loses(expired, artifactResult)
	s.gateway.says(http.StatusNotAcceptable, "")
	failed, lost := s.enters(3, own), s.enters(4, own)
	s.becomes(failed, holdfast.Failed)
	s.becomes(lost, holdfast.Failed)
	s.loses(lost, artifactSource)
	w.stop()
	s.enters(5, own)
	v.Drop("body", "a-name-without-any-place-to-break-"+strings.Repeat("x", 180)+".pdf", samplePDF(6))
	v.See("#sum", "2 queued")
	v.Reload()
	v.See("#live", "Live")
	v.See("#sum", "2 queued, 1 complete, 2 failed, 1 expired")
	return v
}

func TestThePageIsAccessible(t *testing.T) {
	v := furnished(t)
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 360} {
			v.Size(width, 800)
			v.Likes(theme, true)
			for _, barrier := range v.Barriers() {
				t.Errorf("%s, %d wide: %s", theme, width, barrier)
			}
			v.Click(`#jobs [data-part="preview"]:not([hidden])`)
			v.See("dialog code", "Hello")
			for _, barrier := range v.Barriers() {
				t.Errorf("%s, %d wide, with a preview: %s", theme, width, barrier)
			}
			v.Press("\x1b")
		}
	}
}

func TestThePageFitsAPhoneAndLargeType(t *testing.T) {
	v := furnished(t)
	for _, width := range []int64{320, 360, 640, 1280} { // 640 is 1280 at 200 %
		for _, letters := range []string{"100%", "200%"} {
			v.Size(width, 740)
			browser.Eval[bool](v.Page, fmt.Sprintf(`(document.documentElement.style.fontSize = %q, true)`, letters))
			if letters == "200%" && width < 640 {
				continue // 200 % on a phone is not tested
			}
			if wide := browser.Eval[int](v.Page, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
				t.Errorf("at %d wide and %s it scrolls sideways by %d", width, letters, wide)
			}
			cut := browser.Eval[[]string](v.Page, `[...document.querySelectorAll("button, .button, select, .badge")].filter((e) => e.checkVisibility() && (e.getBoundingClientRect().right > innerWidth + 1 || (e.localName !== "select" && e.scrollWidth > e.clientWidth + 1 && !e.querySelector(".unseen")))).map((e) => e.outerHTML.slice(0, 120))`)
			for _, element := range cut {
				t.Errorf("at %d wide and %s something is cut off: %s", width, letters, element)
			}
		}
	}
}

func TestTheThemeFollowsTheSystemUntilTheUserChooses(t *testing.T) {
	s := newScene(t, "")
	v := s.visited()
	paper := func() string {
		return browser.Eval[string](v.Page, "getComputedStyle(document.documentElement).backgroundColor")
	}
	light := paper()
	v.Likes("dark", true)
	dark := paper()
	if light == dark {
		t.Errorf("both themes are %s", dark)
	}
	v.Click("#theme")
	expect(t, "after the light theme was chosen", paper(), light)
	v.Reload()
	expect(t, "after a reload", paper(), light)
	// It is set before the first paint: by a script that the browser waits for, in front of the style's first use.
	expect(t, "what sets the theme", browser.Eval[string](v.Page, `(() => { const s = document.querySelector("head script"); return s.src.split("/").pop() + s.async + s.defer + s.type; })()`), "theme.jsfalsefalse")
	v.Likes("light", false)
	v.Click("#theme")
	expect(t, "the other way round", paper(), dark)
	v.quiet()
}

func TestEverythingIsReachedByKeyboardAndSeenWhenItIs(t *testing.T) {
	v := furnished(t)
	const at = `(() => { const e = document.activeElement; const s = getComputedStyle(e); return (e.id || e.dataset.part || e.className || e.localName) + (s.outlineStyle === "none" || !e.checkVisibility() ? " unseen" : ""); })()`
	var order []string
	for range 40 {
		v.Press("\t")
		now := browser.Eval[string](v.Page, at)
		if strings.HasPrefix(now, "body") {
			break // once round
		}
		if strings.HasSuffix(now, " unseen") {
			t.Errorf("the focus is on %s and cannot be seen", now)
		}
		order = append(order, now)
	}
	// A disabled Retry is skipped, and its reason is read with the row.
	expect(t, "the order", strings.Join(order, ", "), "skip, brand, theme, mapping, button primary, button, preview, download")
	if browser.Eval[int](v.Page, `document.querySelectorAll("[tabindex]:not([tabindex='0']):not([tabindex='-1'])").length`) != 0 {
		t.Error("an element has a tab index of its own")
	}
}

func TestThePageLoadsNothingFromOtherSitesAndHasNoInlineCode(t *testing.T) {
	s := newScene(t, "")
	c := newCaller(t, s.served())
	page := c.asks("GET", "/").is(http.StatusOK, "")
	if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	for _, wrong := range []string{`<script>`, ` style="`, ` onclick`, `<style`, `https://`, `//cdn`} {
		if strings.Contains(page.body, wrong) {
			t.Errorf("the page has %q in it", wrong)
		}
	}
	links := regexp.MustCompile(`(?:href|src)="(/assets/[^"]+)"`).FindAllStringSubmatch(page.body, -1)
	if len(links) < 4 {
		t.Errorf("%v", links)
	}
	for _, link := range links {
		asset := c.asks("GET", link[1]).is(http.StatusOK, "")
		expect(t, link[1]+" is kept", asset.header.Get("Cache-Control"), "public, max-age=31536000, immutable")
		c.asks("GET", link[1], "If-None-Match", asset.header.Get("ETag")).is(http.StatusNotModified, "")
		old := c.asks("GET", "/assets/old/"+filepath.Base(link[1])).is(http.StatusOK, "")
		expect(t, "an old page's asset", old.header.Get("Cache-Control"), "no-cache")
	}
	for _, path := range []string{"/assets/old/index.html", "/assets/old/row.html", "/assets/old/", "/assets/", "/nowhere", "/page/style.css"} {
		missing := c.asks("GET", path)
		if missing.status != http.StatusNotFound || !strings.Contains(missing.body, "This page does not exist.") {
			t.Errorf("%s: %d", path, missing.status)
		}
	}
}

func TestTheScriptsNeverMakeMarkupOfData(t *testing.T) {
	scripts, err := filepath.Glob("page/*.js")
	if err != nil || len(scripts) < 5 {
		t.Fatalf("%v, %v", scripts, err)
	}
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "setAttribute(\"on", "setAttribute(\"style", ".style."} {
			if strings.Contains(string(text), wrong) {
				t.Errorf("%s has %s in it", name, wrong)
			}
		}
	}
}

func TestAFormFromAnotherSiteIsRefused(t *testing.T) {
	s := newScene(t, "")
	c := newCaller(t, s.served())
	for _, path := range []string{"/upload", "/jobs/" + holdfast.NewID().String() + "/retry"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.at+path, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Sec-Fetch-Site", "cross-site")
		response, err := c.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		expect(t, path, response.StatusCode, http.StatusForbidden)
	}
}
