package main

import (
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
)

// signsIn opens the pages in a real browser as the operator.
func (s *scene) signsIn() *browser.Page {
	s.Helper()
	if err := s.accounts.ResetPassword(s.Context(), firstEmail, "a long password"); err != nil {
		s.Fatal(err)
	}
	p := browser.Open(s, s.at+"/")
	browser.Eval[bool](p, `(document.querySelector("[name=email]").value = "`+firstEmail+`", document.querySelector("[name=password]").value = "a long password", true)`)
	p.Follow("form button")
	p.See("#live", "Live")
	return p
}

func TestThePageShowsWhatHappensWithoutReloading(t *testing.T) {
	s := newScene(t, "RETRY_POLICIES", "")
	p := s.signsIn()
	s.works()
	s.origin.setDown(true)
	job := s.submit("/page")
	p.See("#shots", "Retry in")
	s.origin.setDown(false)
	p.Follow("#shots .name a")
	p.See("#why", "Replaces the automatic retry and costs nothing more.")
	p.Follow("#head form button")
	p.See("#head", "COMPLETED")
	p.See("#story", "manual retry")
	p.See("#paid", "capture")
	if browser.Eval[bool](p, `!document.querySelector("#head form button").disabled`) {
		t.Error("a complete shot can be retried")
	}
	if n := browser.Eval[int](p, `document.querySelector(".picture img").naturalWidth`); n != 320 {
		t.Errorf("the picture is %d pixels wide", n)
	}
	for _, line := range p.Complaints() {
		t.Error(line)
	}
	s.ended(job.ID, service.Completed)
}

var pictures = flag.String("pictures", "", "a folder for pictures of the pages")

// With -pictures, pictures of the pages are kept.
func TestEveryPageIsAccessibleLightDarkAndOnAPhone(t *testing.T) {
	s := newScene(t)
	s.works()
	for _, path := range []string{"/ok/first", "/a-path-without-any-place-to-break-" + fmt.Sprintf("%0150d", 1)} {
		s.ended(s.submit(path).ID, service.Completed)
	}
	failed := s.submit("/status/404")
	s.ended(failed.ID, service.Failed)
	s.ended(s.submit("/hold").ID, service.Processing)
	p := s.signsIn()
	for _, page := range []struct{ name, path string }{
		{"gallery", "/"}, {"shot", "/shots/" + failed.ID.String()}, {"keys", "/keys"}, {"webhooks", "/webhooks"}, {"credits", "/credits"}, {"team", "/team"}, {"account", "/account"}, {"admin", "/admin"}, {"error", "/nothing"}, {"sign-in", "/sign-in"}, {"sign-up", "/sign-up"},
	} {
		p.Go(s.at + page.path)
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 390} {
				p.Size(width, 800)
				p.Likes(theme, true)
				if wide := browser.Eval[int](p, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
					t.Errorf("%s, %d wide: %d pixels are outside", page.name, width, wide)
				}
				for _, barrier := range p.Barriers() {
					t.Errorf("%s, %s, %d wide: %s", page.name, theme, width, barrier)
				}
				if *pictures != "" {
					p.ShotOf(filepath.Join(*pictures, fmt.Sprintf("%s-%s-%d.png", page.name, theme, width)), width, 3000)
				}
			}
		}
	}
}
