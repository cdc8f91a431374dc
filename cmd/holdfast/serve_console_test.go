package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/store/anystore"
)

// A visitor is a minimal browser with cookies.
type visitor struct {
	t    *testing.T
	at   string
	http *http.Client
}

func newVisitor(t *testing.T, p *process) *visitor {
	jar, err := cookiejar.New(nil)
	ok(t, err)
	return &visitor{t, p.url, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// A view is the answer to a visitor's request.
type view struct {
	status int
	header http.Header
	text   string
}

func (v *visitor) send(method, path, accept string, form url.Values) view {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.at+path, strings.NewReader(form.Encode()))
	ok(v.t, err)
	r.Header.Set("Accept", accept)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := v.http.Do(r)
	ok(v.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	ok(v.t, err)
	return view{response.StatusCode, response.Header, string(text)}
}

func (v *visitor) get(path string) view { v.t.Helper(); return v.send("GET", path, "text/html", nil) }

func (v *visitor) post(path string, form url.Values) view {
	v.t.Helper()
	return v.send("POST", path, "text/html", form)
}

func (s view) location() string { return s.header.Get("Location") }

func TestTheConsoleIsServedBesideTheAPI(t *testing.T) {
	t.Parallel()
	p := startServe(t, []string{"HOLDFAST_LOG_LEVEL=error"}, "--store", filepath.Join(t.TempDir(), "jobs.db"))
	v := newVisitor(t, p)
	if home := v.get("/"); home.status != http.StatusSeeOther || home.location() != "/console/" {
		t.Error(home)
	}
	first := v.get("/console/")
	if first.status != http.StatusSeeOther || first.location() != "/console/overview" {
		t.Error("without failures the console starts at", first.location())
	}
	page := v.get("/console/overview")
	if page.status != http.StatusOK || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") || !strings.Contains(page.header.Get("Content-Security-Policy"), "script-src 'self'") {
		t.Error(page.status, page.header)
	}
	if home := v.send("GET", "/", "application/json", nil); home.status != http.StatusSeeOther || home.location() != "/console/" {
		t.Error("the root for a client that is no browser:", home)
	}
	if other := v.send("GET", "/other", "application/json", nil); other.status != http.StatusNotFound || !strings.Contains(other.text, "not_found") {
		t.Error("a path that nothing serves:", other)
	}
	if api := v.send("GET", "/v1/jobs", "*/*", nil); api.status != http.StatusOK || !strings.Contains(api.text, `"jobs"`) {
		t.Error("the API:", api)
	}
	if code := p.stop(t); code != exitOK {
		t.Errorf("it stopped with %d", code)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !strings.Contains(p.out.String(), "console  "+p.url+"/console/\n") {
		t.Error("it does not say where the console is:", p.out.String())
	}
}

func TestTheConsoleCanBeReadOnlyOrOff(t *testing.T) {
	t.Parallel()
	p := startServe(t, []string{"HOLDFAST_LOG_LEVEL=error", "HOLDFAST_CONSOLE=read-only"}, "--store", filepath.Join(t.TempDir(), "jobs.db"))
	v := newVisitor(t, p)
	if done := v.post("/console/jobs/bulk", url.Values{"do": {"retry"}}); done.status != http.StatusForbidden || !strings.Contains(done.text, "read-only") {
		t.Error(done.status, done.text)
	}
	if page := v.get("/console/overview"); page.status != http.StatusOK {
		t.Error(page.status)
	}
	p.stop(t)
	p = startServe(t, []string{"HOLDFAST_LOG_LEVEL=error"}, "--console", "off", "--store", filepath.Join(t.TempDir(), "jobs.db"))
	v = newVisitor(t, p)
	if home := v.get("/"); home.status != http.StatusOK || !strings.Contains(home.text, "/v1/openapi.json") {
		t.Errorf("/, although the console is off: %d %s", home.status, home.text)
	}
	for _, path := range []string{"/console/", "/console/overview"} {
		if page := v.get(path); page.status != http.StatusNotFound {
			t.Errorf("%s, although it is off: %d", path, page.status)
		}
	}
	p.stop(t)
	if code, _, stderr := command(t, "serve", "--console", "perhaps"); code != exitUsage || !strings.Contains(stderr, "read-only") {
		t.Error(code, stderr)
	}
}

func TestAKeyOpensTheConsoleUntilItIsRevoked(t *testing.T) {
	t.Parallel()
	address := filepath.Join(t.TempDir(), "jobs.db")
	fresh, err := anystore.Open(t.Context(), address)
	ok(t, err)
	ok(t, fresh.Close())
	made := func(name, scope string) string {
		code, text, stderr := command(t, "keys", "create", "--name", name, "--scope", scope, "--store", address)
		if code != exitOK {
			t.Fatal(stderr)
		}
		return strings.TrimSpace(text)
	}
	viewer, worker := made("vera", "viewer"), made("willy", "worker")
	p := startServe(t, []string{"HOLDFAST_LOG_LEVEL=error"}, "--store", address)
	v := newVisitor(t, p)
	if page := v.get("/console/overview"); page.status != http.StatusSeeOther || !strings.HasPrefix(page.location(), "/console/sign-in") {
		t.Error("a visitor without a key gets", page.status, page.location())
	}
	if page := v.get("/console/sign-in"); page.status != http.StatusOK || !strings.Contains(page.text, `name="key"`) {
		t.Error(page.status, page.text)
	}
	if page := v.post("/console/sign-in", url.Values{"key": {worker}}); page.status != http.StatusForbidden {
		t.Error("a worker's key:", page.status)
	}
	in := v.post("/console/sign-in", url.Values{"key": {viewer}})
	if in.status != http.StatusSeeOther || !strings.Contains(in.header.Get("Set-Cookie"), "HttpOnly") || strings.Contains(in.header.Get("Set-Cookie"), viewer) {
		t.Fatal(in.status, in.header)
	}
	if page := v.get("/console/overview"); page.status != http.StatusOK || !strings.Contains(page.text, "vera") {
		t.Error("a signed-in visitor gets", page.status)
	}
	if done := v.post("/console/jobs/bulk", url.Values{"do": {"retry"}}); done.status != http.StatusForbidden {
		t.Error("a viewer can change something:", done.status)
	}
	if api := v.send("GET", "/v1/jobs", "*/*", nil); api.status != http.StatusUnauthorized {
		t.Error("the cookie of the console opens the API:", api.status)
	}
	id := strings.Split(viewer, "_")[1]
	if code, _, stderr := command(t, "keys", "revoke", id, "--actor", "ada", "--store", address); code != exitOK {
		t.Fatal(stderr)
	}
	waitUntil(t, "the session of a revoked key is over", func() bool { return v.get("/console/overview").status == http.StatusSeeOther })
	refused := v.post("/console/sign-in", url.Values{"key": {viewer}})
	if refused.status != http.StatusUnauthorized || !strings.Contains(refused.text, "revoked") {
		t.Error(refused.status, refused.text)
	}
	waitUntil(t, "an address with too many bad keys is told to wait", func() bool {
		page := v.post("/console/sign-in", url.Values{"key": {"hf_nonsense"}})
		return page.status/100 == 4 && strings.Contains(page.text, "oo many requests with a bad API key")
	})
	if code := p.stop(t); code != exitOK {
		t.Errorf("it stopped with %d", code)
	}
}

// A server that shuts down waits for its requests and aborts those that do not end. The console ends its event streams first.
func TestAnOpenEventStreamDoesNotDelayTheShutdown(t *testing.T) {
	t.Parallel()
	p := startServe(t, []string{"HOLDFAST_LOG_LEVEL=error"}, "--store", filepath.Join(t.TempDir(), "jobs.db"))
	ctx, enough := context.WithTimeout(context.Background(), testTimeout)
	defer enough()
	r, err := http.NewRequestWithContext(ctx, "GET", p.url+"/console/live", nil)
	ok(t, err)
	response, err := http.DefaultClient.Do(r)
	ok(t, err)
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(line, err, response.StatusCode)
	}
	if code := p.stop(t); code != exitOK {
		t.Errorf("it stopped with %d", code)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Error("the stream was aborted:", err)
	}
}
