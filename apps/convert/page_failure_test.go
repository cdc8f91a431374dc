package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
)

// 000 section 6: the queue page shows only the short line. When there is no further retry, it does not promise one.
func TestAFailureShowsOneLineAndCanBeRetried(t *testing.T) {
	s := newScene(t, "", quick)
	s.gateway.says(http.StatusInternalServerError, "panic: /srv/gateway/secret.go:12 goroutine 7")
	s.works()
	v := s.visited()
	_, row := v.uploads("report.pdf", samplePDF(1))
	v.See(row+" .badge", "Failed")
	v.See(row+" .line", "Converter service is having an issue. Choose Retry to try again.")
	v.See(row+" .attempts", "Tried 3 times.")
	for _, word := range []string{"We’ll retry", "panic", "goroutine", "/srv", "GW_5XX", "500"} {
		if strings.Contains(v.Text(), word) {
			t.Errorf("the page says %q", word)
		}
	}
	s.gateway.converts()
	v.Click(row + ` [data-part="retry"] button`)
	v.See(row+" .badge", "Complete")
	v.SeeNot(row+" .line", "")
	v.quiet()
}

func TestAFileThatWaitsForARetryShowsWhen(t *testing.T) {
	s := newScene(t, "", func(set *settings) { set.RetryBaseDelay = 100 * time.Second })
	s.gateway.says(http.StatusBadGateway, "")
	s.works()
	v := s.visited()
	_, row := v.uploads("report.pdf", samplePDF(1))
	v.See(row+" .line", "Converter service is having an issue. We’ll retry shortly.")
	v.See(row+" .badge", "Queued")
	v.See(row+" .attempts", "Tried 1 of 3 times, next attempt in ")
	first := browser.Eval[string](v.Page, `document.querySelector(".attempts").textContent`)
	v.Until(`document.querySelector(".attempts").textContent !== "` + first + `"`) // it counts down
}

func TestTheGatewaysMessageIsShownToTheOwner(t *testing.T) {
	s := newScene(t, "", quick)
	s.gateway.says(http.StatusNotAcceptable, `{"code":"INVALID_MAPPING","message":"Unsupported mapping."}`, "Content-Type", "application/json")
	s.works()
	v := s.visited()
	_, row := v.uploads("form.pdf", samplePDF(1))
	v.See(row+" .line", "Couldn’t convert this file with the selected mapping. Unsupported mapping.")
	v.See(row+" .attempts", "Tried once.")
}

// C7, 001 section 3.3: the banner while the breaker holds, and that everything resumes by itself.
func TestTheBannerIsShownWhileTheGatewayIsDownAndAllFilesFinishAfterwards(t *testing.T) {
	s := newScene(t, "", quick, func(set *settings) { set.CircuitWindow = 2 })
	s.gateway.stops()
	s.works()
	v := s.visited()
	for n := range 4 {
		v.uploads("file-"+string(rune('a'+n))+".pdf", samplePDF(n))
	}
	v.See("#busy", "Converter busy — jobs will resume automatically.")
	v.See("#busy", "wait")
	v.See("#jobs .line", "Waiting until the converter is available again.")
	v.See("#sum", "queued")
	expect(t, "failed rows", browser.Eval[int](v.Page, `document.querySelectorAll('[data-state="failed"]').length`), 0)
	s.gateway.starts()
	v.See("#sum", "4 complete")
	v.SeeNot("#busy", "")
	v.quiet()
}

// 001 section 3.6: Retry is disabled if the source is missing, and says why.
func TestRetryIsDisabledWithAReasonWhenTheSourceIsGone(t *testing.T) {
	s := newScene(t, "", quick)
	s.gateway.says(http.StatusInternalServerError, "")
	s.works()
	v := s.visited()
	id, row := v.uploads("old.pdf", samplePDF(1))
	v.See(row+" .badge", "Failed")
	v.Until(`!document.querySelector("` + row + ` form button").disabled`)
	s.loses(id, artifactSource)
	v.Reload()
	v.See(row+" .hint", "The PDF was removed by retention. Please upload it again.")
	v.See(row+" .badge", "Expired")
	v.Until(`document.querySelector("` + row + ` form button").disabled`)
	if strings.Contains(v.Text(), "Choose Retry to try again") {
		t.Error("the page promises what the button cannot do")
	}
	described := browser.Eval[string](v.Page, `document.getElementById(document.querySelector("`+row+` form button").getAttribute("aria-describedby")).textContent`)
	expect(t, "what the button is described by", described, "The PDF was removed by retention. Please upload it again.")
}

