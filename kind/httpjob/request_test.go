package httpjob_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/jobkind"
	"github.com/holdfastdev/holdfast/kind/httpjob"
)

func TestPrepareRefusesInvalidRequestsAndSaysWhatToDo(t *testing.T) {
	for args, says := range map[string]string{
		`null`: "url", `7`: "arguments of kind http", `{"url": 7}`: "arguments of kind http", `{}`: "url", `{"url": "https://example.org"} {}`: "more after",
		`{"url": "https://example.org", "verb": "GET"}`: "unknown field", `{"url": "ftp://example.org/canary"}`: "https:", `{"url": "/canary"}`: "https:",
		`{"url": "https://ada:canary@example.org/"}`: "header", `{"url": "https://example.org/#canary"}`: "part after #", `{"url": "https://bücher.example/canary"}`: "xn--",
		`{"url": "https://example.org", "method": "BREW"}`: "use GET", `{"url": "https://example.org", "method": "GET\r\nX: y"}`: "use GET", `{"url": "https://example.org", "method": "CONNECT"}`: "use GET",
		`{"url": "https://example.org", "method": "GET", "body": "x"}`: "use POST", `{"url": "https://example.org", "body": "x", "json": 1}`: "give one",
		`{"url": "https://example.org", "headers": {"X-A": "a\r\nX-B: canary"}}`: "one line", `{"url": "https://example.org", "headers": {"X-A": "a\u0000"}}`: "one line",
		`{"url": "https://example.org", "headers": {"X A": "a"}}`: "letters", `{"url": "https://example.org", "headers": {"X:A": "a"}}`: "letters", `{"url": "https://example.org", "headers": {"": "a"}}`: "letters",
		`{"url": "https://example.org", "headers": {"host": "a"}}`: "belongs to the connection", `{"url": "https://example.org", "headers": {"Transfer-Encoding": "chunked"}}`: "belongs to the connection",
		`{"url": "https://example.org", "headers": {"X-A": "a", "x-a": "b"}}`: "twice", `{"url": "https://example.org", "keep_headers": ["a b"]}`: "not a header",
		`{"url": "https://example.org", "timeout": 5}`: "timeout", `{"url": "https://example.org", "timeout": "soon"}`: "30s", `{"url": "https://example.org", "timeout": "11m"}`: "up to 10m", `{"url": "https://example.org", "timeout": "-1s"}`: "up to 10m",
		`{"url": "https://example.org", "expect": ["200-100"]}`: "2xx", `{"url": "https://example.org", "expect": [99]}`: "2xx", `{"url": "https://example.org", "expect": ["x"]}`: "2xx", `{"url": "https://example.org", "expect": [true]}`: "2xx",
		`{"url": "https://example.org", "max_response": 1000000}`: "give up to", `{"url": "https://example.org", "redirects": 6}`: "give up to 5",
		`{"url": "https://${secret:a}.example.org/"}`: "", `{"url": "https://example.org/${secret:a}"}`: "query or into a header", `{"url": "https://example.org/?a=${secret:}"}`: "proper name",
		`{"url": "https://example.org", "headers": {"X-A": "${secret:a b}"}}`: "proper name", `{"url": "https://example.org", "body": "${secret:a}"}`: "header or into the query", `{"url": "https://example.org", "json": {"a": "${secret:a}"}}`: "header or into the query",
	} {
		d := holdfast.Draft{Kind: httpjob.Kind, Args: json.RawMessage(args)}
		err := httpjob.Prepare(&d)
		if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestTheDependencyOfACallIsItsHostAndAnotherIsRefused(t *testing.T) {
	for url, want := range map[string]string{
		"https://API.example.org/x?y": "api.example.org", "https://api.example.org.:443/": "api.example.org", "http://api.example.org:80/": "api.example.org", "http://api.example.org:443/": "api.example.org:443",
		"https://api.example.org:8443/": "api.example.org:8443", "https://1.1.1.1/": "1.1.1.1", "https://[2606:4700::1111]:8443/": "2606:4700::1111:8443", "http://[fe80::1%25eth0]/": "fe80::1",
	} {
		d, err := httpjob.Draft(httpjob.Request{URL: url})
		if err != nil || d.Dependency != want || d.Prepare() != nil {
			t.Errorf("%s: %q, %v, %v", url, d.Dependency, err, d.Prepare())
		}
	}
	d := holdfast.Draft{Kind: httpjob.Kind, Dependency: "orders", Args: json.RawMessage(`{"url": "https://example.org", "expect": [200, "3xx", "404-410"], "timeout": "1m30s", "json": null}`)}
	if err := httpjob.Prepare(&d); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), "example.org") {
		t.Error("a dependency that is not the host:", err)
	}
	d.Dependency = "example.org"
	if err := httpjob.Prepare(&d); err != nil {
		t.Error("a dependency that is the host:", err)
	}
	other := holdfast.Draft{Kind: "mail", Args: json.RawMessage(`{"anything": 1}`)}
	if err := httpjob.Prepare(&other); err != nil || other.Dependency != "" {
		t.Error(other.Dependency, err)
	}
}

