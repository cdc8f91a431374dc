package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/internal/testprograms"
)

func TestMain(m *testing.M) {
	if _, err := testprograms.FFmpeg.Ensure(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// A visitor is a browser without JavaScript.
type visitor struct {
	*testing.T
	*http.Client
	base string
	page string // the last page
	at   string // its path
	app  *app
}

// launch starts the service with a worker.
func launch(t *testing.T, change ...func(*settings)) *visitor {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	a, base := launchWith(t, nil, change...)
	return &visitor{T: t, Client: &http.Client{Jar: jar}, base: base, app: a}
}

// campaignFor signs up, uploads a video and publishes a campaign for a list of recipients. before is called before that.
func (v *visitor) campaignFor(recipients string, before func()) {
	v.Helper()
	v.post("/sign-up", http.StatusOK, url.Values{"email": {"ada@example.org"}, "password": {"a long password"}})
	v.get("/videos")
	v.send("/videos", video(v.T), http.StatusOK, nil)
	asset := v.find(`/campaigns/new\?video=([0-9a-zA-Z-]+)`)
	before()
	v.get("/videos")
	v.post("/campaigns", http.StatusOK, url.Values{"name": {"Spring"}, "video": {asset}, "visible": {"on"}, "invisible": {"on"}})
	page := "/campaigns/" + v.find(`action="/campaigns/([0-9a-zA-Z-]+)/publish"`)
	v.post(page+"/recipients", http.StatusOK, url.Values{"recipients": {recipients}})
	v.post(page+"/publish", http.StatusOK, url.Values{})
}

// findAll returns the first groups of all matches in the page.
func (v *visitor) findAll(pattern string) (list []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(v.page, -1) {
		list = append(list, m[1])
	}
	return list
}

// launchWith starts the service with a worker, behind a handler if there is one, and returns it with its address.
func launchWith(t *testing.T, around func(http.Handler) http.Handler, change ...func(*settings)) (*app, string) {
	t.Helper()
	set, err := readSettings(func(name string) string { return map[string]string{"DATA_DIR": t.TempDir()}[name] })
	if err != nil {
		t.Fatal(err)
	}
	set.Tools.Preset = "ultrafast"
	for _, c := range change {
		c(&set)
	}
	a, err := open(t.Context(), set, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	worker, err := a.engine()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	var handler http.Handler = a
	if around != nil {
		handler = around(a)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := a.close(); err != nil {
			t.Error(err)
		}
	})
	return a, server.URL
}

// read keeps the page of an answer, which must have a status.
func (v *visitor) read(response *http.Response, err error, status int) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		v.Fatal(err)
	}
	v.page, v.at = string(text), response.Request.URL.Path
	if response.StatusCode != status {
		v.Fatalf("%s answers %d, want %d:\n%s", response.Request.URL, response.StatusCode, status, v.page)
	}
}

func (v *visitor) get(path string) {
	v.Helper()
	response, err := v.Get(v.base + path)
	v.read(response, err, http.StatusOK)
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]+)"`)

// token returns the token of the forms of the last page.
func (v *visitor) token() string {
	if m := tokenField.FindStringSubmatch(v.page); m != nil {
		return m[1]
	}
	return ""
}

func (v *visitor) post(path string, status int, fields url.Values) {
	v.Helper()
	fields.Set("token", v.token())
	response, err := v.PostForm(v.base+path, fields)
	v.read(response, err, status)
}

// send posts a form with a file.
func (v *visitor) send(path, file string, status int, fields map[string]string) {
	v.Helper()
	v.sendAs("file", path, file, status, fields)
}

// sendAs posts a form with a file in a field.
func (v *visitor) sendAs(field, path, file string, status int, fields map[string]string) {
	v.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("token", v.token())
	for name, value := range fields {
		_ = form.WriteField(name, value)
	}
	part, err := form.CreateFormFile(field, filepath.Base(file))
	if err != nil {
		v.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		v.Fatal(err)
	}
	_, _ = part.Write(content)
	_ = form.Close()
	response, err := v.Post(v.base+path, form.FormDataContentType(), &body)
	v.read(response, err, status)
}

// until loads a page until it contains a text.
func (v *visitor) until(path, text string) {
	v.Helper()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	limit := time.After(2 * time.Minute)
	for {
		if v.get(path); strings.Contains(v.page, text) {
			return
		}
		select {
		case <-every.C:
		case <-limit:
			v.Fatalf("%s never has %q:\n%s", path, text, v.page)
		}
	}
}

