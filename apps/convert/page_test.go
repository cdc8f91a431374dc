package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/convert/gateway"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
	"github.com/holdfastdev/holdfast/internal/browsertest/browser"
	"github.com/holdfastdev/holdfast/store"
)

// A visitor looks at the queue page of a scene in a real browser.
type visitor struct {
	*browser.Page
	s  *scene
	at string
}

// visited opens the page. No worker runs yet.
func (s *scene) visited() *visitor {
	s.Helper()
	return s.visitedAt(s.served())
}

func (s *scene) visitedAt(at string) *visitor {
	s.Helper()
	v := &visitor{Page: browser.New(s.T), s: s, at: at}
	v.Likes("light", true)
	v.Go(v.at)
	v.See("#live", "Live")
	return v
}

// owner returns the visitor's owner name in the store.
func (v *visitor) owner() string { return ownerOf(v.Cookie(sessionCookie)) }

// uploads chooses a file in the page's picker, and waits until it has a row. It returns the row's selector.
func (v *visitor) uploads(name string, content []byte) (holdfast.ID, string) {
	v.s.Helper()
	before := v.ids()
	v.Choose("#file", v.file(name, content))
	return v.appears(before)
}

// appears waits for a row that was not there before.
func (v *visitor) appears(before map[string]bool) (holdfast.ID, string) {
	v.s.Helper()
	var id holdfast.ID
	v.s.until("a new row", func() bool {
		for one := range v.ids() {
			if !before[one] {
				id, _ = holdfast.ParseID(one)
			}
		}
		return id != holdfast.ID{}
	})
	return id, "#job-" + id.String()
}

func (v *visitor) ids() map[string]bool {
	v.s.Helper()
	all := map[string]bool{}
	for _, id := range browser.Eval[[]string](v.Page, `[...document.querySelectorAll("#jobs > li")].map((row) => row.dataset.id)`) {
		all[id] = true
	}
	return all
}

// file puts a file where a picker can find it.
func (v *visitor) file(name string, content []byte) string {
	v.s.Helper()
	path := filepath.Join(v.s.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		v.s.Fatal(err)
	}
	return path
}

// quiet checks that the browser's console has no exceptions and no violations of the content security policy.
func (v *visitor) quiet() {
	v.s.Helper()
	for _, complaint := range v.Complaints() {
		v.s.Errorf("the console says: %s", complaint)
	}
}

