package openapi

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
)

var update = flag.Bool("update", false, "rewrite the committed OpenAPI document")

const committed = "../../api/openapi.yaml"

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
		t.Errorf("the routes, their types or their comments have changed: in internal/interop, rewrite the document with go test ./openapi -run TheDocument -update, and look at the difference")
	}
}

func TestTheDocumentSaysTheSameInJSON(t *testing.T) {
	srv, doc, _, _ := documented(t)
	made, err := doc.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://localhost/v1/openapi.json", nil)
	r.RemoteAddr = "127.0.0.1:1"
	srv.ServeHTTP(w, r)
	var want, got any
	if err := errors.Join(json.Unmarshal(made, &want), json.Unmarshal(w.Body.Bytes(), &got)); err != nil {
		t.Fatalf("%d: %v", w.Code, err)
	}
	if !*update && !reflect.DeepEqual(got, want) { // with -update, the server in this test still has the document from before
		t.Error("the JSON that a server sends differs from the document: look at TestTheDocumentIsAsItIsCommitted first")
	}
}