func (v *visitor) find(pattern string) string {
	v.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(v.page)
	if m == nil {
		v.Fatalf("the page has no %s:\n%s", pattern, v.page)
	}
	return m[1]
}

func video(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trailer.mp4")
	out, err := exec.Command("ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=640x360:r=10:d=3", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// The way of a user from an upload to the name behind a leaked copy, in a browser without JavaScript.
func TestAUserUploadsPublishesDownloadsAndFindsTheRecipientOfALeakedCopy(t *testing.T) {
	v := launch(t)
	v.get("/campaigns")
	v.post("/sign-up", http.StatusOK, url.Values{"email": {"ada@example.org"}, "password": {"a long password"}})
	v.get("/videos")
	v.send("/videos", video(t), http.StatusOK, nil)
	if !strings.Contains(v.page, "trailer.mp4") || !strings.Contains(v.page, "640×360") {
		t.Fatal(v.page)
	}
	asset := v.find(`/campaigns/new\?video=([0-9a-zA-Z-]+)`)
	v.get("/campaigns/new?video=" + asset)
	v.post("/campaigns", http.StatusBadRequest, url.Values{"name": {"Spring"}, "video": {asset}})
	v.post("/campaigns", http.StatusOK, url.Values{"name": {"Spring"}, "video": {asset}, "visible": {"on"}, "invisible": {"on"}, "downloads": {"1"}})
	page := "/campaigns/" + v.find(`action="/campaigns/([0-9a-zA-Z-]+)/publish"`)
	v.post(page+"/publish", http.StatusBadRequest, url.Values{})
	v.post(page+"/recipients", http.StatusOK, url.Values{"recipients": {"name, e-mail\nGrace Hopper, grace@example.org\nOlga <b>Iwanowa</b>\n"}})
	if strings.Contains(v.page, "<b>Iwanowa") {
		t.Error("a name is not escaped")
	}
	v.post(page+"/publish", http.StatusOK, url.Values{})
	v.until(page, `data-state="ready"`)
	link := v.find(`href="http://[^/]+(/d/[A-Z0-9]+)">Download page<span class="unseen"> of Grace Hopper`)
	v.get("/campaigns")
	if !strings.Contains(v.page, "2 of 2") {
		t.Error(v.page)
	}
	v.get(link)
	v.find(`1 of 1 (downloads) left`)
	v.get(link + "/file")
	leaked := filepath.Join(t.TempDir(), "leaked.mp4")
	if err := os.WriteFile(leaked, []byte(v.page), 0o600); err != nil {
		t.Fatal(err)
	}
	response, err := v.Get(v.base + link + "/file")
	v.read(response, err, http.StatusGone)
	v.get("/detect")
	v.send("/detect", leaked, http.StatusOK, nil)
	at := v.at
	v.until(at, "</dl>")
	if !strings.Contains(v.page, "<strong>Grace Hopper</strong>") || strings.Contains(v.page, "<strong>Olga") {
		t.Error(v.page)
	}
	v.get(at + "/evidence")
	if !strings.HasPrefix(v.page, "\x89PNG") {
		t.Error("the evidence is no picture")
	}
}

func TestFilesThatAreNoVideosAndFormsOfOtherSessionsAreRefused(t *testing.T) {
	v := launch(t)
	v.post("/sign-up", http.StatusOK, url.Values{"email": {"ada@example.org"}, "password": {"a long password"}})
	v.get("/videos")
	text := filepath.Join(t.TempDir(), "text.mp4")
	if err := os.WriteFile(text, []byte("no video"), 0o600); err != nil {
		t.Fatal(err)
	}
	v.send("/videos", text, http.StatusUnprocessableEntity, nil)
	if !strings.Contains(v.page, "not a video") {
		t.Error(v.page)
	}
	v.page = ""
	v.send("/videos", text, http.StatusForbidden, nil)
	v.get("/videos")
	v.post("/campaigns/none/tokens/none/retry", http.StatusNotFound, url.Values{})
	v.get("/videos")
	response, err := v.Get(v.base + "/d/NOSUCHSECRET")
	v.read(response, err, http.StatusNotFound)
}

func TestTheReadmeListsAllSettings(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range settingTable {
		if row := settingTable[i].Row(); !strings.Contains(string(text), row) {
			t.Errorf("README.md lacks this row:\n%s", row)
		}
	}
}
