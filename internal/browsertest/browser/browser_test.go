package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
)

func serve(t *testing.T, page string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		http.SetCookie(w, &http.Cookie{Name: "visitor", Value: "known", HttpOnly: true})
		fmt.Fprint(w, page)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestPagesShareNothing(t *testing.T) {
	at := serve(t, "<!doctype html><title>A page</title><p>Here</p>")
	one, other := browser.Open(t, at), browser.New(t)
	one.See("p", "Here")
	browser.Eval[bool](one, `(localStorage.setItem("mine", "1"), true)`)
	if one.Cookie("visitor") != "known" || other.Cookie("visitor") != "" {
		t.Error("a cookie is where it should not be, or not where it should be")
	}
	other.Go(at)
	if browser.Eval[bool](other, `localStorage.getItem("mine") !== null`) {
		t.Error("two pages share storage")
	}
}

func TestConsoleErrorsAreCollected(t *testing.T) {
	p := browser.Open(t, serve(t, `<!doctype html><title>A page</title><p>Here</p><script>setTimeout(() => { throw new Error("a mistake"); }); </script>`))
	p.See("p", "Here")
	browser.Eval[bool](p, `(console.error("another one"), true)`)
	for len(p.Complaints()) < 2 {
		browser.Eval[bool](p, "true")
	}
	if errs := strings.Join(p.Complaints(), "\n"); !strings.Contains(errs, "a mistake") || !strings.Contains(errs, "another one") {
		t.Errorf("%s", errs)
	}
}

func TestAccessibilityViolationsAreFound(t *testing.T) {
	p := browser.Open(t, serve(t, `<!doctype html><html lang="en"><title>A page</title><main><h1>Here</h1><input><p style="color:#ccc;background:#fff">Pale</p></main>`))
	found := strings.Join(p.Barriers(), "\n")
	for _, rule := range []string{"label:", "color-contrast:"} {
		if !strings.Contains(found, rule) {
			t.Errorf("axe-core does not find %s only %s", rule, found)
		}
	}
	good := browser.Open(t, serve(t, `<!doctype html><html lang="en"><title>A page</title><main><h1>Here</h1><label>Name <input></label></main>`))
	if found := good.Barriers(); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

func TestAPageWithoutScriptRunsNone(t *testing.T) {
	p := browser.New(t)
	p.WithoutScript()
	p.Go(serve(t, `<!doctype html><title>A page</title><p>Here</p><script>document.querySelector("p").textContent = "There";</script>`))
	p.See("p", "Here")
}
