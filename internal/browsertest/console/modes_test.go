package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/console"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
)

// TestUnderAPrefix: an application can mount the console under any prefix, with or without a slash, and every link stays inside.
func TestUnderAPrefix(t *testing.T) {
	s := stage(t, apikey.Admin, nil)
	for _, prefix := range []string{"/ops/holdfast", "/ops/holdfast/"} {
		site := s.serve(console.Config{Prefix: prefix})
		site = strings.TrimRight(site, "/")
		p := browser.Open(t, site)
		p.Until(`location.pathname.startsWith("/ops/holdfast/")`)
		p.See("#live-word", "Live")
		for _, path := range s.screens() {
			p.Go(site + path)
			if out := browser.Eval[string](p, `[...document.querySelectorAll("a[href], form[action]")].map((e) => new URL(e.getAttribute("href") ?? e.getAttribute("action"), location.href).pathname).filter((path) => !path.startsWith("/ops/holdfast/")).join(" ")`); out != "" {
				t.Errorf("%s leads out of the console: %s", path, out)
			}
		}
		if bad := p.Complaints(); len(bad) > 0 {
			t.Errorf("complaints: %v", bad)
		}
	}
}

// TestWithKeysOnly finds a failed job, opens it and navigates, with the keyboard only.
func TestWithKeysOnly(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	p := s.open("/overview")
	p.See("#live-word", "Live")
	p.Press("?")
	p.See("#keys", "Keyboard")
	p.Press("\x1b")
	p.SeeNot("#keys", "Keyboard")
	p.Press("g")
	p.Press("j")
	p.Until(`location.pathname.endsWith("/jobs")`)
	p.See("#live-word", "Live")
	p.Press("/")
	p.Until(`document.activeElement.name === "q"`)
	browser.Eval[bool](p, `document.activeElement.value = "", true`)
	p.Press("is:dead kind:convert\r")
	p.Until(`location.search.includes("dead") && document.querySelectorAll("[data-row]").length === 9`)
	p.See("#live-word", "Live")
	p.Press("j")
	p.Press("x")
	p.Press("j")
	p.Press("x")
	p.See("[data-selected-count]", "2")
	p.Press("\r")
	p.Until(`/\/jobs\/[0-9a-f-]{36}$/.test(location.pathname)`)
	p.See("#live-word", "Live")
	p.Press("r")
	p.Until(`document.querySelector(":popover-open input[name=reason]") === document.activeElement`)
	p.Press("the gateway is back\r")
	p.See("#flash", "")
	p.See("main .badge", "queued")
}

// TestWithoutScript reads every screen and performs one action without JavaScript.
func TestWithoutScript(t *testing.T) {
	s := stage(t, apikey.Operator, nil)
	p := browser.New(t)
	p.WithoutScript()
	for name, path := range s.screens() {
		p.Go(s.site + path)
		if text := p.Text(); !strings.Contains(text, "Holdfast") || len(text) < 200 {
			t.Errorf("%s is empty without JavaScript", name)
		}
	}
	p.Go(s.site + "/jobs/" + s.Failed[0].String())
	p.Click("[data-key=r]")
	p.Follow(":popover-open button[type=submit]")
	p.See("#flash", "")
	p.See("main .badge", "queued")
}

// TestReadOnlyOffersNothing: a viewer, and every user of a read-only console, sees no action and cannot change the store.
func TestReadOnlyOffersNothing(t *testing.T) {
	viewer := stage(t, apikey.Viewer, nil)
	fixed := &scene{Scene: viewer.Scene, t: t, site: viewer.serve(console.Config{ReadOnly: true})}
	for _, s := range []*scene{viewer, fixed} {
		p := browser.New(t)
		for name, path := range s.screens() {
			p.Go(s.site + path)
			if forms := browser.Eval[string](p, `[...document.querySelectorAll("main form[method=post i]")].map((f) => f.getAttribute("action")).filter((a) => !a.endsWith("/settings")).join(" ")`); forms != "" {
				t.Errorf("%s offers a viewer %s", name, forms)
			}
		}
		answer, err := http.Post(s.site+"/jobs/"+s.Failed[0].String()+"/retry", "application/x-www-form-urlencoded", strings.NewReader("reason=x"))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("a viewer's retry was answered with %d", answer.StatusCode)
		}
	}
}

// TestThemesDoNotFlash: a page is rendered in the theme that was chosen, and the choice is kept.
func TestThemesDoNotFlash(t *testing.T) {
	s := stage(t, apikey.Viewer, nil)
	p := browser.New(t)
	p.Likes("dark", true)
	p.Go(s.site + "/overview")
	system := browser.Eval[string](p, `getComputedStyle(document.documentElement).backgroundColor`)
	p.See("#live-word", "Live")
	p.Click("#theme")
	p.Until(`document.documentElement.dataset.theme === "light"`)
	light := browser.Eval[string](p, `getComputedStyle(document.documentElement).backgroundColor`)
	if light == system {
		t.Errorf("light and the system's dark are both %s", light)
	}
	p.WithoutScript() // the server already renders the chosen theme
	p.Reload()
	if now := browser.Eval[string](p, `getComputedStyle(document.documentElement).backgroundColor`); now != light {
		t.Errorf("after a reload the page is %s, was %s", now, light)
	}
}
