package server

import (
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store/anystore"
)

var update = flag.Bool("update", false, "rewrite the table of scopes in docs/security.md")

// documented is a server on a store of its own.
func documented(t *testing.T) *Server {
	t.Helper()
	s, err := anystore.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	srv, err := New(Config{Store: s, Operator: ops.New(s, ops.Config{}), Open: true, IgnoreKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

// told is what a server answers to anybody.
func told(t *testing.T, s *Server, path string) *httptest.ResponseRecorder {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost"+path, nil)
	r.RemoteAddr = "127.0.0.1:1"
	s.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, w.Code, w.Body)
	}
	return w
}

func TestTheDocumentIsServedInEveryForm(t *testing.T) {
	srv := documented(t)
	if text := told(t, srv, "/v1/openapi.yaml").Body.String(); text != api.Document {
		t.Error("the YAML is not what is committed")
	}
	answer := told(t, srv, "/v1/openapi.json")
	if kind := answer.Header().Get("Content-Type"); !strings.HasPrefix(kind, "application/vnd.oai.openapi+json") {
		t.Errorf("the document comes as %q", kind)
	}
	if !json.Valid(answer.Body.Bytes()) {
		t.Error("the JSON is none")
	}
}

func TestYAMLIsConvertedToJSONExactly(t *testing.T) {
	for text, want := range map[string]string{
		"b: 1\na: [1.5, true, null, no, x]\n":  `{"b":1,"a":[1.5,true,null,"no","x"]}`,
		"at: 2026-01-02T03:04:05Z\nn: \"1\"\n": `{"at":"2026-01-02T03:04:05Z","n":"1"}`,
		"hex: 0x10\nnone: {}\n":                `{"hex":"0x10","none":{}}`,
	} {
		if got, err := jsonOf(text); err != nil || got != want {
			t.Errorf("%q became %s %v", text, got, err)
		}
	}
	for _, text := range []string{"a: &x 1\nb: *x\n", "a: [", ""} {
		if got, err := jsonOf(text); err == nil {
			t.Errorf("%q became %s", text, got)
		}
	}
}

func TestEveryRouteIsDocumented(t *testing.T) {
	srv := documented(t)
	type param struct {
		Ref               string `json:"$ref"`
		Name, Description string
	}
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID, Summary, Description string
			Tags                              []string
			Parameters                        []param
			Responses                         map[string]any
		}
		Components struct{ Parameters map[string]param }
		Tags       []struct{ Name, Description string }
	}
	if err := json.Unmarshal(told(t, srv, "/v1/openapi.json").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	page := told(t, srv, "/docs")
	body := page.Body.String()
	if may := page.Header().Get("Content-Security-Policy"); !strings.HasPrefix(may, "default-src 'none'") || strings.Contains(body, "<script") {
		t.Errorf("the page for people may do more than look: %q", may)
	}
	if !strings.Contains(body, "Cursor of the previous page") {
		t.Error("the page for people lacks what several routes share")
	}
	described := map[string]bool{}
	for _, tag := range doc.Tags {
		described[tag.Name] = tag.Description != ""
	}
	seen := map[string]bool{}
	for at, methods := range doc.Paths {
		for method, o := range methods {
			if o.OperationID == "" || seen[o.OperationID] || o.Summary == "" || o.Description == "" || len(o.Tags) != 1 {
				t.Errorf("%s %s is described as %+v", method, at, o)
			}
			if seen[o.OperationID] = true; !described[o.Tags[0]] {
				t.Errorf("%s %s is in the section %s, which has no description", method, at, o.Tags)
			}
			for _, p := range o.Parameters {
				if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
					p = doc.Components.Parameters[name]
				}
				if p.Name == "" || p.Description == "" {
					t.Errorf("%s %s does not say what %q is", method, at, p.Name)
				}
			}
			if o.Responses["default"] == nil {
				t.Errorf("%s %s does not say how it answers when something is wrong", method, at)
			}
			if !strings.Contains(body, `id="`+o.OperationID+`"`) {
				t.Errorf("the page for people lacks %s", o.OperationID)
			}
		}
	}
	for _, m := range srv.routes {
		if !seen[m.name] {
			t.Errorf("%s is not described", m.name)
		}
	}
}

func TestTheTypeOfAProblemHasAPage(t *testing.T) {
	srv := documented(t)
	if page := told(t, srv, "/problems/conflict"); !strings.Contains(page.Body.String(), "HTTP status 409") || !strings.HasPrefix(page.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("it leads to %q", page.Body)
	}
}
