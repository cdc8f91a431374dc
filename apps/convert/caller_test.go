package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/blob"
	"github.com/holdfastdev/holdfast/store"
)

// A caller is a client with a session, at a converter that answers over HTTP.
type caller struct {
	testing.TB
	at     string
	client *http.Client
	owner  string
}

// served serves the scene's app and returns its address.
func (s *scene) served() string {
	s.Helper()
	handler, err := s.handler()
	if err != nil {
		s.Fatal(err)
	}
	server := httptest.NewServer(handler)
	s.Cleanup(func() {
		_ = handler.(*webHandler).Close()
		server.Close()
	})
	return server.URL
}

// newCaller starts a session.
func newCaller(t testing.TB, at string) *caller {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{TB: t, at: at, client: &http.Client{Jar: jar}}
	c.asks("GET", "/api/gateway").is(http.StatusOK, "")
	here, err := url.Parse(at)
	if err != nil || len(jar.Cookies(here)) != 1 {
		t.Fatalf("no session was begun: %v", err)
	}
	c.owner = ownerOf(jar.Cookies(here)[0].Value)
	return c
}

// An outcome is an answer.
type outcome struct {
	testing.TB
	what   string
	status int
	header http.Header
	body   string
}

// asks sends a request without a body. Headers come in pairs.
func (c *caller) asks(method, path string, headers ...string) outcome {
	c.Helper()
	request, err := http.NewRequestWithContext(c.Context(), method, c.at+path, nil)
	if err != nil {
		c.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.client.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.Fatal(err)
	}
	return outcome{TB: c, what: method + " " + path, status: response.StatusCode, header: response.Header, body: string(body)}
}

// is checks the status and, when one is given, the error's code. No answer may contain internal details.
func (a outcome) is(status int, code string) outcome {
	a.Helper()
	var body struct {
		Code    string `json:"error_code"`
		Message string `json:"error_message"`
	}
	if code != "" {
		if err := json.Unmarshal([]byte(a.body), &body); err != nil || body.Message == "" || a.header.Get("Content-Type") != "application/json" {
			a.Errorf("%s: no error in JSON: %q", a.what, a.body)
		}
	}
	if a.status != status || body.Code != code {
		a.Errorf("%s: %d %s, want %d %s: %.300s", a.what, a.status, body.Code, status, code, a.body)
	}
	for _, secret := range []string{"goroutine", ".go:", "/tmp/", "panic"} {
		if strings.Contains(a.body, secret) {
			a.Errorf("%s: the answer contains %q: %.300s", a.what, secret, a.body)
		}
	}
	return a
}

// job reads the answer as a job.
func (a outcome) job() (v view) {
	a.Helper()
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		a.Fatalf("%s: %v: %s", a.what, err, a.body)
	}
	return v
}

func (c *caller) get(id holdfast.ID) view {
	c.Helper()
	return c.asks("GET", "/api/jobs/"+id.String()).is(http.StatusOK, "").job()
}

// has creates a conversion for the caller.
func (c *caller) has(s *scene, n int) holdfast.ID {
	c.Helper()
	return s.enters(n, func(d *holdfast.Draft) { d.Owner = c.owner })
}

// refused creates a refusal, as an upload does.
func (c *caller) refused(s *scene) holdfast.ID {
	c.Helper()
	receipt, err := holdfast.Enqueue(c.Context(), s.store, Refusal{Name: "cat.gif", Mapping: "text", Bytes: 12, Code: codeNotPDF}, func(d *holdfast.Draft) { d.Owner, d.Queue = c.owner, queueRefuse })
	if err != nil {
		c.Fatal(err)
	}
	return receipt.ID
}

// loses removes one of a job's files as retention does: the file, and then the record of it.
func (s *scene) loses(id holdfast.ID, name string) {
	s.Helper()
	ctx := context.Background()
	kept, err := s.store.Artifacts(ctx, store.ArtifactFilter{Job: id})
	if err != nil {
		s.Fatal(err)
	}
	for _, artifact := range kept {
		if artifact.Name != name {
			continue
		}
		if err := s.expire(ctx, artifact); err != nil {
			s.Fatal(err)
		}
		artifact.Expired = true
		if err := s.store.Apply(ctx, store.Change{Artifacts: []store.Artifact{artifact}}); err != nil {
			s.Fatal(err)
		}
		return
	}
	s.Fatalf("job %s has no %s", id, name)
}

// purges removes the record of an ended job too.
func (s *scene) purges(id holdfast.ID) {
	s.Helper()
	for _, name := range []string{artifactSource, artifactResult} {
		s.loses(id, name)
	}
	rule := store.RetentionRule{Name: "now", Owner: s.job(id).Owner, State: holdfast.Complete}
	if _, err := s.store.Purge(context.Background(), store.Purge{Rules: []store.RetentionRule{rule}, Scan: 1000}); err != nil {
		s.Fatal(err)
	}
}

// A brokenStore fails every read and write of a file.
type brokenStore struct{ blob.Store }

var errBroken = errors.New("the secret of the disk")

// Put fails.
func (brokenStore) Put(context.Context, string, io.Reader) (blob.Info, error) {
	return blob.Info{}, errBroken
}

// Stat fails.
func (brokenStore) Stat(context.Context, string) (blob.Info, error) { return blob.Info{}, errBroken }

// Open fails.
func (brokenStore) Open(context.Context, string) (*blob.File, error) { return nil, errBroken }
