package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apps/internal/notice"
)

// A call is a request to a webhook.
type call struct {
	header http.Header
	body   []byte
}

// W7: the webhook campaign_ready has the state of the campaign, is signed, and is called once for each outcome, also if the first attempt fails.
func TestTheWebhookSaysTheStateIsSignedAndComesOnceForEachOutcome(t *testing.T) {
	calls, asked := make(chan call, 10), 0
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		calls <- call{r.Header.Clone(), body}
	}))
	defer hook.Close()
	fault, program := filepath.Join(t.TempDir(), "fault"), filepath.Join(t.TempDir(), "ffmpeg")
	for path, text := range map[string]string{fault: "", program: strings.Replace(faultyFFmpeg, "%s", fault, 1)} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	v := launch(t, func(set *settings) { set.Tools.FFmpeg, set.PrivateOK = program, true })
	v.campaignFor("Grace\nFaulty Fred\n", func() {
		v.get("/notices")
		v.post("/notices", http.StatusBadRequest, url.Values{"url": {"ftp://example.org"}})
		v.post("/notices", http.StatusOK, url.Values{"url": {hook.URL}})
	})
	page := v.at
	v.until(page, `data-state="partial"`)
	checkCall(t, <-calls, v.app, "PARTIAL, 1 completed, 1 failed")
	if err := os.Remove(fault); err != nil {
		t.Fatal(err)
	}
	v.post(v.find(`action="(/campaigns/[^"]+/retry)"`), http.StatusOK, url.Values{})
	v.until(page, `data-state="ready"`)
	checkCall(t, <-calls, v.app, "READY, 2 completed, 0 failed")
	if len(calls) > 0 {
		t.Errorf("%d calls too many", len(calls))
	}
}

// checkCall checks that a call is signed for the owner, and says a state with counts.
func checkCall(t *testing.T, c call, a *app, want string) {
	t.Helper()
	secret, err := readSecret(filepath.Join(a.set.Data, "mark-secret"))
	if err != nil {
		t.Fatal(err)
	}
	user, err := a.accounts.UserByEmail(t.Context(), "ada@example.org")
	if err != nil {
		t.Fatal(err)
	}
	of, err := a.accounts.Organisations(t.Context(), user.ID)
	if err != nil {
		t.Fatal(err)
	}
	owner := of[0].ID
	var m struct {
		Type string
		Data struct {
			State             string
			Completed, Failed int
		}
	}
	if err := json.Unmarshal(c.body, &m); err != nil || m.Type != "campaign_ready" {
		t.Errorf("%v: %s", err, c.body)
	}
	if said := fmt.Sprintf("%s, %d completed, %d failed", m.Data.State, m.Data.Completed, m.Data.Failed); said != want {
		t.Errorf("the call says %s, want %s", said, want)
	}
	hooks := notice.Hooks{Secret: secret}
	if !hooks.Verify(owner, c.header, c.body) || hooks.Verify("another owner", c.header, c.body) {
		t.Errorf("the signature is %q", c.header.Get("Webhook-Signature"))
	}
}

// The copies of two recipients, mixed picture by picture, name both; what is no clip fails on the page of the search.
func TestCopiesThatWereMixedNameAllTheirRecipientsAndAFailedSearchHasItsPage(t *testing.T) {
	v := launch(t)
	v.campaignFor("Grace\nOlga\nMary\n", func() {})
	v.until(v.at, `data-state="ready"`)
	links, folder := v.findAll(`href="http://[^/]+(/d/[A-Z0-9]+)"`), t.TempDir()
	var args []string
	for n, name := range []string{"one.mp4", "two.mp4"} {
		v.get(links[n] + "/file")
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(v.page), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-i", path)
	}
	mixed := filepath.Join(folder, "mixed.mp4")
	out, err := exec.Command("ffmpeg", append(append([]string{"-v", "error"}, args...), "-filter_complex", "mix=inputs=2", "-c:v", "libx264", "-preset", "ultrafast", "-crf", "23", mixed)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	v.get("/detect")
	v.send("/detect", mixed, http.StatusOK, nil)
	v.until(v.at, "</dl>")
	if !strings.Contains(v.page, "Copies of 2 recipients were mixed") || !strings.Contains(v.page, "<strong>Grace") || !strings.Contains(v.page, "<strong>Olga") || strings.Contains(v.page, "<strong>Mary") {
		t.Error(v.page)
	}
	text := filepath.Join(folder, "text.mp4")
	if err := os.WriteFile(text, []byte("no video"), 0o600); err != nil {
		t.Fatal(err)
	}
	v.get("/detect")
	v.send("/detect", text, http.StatusOK, nil)
	v.until(v.at, "The search failed")
	v.find(`(INPUT_NOT_VIDEO)`)
}
