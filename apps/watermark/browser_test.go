package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
)

var pictures = flag.String("pictures", "", "a folder for pictures of the pages")

// looks checks that a page is accessible and fits, light and dark, on a desk and on a phone. With -pictures, pictures are kept.
func looks(p *browser.Page, t *testing.T, name string) {
	t.Helper()
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			p.Size(width, 800)
			p.Likes(theme, true)
			if wide := browser.Eval[int](p, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
				t.Errorf("%s, %d wide: %d pixels are outside", name, width, wide)
			}
			for _, barrier := range p.Barriers() {
				t.Errorf("%s, %s, %d wide: %s", name, theme, width, barrier)
			}
			if *pictures != "" {
				p.ShotOf(filepath.Join(*pictures, fmt.Sprintf("%s-%s-%d.png", name, theme, width)), width, 2500)
			}
		}
	}
	p.Size(1280, 900)
}

// interrupted breaks the connection of the first part of an upload in its middle.
func interrupted(inner http.Handler) http.Handler {
	var parts atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch && parts.Add(1) == 1 {
			r.Body = io.NopCloser(io.LimitReader(r.Body, 5000))
			inner.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		inner.ServeHTTP(w, r)
	})
}

// fill sets the fields of a form.
func fill(p *browser.Page, fields ...string) {
	for i := 0; i+1 < len(fields); i += 2 {
		browser.Eval[bool](p, fmt.Sprintf(`(document.querySelector(%q).value = %q, true)`, fields[i], fields[i+1]))
	}
}

// The acceptance of the product in a real browser: upload, 20 recipients, publish, one fails, PARTIAL, the mail, retry, READY; a copy is downloaded and encoded again, and Detect
// names its recipient. The pages change without being loaded again.
func TestACampaignInABrowserFromTheUploadToTheNameBehindALeakedCopy(t *testing.T) {
	fault, program := filepath.Join(t.TempDir(), "fault"), filepath.Join(t.TempDir(), "ffmpeg")
	for path, text := range map[string]string{fault: "", program: fmt.Sprintf(faultyFFmpeg, fault)} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	_, base := launchWith(t, interrupted, func(set *settings) { set.Tools.FFmpeg = program })
	p := browser.Open(t, base+"/sign-up")
	looks(p, t, "sign-up")
	fill(p, "[name=email]", "ada@example.org", "[name=password]", "a long password", "[name=name]", "Ada")
	p.Follow("form button")
	looks(p, t, "empty")
	p.Go(base + "/videos")
	p.Choose("[type=file]", video(t))
	p.Click("form[data-progress] button")
	p.See("table", "trailer.mp4")
	looks(p, t, "videos")

	p.Go(base + "/campaigns/new")
	looks(p, t, "new")
	fill(p, "[name=name]", "Spring screening", "[name=downloads]", "2", "[name=days]", "30")
	p.Follow("main form button")
	var list strings.Builder
	for n := range 19 {
		fmt.Fprintf(&list, "Recipient %d, r%d@example.org\n", n, n)
	}
	fill(p, "[name=recipients]", list.String()+"Faulty Fred, fred@example.org\n")
	p.Follow("form[enctype] button")
	looks(p, t, "draft")
	p.Follow(".bar form button")
	p.See("#live", "PROCESSING (")
	looks(p, t, "processing")
	p.See("h1", "PARTIAL")
	p.See(".banner.hold", "1 watermarking job(s) failed permanently")
	p.Click("details summary")
	looks(p, t, "partial")
	page := browser.Eval[string](p, "location.pathname")
	p.Go(base + "/campaigns")
	if tip := browser.Eval[string](p, `document.querySelector("[data-state=partial]").title`); tip != "Some watermarking jobs failed. Click to review." {
		t.Errorf("the tooltip is %q", tip)
	}
	looks(p, t, "campaigns")
	p.Go(base + "/notices")
	p.See("main", "is ready in part")
	looks(p, t, "notices")

	if err := os.Remove(fault); err != nil {
		t.Fatal(err)
	}
	p.Go(base + page)
	p.Follow(".retry-form button")
	p.See(".banner.note", "Retry queued for Faulty Fred.")
	p.See("h1", "READY")
	p.SeeNot("#live", "FAILED")
	looks(p, t, "ready")
	findTheLeak(t, p, base)
	for _, line := range p.Complaints() {
		if !strings.Contains(line, "/uploads/") { // the connection that was broken, and what follows
			t.Error(line)
		}
	}
}

// findTheLeak downloads the copy of the fourth recipient, encodes it again and asks Detect for its recipient.
func findTheLeak(t *testing.T, p *browser.Page, base string) {
	t.Helper()
	p.Go(browser.Eval[string](p, `document.querySelectorAll("[data-token-id] a")[3].href`))
	looks(p, t, "download")
	p.Click("a[download]")
	_, content := p.Downloaded()
	copied, leaked := filepath.Join(t.TempDir(), "copy.mp4"), filepath.Join(t.TempDir(), "leaked.mp4")
	if err := os.WriteFile(copied, content, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(context.Background(), "ffmpeg", "-v", "error", "-i", copied, "-c:v", "libx264", "-preset", "ultrafast", "-crf", "26", leaked).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.Go(base + "/detect")
	looks(p, t, "detect")
	p.Choose("[type=file]", leaked)
	p.Click("form[data-progress] button")
	p.See("main", "The copy belongs to one recipient")
	p.See(".names", "Recipient 3")
	p.Until(`document.querySelector(".evidence").naturalWidth > 100`)
	looks(p, t, "found")
	broken := filepath.Join(t.TempDir(), "broken.mp4")
	if err := os.WriteFile(broken, []byte("no video"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Go(base + "/detect")
	p.Choose("[type=file]", broken)
	p.Click("form[data-progress] button")
	p.See("main h2", "The search failed")
	p.See("main", "INPUT_NOT_VIDEO")
	looks(p, t, "search-failed")
	p.Go(base + "/detect")
	p.See("table", "Recipient 3")
	looks(p, t, "searches")
}