// C12, E17: an expired result is shown as expired.
func TestAnExpiredResultIsShownAsExpired(t *testing.T) {
	s := newScene(t, "", quick, func(set *settings) { set.KeepResult = 2 * time.Second })
	s.works()
	v := s.visited()
	_, row := v.uploads("old.pdf", samplePDF(1))
	v.See(row+" .badge", "Expired") // without a reload: retention sends events too
	v.See(row+" .line", "File was removed by retention. Re-upload to regenerate.")
	v.SeeNot(row+" .actions", "Download")
	v.uploads("old.pdf", samplePDF(1)) // becomes a row of its own
	v.quiet()
}

// A gate is a proxy between a browser and a server that can simulate an unreachable server.
type gate struct {
	http.Handler
	shut atomic.Bool
}

// ServeHTTP forwards a request, or closes the connection.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.shut.Load() {
		panic(http.ErrAbortHandler)
	}
	g.Handler.ServeHTTP(w, r)
}

func TestThePageShowsWhenTheServerIsUnreachableAndRecovers(t *testing.T) {
	s := newScene(t, "")
	s.works()
	handler, err := s.handler()
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{Handler: handler}
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		_ = handler.(*webHandler).Close()
		server.Close()
	})
	v := s.visitedAt(server.URL)
	v.uploads("kept.pdf", samplePDF(1))
	v.See("#sum", "1 complete")
	g.shut.Store(true)
	server.CloseClientConnections()
	v.See("#live", "Reconnecting")
	v.Drop("body", "late.pdf", samplePDF(2))
	v.See("#uploads .line", "Check your connection and try again.")
	v.See("#unreachable", "The server cannot be reached.")
	s.enters(3, func(d *holdfast.Draft) { d.Owner = v.owner() })
	g.shut.Store(false)
	v.See("#live", "Live")
	v.SeeNot("#unreachable", "")
	v.See("#jobs .name", "file-3.pdf")
	v.Click(`#uploads [data-part="again"]`)
	v.See("#jobs .name", "late.pdf")
	v.See("#sum", "3 complete")
}

// File names are untrusted text.
func TestHostileNamesAreNothingButText(t *testing.T) {
	s := newScene(t, "")
	s.works()
	v := s.visited()
	names := []string{
		`<img src=x onerror=window.owned=1>.pdf`, `"><script>window.owned=1<\/script>.pdf`, `'onmouseover='window.owned=1.pdf`,
		`{{.Assets}}.pdf`, "javascript:window.owned=1.pdf", strings.Repeat("W", 250) + ".pdf", "&lt;b&gt;.pdf", "<!--.pdf",
	}
	for n, name := range names {
		v.Drop("body", name, samplePDF(n))
	}
	v.See("#sum", "8 complete")
	for range 2 { // as the script makes the rows, and as the server does
		expect(t, "what names turned into", browser.Eval[int](v.Page, `document.querySelectorAll("#jobs img, #jobs script, #jobs b, #jobs [onmouseover]").length`), 0)
		if browser.Eval[bool](v.Page, `"owned" in window`) {
			t.Error("a name was run")
		}
		for _, name := range []string{names[0], names[3], names[6], names[7]} {
			v.See("#jobs .name", name)
		}
		if wide := browser.Eval[int](v.Page, "document.documentElement.scrollWidth - innerWidth"); wide > 0 {
			t.Errorf("a name makes the page %d pixels too wide", wide)
		}
		v.Click(`#jobs [data-part="preview"]:not([hidden])`)
		v.See("dialog code", "Hello")
		v.Press("\x1b")
		v.Reload()
	}
	v.quiet()
}

func TestThePageWorksWithoutScript(t *testing.T) {
	s := newScene(t, "", quick)
	s.gateway.says(http.StatusInternalServerError, "")
	s.works()
	v := &visitor{Page: browser.New(t), s: s, at: s.served()}
	v.WithoutScript()
	v.Go(v.at)
	v.See("#empty", "Nothing here yet.")
	v.Choose("#file", v.file("plain.pdf", samplePDF(1)))
	v.Follow("#upload button[type=submit]")
	v.See("#notice", "Your file was uploaded.")
	v.See("#jobs .name", "plain.pdf")
	failed := func() bool { v.Go(v.at); return strings.Contains(v.Text(), "Failed") }
	s.until("it failed", failed)
	v.See("#jobs .line", "Converter service is having an issue. Choose Retry to try again.")
	s.gateway.converts()
	v.Follow(`#jobs [data-part="retry"] button`)
	v.See("#notice", "Your file is queued for conversion again.")
	s.until("it is complete", func() bool { v.Go(v.at); return strings.Contains(v.Text(), "Complete") })
	v.See("#jobs .actions", "Download")
	v.Choose("#file", v.file("cat.gif", []byte("GIF89a")))
	v.Follow("#upload button[type=submit]")
	v.See("#notice", "Only PDF files are supported.")
	v.See("#jobs .name", "cat.gif")
	v.Click(`#jobs [data-part="download"]:not([hidden])`)
	if name, _ := v.Downloaded(); name != "plain.xml" {
		t.Errorf("%s was downloaded", name)
	}
}
