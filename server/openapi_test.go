package server_test

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/ops"
)

var update = flag.Bool("update", false, "rewrite the committed OpenAPI document and the words it is made of")

const committed = "../api/openapi.yaml"

// get asks without a key.
func get(t *testing.T, address string) (*http.Response, string) {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func TestTheDocumentIsAsItIsCommitted(t *testing.T) {
	web := serve(t, openFile(t), ops.Config{})
	_, now := get(t, web.URL+"/v1/openapi.yaml")
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
		t.Errorf("the routes or their types have changed: look at the difference, and rewrite api/openapi.yaml with go test ./server -run TheDocument -update")
	}
}

// rooms are where the types that travel are written, and what is said about them.
var rooms = []string{"..", "../api", "../ops", "../key", "../duty", "../schedule", "../failure/redrive", "../failure/breaker", "../notify/subscription"}

func TestTheWordsOfTheDocumentAreThoseOfTheCode(t *testing.T) {
	words := map[string]string{}
	for _, room := range rooms {
		maps.Copy(words, wordsOf(t, room))
	}
	text, err := json.MarshalIndent(words, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	const file = "openapi_words.json"
	if *update {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(text) {
		t.Errorf("comments of types that travel have changed: rewrite %s with go test ./server -run TheWords -update, and then the document", file)
	}
}

// wordsOf are the comments of a room's structs and of their fields.
func wordsOf(t *testing.T, room string) map[string]string {
	t.Helper()
	words, files := map[string]string{}, token.NewFileSet()
	name := path.Base(room)
	if name == ".." {
		name = "holdfast"
	}
	sources, err := fs.Glob(os.DirFS(room), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(files, room+"/"+source, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			if general, ok := d.(*ast.GenDecl); ok && general.Tok == token.TYPE {
				wordsOfType(words, name, general)
			}
		}
	}
	return words
}

func wordsOfType(words map[string]string, room string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		of := spec.(*ast.TypeSpec)
		fields, ok := of.Type.(*ast.StructType)
		if !ok || !of.Name.IsExported() {
			continue
		}
		travels := false
		for _, f := range fields.Fields.List {
			if f.Tag == nil || !strings.Contains(f.Tag.Value, "json:") {
				continue
			}
			travels = true
			for _, name := range f.Names {
				if said := lineOf(f); said != "" && !strings.Contains(f.Tag.Value, "doc:") {
					words[room+"."+of.Name.Name+"."+name.Name] = said
				}
			}
		}
		if said := line(d.Doc.Text()); travels && said != "" {
			words[room+"."+of.Name.Name] = said
		}
	}
}

// lineOf is what is said about a field. A few words above it are the title of a section.
func lineOf(f *ast.Field) string {
	above := line(f.Doc.Text())
	if len(strings.Fields(above)) <= 7 {
		above = ""
	}
	return strings.TrimSpace(above + " " + line(f.Comment.Text()))
}

// line is a comment on one line.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

func TestEveryRouteIsDescribedToPeopleAndPrograms(t *testing.T) {
	web := serve(t, openFile(t), ops.Config{})
	answer, text := get(t, web.URL+"/v1/openapi.json")
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/vnd.oai.openapi+json") {
		t.Errorf("the document comes as %q", answer.Header.Get("Content-Type"))
	}
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID, Summary, Description string
			Tags                              []string
			Parameters                        []struct{ Name, Description string }
			Responses                         map[string]any
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	page, body := get(t, web.URL+"/docs")
	if may := page.Header.Get("Content-Security-Policy"); !strings.HasPrefix(may, "default-src 'none'") || strings.Contains(body, "<script") {
		t.Errorf("the page for people may do more than look: %q", may)
	}
	seen := map[string]bool{}
	for _, at := range slices.Sorted(maps.Keys(doc.Paths)) {
		for method, o := range doc.Paths[at] {
			if o.OperationID == "" || seen[o.OperationID] || o.Summary == "" || o.Description == "" || len(o.Tags) != 1 {
				t.Errorf("%s %s is described as %+v", method, at, o)
			}
			seen[o.OperationID] = true
			for _, p := range o.Parameters {
				if p.Description == "" {
					t.Errorf("%s %s does not say what %s is", method, at, p.Name)
				}
			}
			if o.Responses["4XX"] == nil {
				t.Errorf("%s %s does not say how it answers when something is wrong", method, at)
			}
			if !strings.Contains(body, `id="`+o.OperationID+`"`) {
				t.Errorf("the page for people lacks %s", o.OperationID)
			}
		}
	}
	if len(seen) < 80 {
		t.Errorf("only %d routes are described", len(seen))
	}
}