// C11: upload, live rows, preview, download; with the real gateway.
func TestThePageShowsAConversionAndItsXMLCanBePreviewedAndSaved(t *testing.T) {
	s := newScene(t, "")
	converter, err := gateway.New(gateway.Config{Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	s.gateway.does(func(_ int, w http.ResponseWriter, r *http.Request) {
		<-seen
		converter.ServeHTTP(w, r)
	})
	v := s.visited()
	browser.Eval[bool](v.Page, "window.same = true") // a reload would forget it
	_, row := v.uploads("letter.pdf", pdftest.Simple(t, "Greetings from a file"))
	v.See(row+" .badge", "Queued")
	v.See(row+" .name", "letter.pdf")
	s.works()
	v.See(row+" .badge", "Processing")
	close(seen)
	v.See(row+" .badge", "Complete")
	v.Click(row + ` [data-part="preview"]`)
	v.See("dialog code", "Greetings from a file")
	v.See("dialog .dialog-note", "The whole result")
	v.Press("\x1b")
	v.SeeNot("dialog", "")
	expect(t, "where the focus is after the preview", browser.Eval[string](v.Page, "document.activeElement.dataset.part"), "preview")
	v.Click(row + ` [data-part="download"]`)
	name, content := v.Downloaded()
	if name != "letter.xml" || checkXML(bytes.NewReader(content)) != nil || !bytes.Contains(content, []byte("Greetings from a file")) {
		t.Errorf("%s: %s", name, content)
	}
	if !browser.Eval[bool](v.Page, "window.same === true") {
		t.Error("the page was loaded again on the way")
	}
	v.quiet()
}

func TestAFileThatIsDroppedAnywhereOnThePageIsUploaded(t *testing.T) {
	s := newScene(t, "")
	s.works()
	v := s.visited()
	browser.Eval[bool](v.Page, `(document.getElementById("mapping").value = "layout", document.getElementById("mapping").dispatchEvent(new Event("change")), true)`)
	v.Drop("footer", "dropped.pdf", samplePDF(1))
	v.See("#jobs .name", "dropped.pdf")
	v.See("#jobs .badge", "Complete")
	v.See("#jobs .meta", "layout")
	if browser.Eval[bool](v.Page, `document.documentElement.hasAttribute("data-dropping")`) {
		t.Error("the page still waits for a file to be dropped")
	}
	v.Reload()
	v.Until(`document.getElementById("mapping").value === "layout"`)
	v.quiet()
}

// A slowStore takes the first part of a file, and the rest when the test releases it.
type slowStore struct {
	blob.Store
	first int64
	rest  chan struct{}
}

func (s slowStore) Put(ctx context.Context, key string, from io.Reader) (blob.Info, error) {
	return s.Store.Put(ctx, key, io.MultiReader(io.LimitReader(from, s.first), s, from))
}

// Read waits for the release.
func (s slowStore) Read([]byte) (int, error) {
	<-s.rest
	return 0, io.EOF
}

func TestAnUploadShowsItsProgressAndCanBeStopped(t *testing.T) {
	s := newScene(t, "")
	slow := slowStore{s.uploads, 1 << 20, make(chan struct{})}
	s.uploads = slow
	v := s.visited()
	large := append([]byte("%PDF-1.4\n"), bytes.Repeat([]byte("% a long comment\n"), 2<<20)...) // more than lies between a browser and us
	v.Choose("#file", v.file("large.pdf", append(large, "\n%%EOF\n"...)))
	v.Until(`(() => { const bar = document.querySelector("#uploads progress"); return bar && bar.value > 0 && bar.value < 1; })()`)
	v.See("#uploads .badge", "%")
	v.Click(`#uploads [data-part="stop"]`)
	v.Until(`document.querySelectorAll("#uploads li").length === 0`)
	v.See("#empty", "Nothing here yet.")
	close(slow.rest)
	s.until("nothing of it is left", func() bool { return len(filesIn(t, s.set.Uploads)) == 0 })
	jobs, _, err := s.store.Jobs(context.Background(), store.Filter{})
	if err != nil || len(jobs) != 0 {
		t.Errorf("a stopped upload left %v, %v", jobs, err)
	}
}

func TestSeveralFilesAreUploadedAtOnceAndADuplicateOnce(t *testing.T) {
	s := newScene(t, "")
	s.works()
	v := s.visited()
	browser.Eval[bool](v.Page, `(document.getElementById("file").addEventListener("click", () => { window.asked = true; }), true)`)
	v.Click("#upload .primary")
	v.Until("window.asked === true") // the browser shows its own picker
	var chosen []string
	for n := range 7 {
		chosen = append(chosen, v.file(fmt.Sprintf("file-%d.pdf", n), samplePDF(n)))
	}
	v.Choose("#file", chosen...)
	v.See("#sum", "7 complete")
	v.Choose("#file", chosen[3])
	v.See("#notice", "You have already uploaded")
	v.See("#notice", "file-3.pdf")
	expect(t, "rows", len(v.ids()), 7)
	v.quiet()
}

func TestAFileThatIsNoPDFHasARowWithTheRefusal(t *testing.T) {
	s := newScene(t, "")
	s.works()
	v := s.visited()
	v.Drop("body", "cat.gif", []byte("GIF89a and so on"))
	v.See("#jobs .line", "Only PDF files are supported.")
	v.See("#jobs .badge", "Failed")
	v.SeeNot("#jobs form", "Retry")
}

func TestManyRowsComePageByPage(t *testing.T) {
	s := newScene(t, "")
	v := s.visited()
	for n := range 120 {
		s.enters(n, func(d *holdfast.Draft) { d.Owner = v.owner() })
	}
	v.Reload()
	v.See("#jobs .name", "file-119.pdf")
	v.See("#sum", "and older ones")
	expect(t, "rows at first", len(v.ids()), 50)
	v.Click("#more button")
	v.Until(`document.querySelectorAll("#jobs > li").length === 100`)
	v.Click("#more button")
	v.See("#jobs .name", "file-0.pdf")
	expect(t, "rows in the end", len(v.ids()), 120)
	v.SeeNot("#more", "Show more")
	names := browser.Eval[[]string](v.Page, `[...document.querySelectorAll("#jobs .name")].map((name) => name.textContent)`)
	for i, name := range names {
		expect(t, "newest first", name, fmt.Sprintf("file-%d.pdf", 119-i))
	}
	v.quiet()
}

// A page that reloads its rows while the user asks for more loses none of them.
func TestRowsThatArriveWhileTheListIsReadStay(t *testing.T) {
	s := newScene(t, "")
	v := s.visited()
	for n := range 120 {
		s.enters(n, func(d *holdfast.Draft) { d.Owner = v.owner() })
	}
	v.Reload()
	v.See("#sum", "and older ones")
	// The first read of the list from now on is answered late: after two seconds, in which another one may overtake it.
	browser.Eval[bool](v.Page, `(() => {
		const real = window.fetch;
		let late = true;
		window.fetch = async (path, ...rest) => {
			const answer = await real(path, ...rest);
			if (late && String(path).startsWith("/api/jobs?")) {
				late = false;
				await new Promise((go) => setTimeout(go, 2000));
				window.answered = true;
			}
			return answer;
		};
		document.getElementById("unreachable-retry").click();
		return true;
	})()`)
	v.Click("#more button")
	v.Until(`window.answered === true && document.querySelectorAll("#jobs > li").length === 100`)
	v.Click("#more button")
	v.Until(`document.querySelectorAll("#jobs > li").length === 120`)
	v.quiet()
}

// The rows that the server renders and those that the script makes are the same, whatever has become of a job.
func TestTheScriptRendersTheSameTextsAsTheServer(t *testing.T) {
	s := newScene(t, "", quick, func(set *settings) { set.RetryBaseDelay = time.Hour })
	v := s.visited()
	own := func(d *holdfast.Draft) { d.Owner = v.owner() }
	s.gateway.does(func(n int, w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("mapping") {
		case "text":
			convertsIt(n, w, r)
		case "fields":
			speak(w, http.StatusNotAcceptable, `{"code":"INVALID_MAPPING","message":"There is no mapping of this name."}`, "Content-Type", "application/json")
		default:
			speak(w, http.StatusBadGateway, "")
		}
	})
	w := s.works()
	whole, expired := s.enters(1, own), s.enters(2, own)
	s.becomes(expired, holdfast.Complete)
	s.becomes(whole, holdfast.Complete)
	s.loses(expired, artifactResult)
	v.Drop("body", "photo.png", []byte("no PDF"))
	for n, mapping := range []string{"fields", "fields", "layout"} {
		browser.Eval[bool](v.Page, fmt.Sprintf(`(document.getElementById("mapping").value = %q, true)`, mapping))
		v.Drop("body", fmt.Sprintf("%s-%d.pdf", mapping, n), samplePDF(10+n))
	}
	v.See("#jobs .attempts", "next attempt in")
	v.See("#sum", "3 failed")
	w.stop()
	s.enters(3, own)
	v.Reload()
	v.See("#sum", "2 queued, 1 complete, 3 failed, 1 expired")
	const rows = `(page) => [...page.querySelectorAll("#jobs > li")].map((row) => row.id + " " + row.dataset.state + " " + [...row.querySelectorAll("[data-part]:not([data-part=age])")].map((part) =>
		[part.dataset.part, part.hidden ? "hidden" : part.textContent.trim().replace(/ in \d+ min/, ""), part.getAttribute("href"), part.getAttribute("action"), part.id].join("|")).join("\n"))`
	got := browser.Eval[[]string](v.Page, "("+rows+")(document)")
	want := browser.Eval[[]string](v.Page, `fetch("/").then((r) => r.text()).then((text) => (`+rows+`)(new DOMParser().parseFromString(text, "text/html")))`)
	if len(got) != 7 {
		t.Errorf("%d rows", len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("the script says\n%s\nand the server\n%s", got[i], want[i])
		}
	}
	for _, text := range append(got, want...) {
		if strings.Contains(text, "failed") && strings.Contains(text, "We’ll retry") {
			t.Errorf("the page promises a retry that will not happen: %s", text)
		}
	}
}