func TestOperatorsNameTheDependenciesBehindHosts(t *testing.T) {
	names := httpjob.Dependencies{"*.example.org": "example", "pay.example.org": "payments", "*.eu.example.org": "europe", "other.test:8443": "other"}
	if err := names.Check(); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"https://a.b.example.org/": "example", "https://pay.example.org/x": "payments", "https://a.eu.example.org/": "europe", "https://example.org/": "example.org",
		"https://other.test:8443/": "other", "https://other.test/": "other.test", "https://evilexample.org/": "evilexample.org", "https://1.1.1.1/": "1.1.1.1",
	} {
		d := holdfast.Draft{Kind: httpjob.Kind, Args: json.RawMessage(`{"url": "` + url + `"}`)}
		if err := names.Prepare(&d); err != nil || d.Dependency != want {
			t.Errorf("%s: %q, want %q, %v", url, d.Dependency, want, err)
		}
	}
	for host, name := range map[string]string{"": "x", "*": "x", "A.test": "x", "a.test": "", "a.test/x": "y", "b.test": "two words"} {
		if (httpjob.Dependencies{host: name}).Check() == nil {
			t.Errorf("%q=%q is accepted", host, name)
		}
	}
}

// taker is an enqueuer that accepts everything.
type taker struct {
	holdfast.Enqueuer
	drafts []holdfast.Draft
	group  holdfast.Group
}

func (t *taker) Enqueue(_ context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	t.drafts = append(t.drafts, drafts...)
	return make([]holdfast.Receipt, len(drafts)), nil
}

func (t *taker) CreateGroup(_ context.Context, g holdfast.Group) (holdfast.Group, error) {
	t.group = g
	return g, nil
}

func TestAllDraftsAreValidatedBeforeTheFirstIsPassedOn(t *testing.T) {
	to := &taker{}
	gate := jobkind.Preparing(to, httpjob.Prepare)
	good := holdfast.Draft{Kind: httpjob.Kind, Args: json.RawMessage(`{"url": "https://example.org"}`)}
	bad := holdfast.Draft{Kind: httpjob.Kind, Args: json.RawMessage(`{"url": "example.org"}`)}
	drafts := []holdfast.Draft{good, bad, {Kind: "mail"}, bad}
	if _, err := gate.Enqueue(t.Context(), drafts); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), "draft 1") || !strings.Contains(err.Error(), "draft 3") || len(to.drafts) != 0 {
		t.Errorf("%v, passed on %d", err, len(to.drafts))
	}
	if _, err := gate.Enqueue(t.Context(), []holdfast.Draft{good, {Kind: "mail"}}); err != nil || len(to.drafts) != 2 || to.drafts[0].Dependency != "example.org" {
		t.Errorf("%v, %+v", err, to.drafts)
	}
	if _, err := gate.CreateGroup(t.Context(), holdfast.Group{Then: []holdfast.Then{{Draft: bad}}}); !errors.Is(err, holdfast.ErrInvalid) {
		t.Error(err)
	}
	if _, err := gate.CreateGroup(t.Context(), holdfast.Group{Then: []holdfast.Then{{Draft: good}}}); err != nil || to.group.Then[0].Draft.Dependency != "example.org" {
		t.Error(err)
	}
}
