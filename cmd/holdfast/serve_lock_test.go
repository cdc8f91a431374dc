package main

import (
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// openStream opens the console's stream of changes. The server ends it only when the visitor may no longer read it.
func (v *visitor) openStream() io.ReadCloser {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), "GET", v.at+"/console/live", nil)
	ok(v.t, err)
	response, err := v.http.Do(r)
	ok(v.t, err)
	if response.StatusCode != http.StatusOK {
		v.t.Fatal(response.Status)
	}
	return response.Body
}

func TestTheFirstKeyLocksTheAPIAndTheConsoleOfARunningServer(t *testing.T) {
	t.Parallel()
	address := filepath.Join(t.TempDir(), "jobs.db")
	p := startServe(t, []string{"HOLDFAST_LOG_LEVEL=error"}, "--store", address)
	v := newVisitor(t, p)
	if api, page, sign := v.get("/v1/keys"), v.get("/console/overview"), v.get("/console/sign-in"); api.status != http.StatusOK || page.status != http.StatusOK || sign.status != http.StatusSeeOther {
		t.Fatal("without keys:", api.status, page.status, sign.status)
	}
	live := v.openStream()
	code, text, stderr := command(t, "keys", "create", "--name", "ada", "--scope", "admin", "--store", address)
	if code != exitOK || !strings.Contains(stderr, "this is the first key") {
		t.Fatal(code, stderr)
	}
	waitUntil(t, "the API asks for a key", func() bool { return v.get("/v1/keys").status == http.StatusUnauthorized })
	if page := v.get("/console/overview"); page.status != http.StatusSeeOther || !strings.HasPrefix(page.location(), "/console/sign-in") {
		t.Error("a visitor without a key gets", page.status, page.location())
	}
	if _, err := io.Copy(io.Discard, live); err != nil {
		t.Error("the stream of a visitor without a key:", err)
	}
	if page := v.post("/console/sign-in", url.Values{"key": {strings.TrimSpace(text)}}); page.status != http.StatusSeeOther {
		t.Fatal("the key opens", page.status)
	}
	live = v.openStream()
	code, far, stderr := command(t, "keys", "create", "--name", "bob", "--scope", "viewer", "--server", p.url, "--key", strings.TrimSpace(text))
	if code != exitOK || strings.Contains(stderr, "this is the first key") || !strings.HasPrefix(far, "hf_") {
		t.Error("a second key, made over HTTP:", code, stderr)
	}
	if code, _, stderr = command(t, "keys", "revoke", strings.Split(text, "_")[1], "--store", address); code != exitOK {
		t.Fatal(stderr)
	}
	if _, err := io.Copy(io.Discard, live); err != nil {
		t.Error("the stream of a visitor whose key was revoked:", err)
	}
	if page := v.get("/console/overview"); page.status != http.StatusSeeOther {
		t.Error("with a revoked key the visitor sees", page.status)
	}
	if code := p.stop(t); code != exitOK {
		t.Errorf("it stopped with %d", code)
	}
}
