package main

import (
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/apps/fetchbox/ledger"
	"github.com/holdfastdev/holdfast/apps/fetchbox/proxy"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
)

var pictures = flag.String("pictures", "", "write screenshots of the pages into this folder")

// furnished returns a FetchBox with jobs in several states, dead letters, and a proxy that does not work.
func furnished(t *testing.T) *scene {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("pools:\n  dead:\n    - {url: \"http://127.0.0.1:1\", region: de}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newScene(t, "CONFIG", config)
	s.submitsManifest(strings.Replace(manifestOf(s.origin.URL, "/ok/7", "/ok/8", "/ok/9", "/ok/10"), `{"resources"`, `{"name":"through a dead proxy","proxy":"dead","resources"`, 1))
	s.until("the proxy is not usable", func() bool {
		return slices.ContainsFunc(s.transfer.proxies.Status(), func(p proxy.Status) bool { return !p.Usable })
	})
	s.submitsManifest(strings.Replace(manifestOf(s.origin.URL, "/ok/1", "/ok/2", "/flaky/1/3"), `{"resources"`, `{"name":"weekly report","resources"`, 1))
	failed := s.submitsManifest(strings.Replace(manifestOf(s.origin.URL, "/status/404/"+strings.Repeat("a-long-path-without-a-place-to-break", 4), "/ok/5", "/status/500/6"), `{"resources"`, `{"name":"product images","resources"`, 1))
	s.becomes(failed, ledger.Failed)
	s.lettersOnce(2)
	return s
}

func (s *scene) opens(path string) *browser.Page {
	s.Helper()
	return browser.Open(s, s.at+path)
}

func TestThePagesShowJobsResourcesAndDeadLetters(t *testing.T) {
	s := furnished(t)
	p := s.opens("/")
	p.See("#live", "Live")
	p.See("#jobs", "weekly report")
	p.See("#jobs", "DOWNLOAD_HTTP_")
	p.See("#failures", "DOWNLOAD_HTTP_4XX")
	p.See("#proxies", "direct")
	p.See("#proxies", "its breaker is open")
	p.Follow("#jobs .row:first-child a")
	p.See("h1", "product images")
	p.See("#resources", "/ok/5")
	p.Follow("#resources tbody tr:last-child a")
	p.See("#resource .banner", "DOWNLOAD_HTTP_4XX")
	p.See("#resource .banner", "Read the status in the context")
	for _, complaint := range p.Complaints() {
		t.Error(complaint)
	}
}

func TestThePageUpdatesByItself(t *testing.T) {
	s := newScene(t)
	p := s.opens("/")
	p.See("#live", "Live")
	p.See("#jobs", "No jobs yet")
	job := s.submits("/ok/a", "/status/404/b")
	p.See("#jobs", "Job "+job.String()[:8])
	p.See("#failures", "DOWNLOAD_HTTP_4XX")
}

// Everything that the pages do works without JavaScript.
func TestThePagesWorkWithoutJavaScript(t *testing.T) {
	s := newScene(t)
	s.origin.down = true
	p := browser.New(t)
	p.WithoutScript()
	p.Go(s.at + "/")
	browser.Eval[bool](p, `(document.querySelector("textarea").value = "`+s.origin.URL+`/ok/a\n`+s.origin.URL+`/ok/b", true)`)
	p.Follow(`form[action="/jobs"] button`)
	p.See(".banner", "The job was accepted.")
	s.lettersOnce(2)
	s.origin.mu.Lock()
	s.origin.down = false
	s.origin.mu.Unlock()
	p.Go(s.at + "/dead-letters")
	p.Follow(`button[value="preview"]`)
	p.See(".banner", "2 of their resources are still failed and would be replayed")
	p.Follow(`button[value="replay"]`)
	p.See(".banner", "The replay has started.")
	s.until("both are stored", func() bool {
		jobs, err := s.ledger.Jobs("", [16]byte{}, 10)
		return err == nil && len(jobs) == 1 && jobs[0].Status == ledger.Complete
	})
	p.Go(s.at + "/")
	p.See("#jobs", "complete")
}

func TestThePagesAreAccessibleAndFitAPhone(t *testing.T) {
	s := furnished(t)
	var detail, resource string
	jobs, err := s.ledger.Jobs("", [16]byte{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	detail = "/jobs/" + jobs[0].ID.String()
	for path, r := range s.resourcesOf(jobs[0].ID) {
		if strings.HasPrefix(path, "/status/404") {
			resource = detail + "/resources/" + r.ID.String()
		}
	}
	for name, path := range map[string]string{"jobs": "/", "job": detail, "resource": resource, "dead-letters": "/dead-letters", "missing": "/nowhere"} {
		p := s.opens(path)
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 390} {
				p.Size(width, 844)
				p.Likes(theme, true)
				for _, barrier := range p.Barriers() {
					t.Errorf("%s, %s, %d wide: %s", path, theme, width, barrier)
				}
				if wide := browser.Eval[int](p, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
					t.Errorf("%s, %d wide: it scrolls sideways by %d", path, width, wide)
				}
				if *pictures != "" {
					p.ShotOf(filepath.Join(*pictures, name+"-"+theme+map[bool]string{true: "-phone"}[width < 400]+".png"), width, 2400)
				}
			}
		}
	}
}

func TestThePageHasNoInlineCodeAndLoadsNothingFromOtherSites(t *testing.T) {
	s := idleScene(t)
	page := client{s.at, ""}.ask(t, "GET", "/", "")
	if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	for _, wrong := range []string{`<script>`, ` style="`, ` onclick`, `<style`, `//cdn`} {
		if strings.Contains(string(page.body), wrong) {
			t.Errorf("the page has %q in it", wrong)
		}
	}
}

// A page that others can reach asks for an API key.
func TestAPublicPageAsksForAKey(t *testing.T) {
	s := idleScene(t, "ADDR", "0.0.0.0:0")
	for _, path := range []string{"/", "/dead-letters", "/events"} {
		a := client{s.at, ""}.ask(t, "GET", path, "")
		if a.status != http.StatusUnauthorized || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Basic") {
			t.Errorf("%s: %d %s", path, a.status, a.header.Get("WWW-Authenticate"))
		}
	}
	viewer := s.newKey(apikey.Request{Name: "viewer", Scope: apikey.Viewer})
	for _, try := range []struct {
		method, path, key string
		status            int
	}{{"GET", "/", viewer, 200}, {"GET", "/", "wrong", 401}, {"POST", "/replays", viewer, 403}, {"POST", "/jobs", viewer, 403}} {
		r, err := http.NewRequestWithContext(t.Context(), try.method, s.at+try.path, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("any", try.key)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != try.status {
			t.Errorf("%s %s: %d, want %d", try.method, try.path, response.StatusCode, try.status)
		}
	}
}

func TestAFormFromAnotherSiteIsRefused(t *testing.T) {
	s := idleScene(t)
	for _, path := range []string{"/jobs", "/replays", "/jobs/x/cancel", "/api/jobs"} {
		a := client{s.at, s.key}.ask(t, "POST", path, "x", "Sec-Fetch-Site", "cross-site")
		if a.status != http.StatusForbidden {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}
