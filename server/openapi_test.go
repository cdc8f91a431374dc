package server

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfastdev/holdfast/internal/api"
)

var update = flag.Bool("update", false, "rewrite the committed OpenAPI document")

const committed = "../internal/api/openapi.yaml"

// sections is the order in which a reader of the document wants to meet them.
var sections = []string{"openapi", "info", "servers", "security", "tags", "paths", "webhooks", "components"}

// inOrder puts the sections of a document in order.
func inOrder(t *testing.T, text string) string {
	t.Helper()
	found := map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if line[0] != ' ' && line[0] != '\n' {
			name, _, _ = strings.Cut(line, ":")
		}
		found[name] += line
	}
	var ordered strings.Builder
	for _, name := range sections {
		ordered.WriteString(found[name])
	}
	if ordered.Len() != len(text) {
		t.Fatalf("the document has other sections than %v: %v", sections, slices.Sorted(maps.Keys(found)))
	}
	return ordered.String()
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

func TestTheDocumentIsAsItIsCommitted(t *testing.T) {
	_, doc, _, _ := documented(t)
	text, err := doc.YAML()
	if err != nil {
		t.Fatal(err)
	}
	now := inOrder(t, string(text))
	if *update {
		if err := os.WriteFile(committed, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if now != string(before) {
		t.Errorf("the routes, their types or what is said about them have changed: rewrite internal/api/openapi.yaml with go test ./server -run TheDocument -update, and look at the difference")
	}
}

func TestTheDocumentIsServedInEveryForm(t *testing.T) {
	srv, _, _, _ := documented(t)
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

func TestTheDocumentSaysTheSameInJSON(t *testing.T) {
	_, doc, _, _ := documented(t)
	made, err := doc.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	text, err := doc.YAML()
	if err != nil {
		t.Fatal(err)
	}
	turned, err := jsonOf(inOrder(t, string(text)))
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := errors.Join(json.Unmarshal(made, &want), json.Unmarshal([]byte(turned), &got)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("what was read from YAML is something else than what was written into it")
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
	srv, _, _, _ := documented(t)
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
	seen := map[string]bool{}
	for at, methods := range doc.Paths {
		for method, o := range methods {
			if o.OperationID == "" || seen[o.OperationID] || o.Summary == "" || o.Description == "" || len(o.Tags) != 1 {
				t.Errorf("%s %s is described as %+v", method, at, o)
			}
			if seen[o.OperationID] = true; !slices.ContainsFunc(chapters, func(c *huma.Tag) bool { return c.Name == o.Tags[0] }) {
				t.Errorf("%s %s is in the chapter %s, and nobody says what that is about", method, at, o.Tags)
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
	srv, _, _, _ := documented(t)
	if page := told(t, srv, "/problems/conflict"); !strings.Contains(page.Body.String(), "HTTP status 409") || !strings.HasPrefix(page.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("it leads to %q", page.Body)
	}
}
