package openapi

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// folders are the folders of the packages with JSON types.
var folders = []string{"../../..", "../../../store", "../../../internal/api", "../../../ops", "../../../apikey", "../../../duty", "../../../schedule", "../../../failure", "../../../failure/redrive", "../../../failure/breaker", "../../../failure/catalog", "../../../failure/policy", "../../../notify/subscription"}

// commentsIn reads the comments of structs and their fields, which become the descriptions in the document.
func commentsIn(t *testing.T) map[string]string {
	t.Helper()
	words := map[string]string{}
	for _, folder := range folders {
		readFolder(t, words, folder)
	}
	return words
}

func readFolder(t *testing.T, words map[string]string, folder string) {
	t.Helper()
	files := token.NewFileSet()
	name := path.Base(folder)
	if name == ".." {
		name = "holdfast"
	}
	sources, err := fs.Glob(os.DirFS(folder), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(files, folder+"/"+source, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			if general, ok := d.(*ast.GenDecl); ok && general.Tok == token.TYPE {
				readType(words, name, general)
			}
		}
	}
}

func readType(words map[string]string, folder string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		of := spec.(*ast.TypeSpec)
		fields, ok := of.Type.(*ast.StructType)
		if !ok || !of.Name.IsExported() {
			continue
		}
		for _, f := range fields.Fields.List {
			for _, name := range f.Names {
				words[folder+"."+of.Name.Name+"."+name.Name] = lineOf(f)
			}
		}
		about := of.Doc
		if about == nil && len(d.Specs) == 1 {
			about = d.Doc
		}
		words[folder+"."+of.Name.Name] = unbroken(about.Text())
	}
}

// lineOf is the comment of a field. A short comment above it is the title of a section, and not part of it.
func lineOf(f *ast.Field) string {
	above := unbroken(f.Doc.Text())
	if len(strings.Fields(above)) <= 7 {
		above = ""
	}
	return sentence(strings.TrimSpace(above + " " + unbroken(f.Comment.Text())))
}

// sentence begins a text with a capital letter and ends it with a period.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// unbroken is a comment on one line.
func unbroken(text string) string { return strings.Join(strings.Fields(text), " ") }

// usualWords describe members that mean the same in every type, where the code has no comment on them.
var usualWords = map[string]string{
	"actor": "Person, program or engine that did this.", "args": "Arguments of the job.", "as_of": "Time of the store's clock at which this was read.", "at": "When it happened.",
	"cancelled": "Number that ended as cancelled.", "category": "Class of the failure code.", "charge": "Counter that the attempt added to.", "code": "Failure code.",
	"complete": "Number that ended as complete.", "created_at": "When it was created.", "dependency": "Dependency that jobs call.", "detail": "Details.", "discard": "Discard the jobs instead of queueing them again.",
	"ended_at": "When it ended.", "events": "Events.", "expire_at": "When it expires.", "failed": "Number that failed.", "failure": "Failure of the attempt.", "findings": "Invariants that are broken, with their rows.",
	"fingerprint": "Fingerprint of the error group.", "finished_at": "When it ended.", "generation": "Generation of the job.", "group": "Id of the group.", "healthy": "No invariant is broken.", "id": "Id.",
	"idempotency_key": "Idempotency key of the job.", "job": "Id of the job, or the job itself.", "jobs": "Jobs, or their number.", "kept_at": "When it was last written.", "kind": "Kind of the job.",
	"max_attempts": "Maximum number of attempts; 0 for the policy's.", "message": "What went wrong, in one line.", "name": "Name.", "spec": "The request.", "owner": "Owner.", "priority": "Priority; lower numbers are claimed first.",
	"published_at": "When it was published.", "queue": "Queue of the job.", "queues": "Queues.", "rate": "Rate limit.", "reason": "Why it was done.", "retry_within": "The next attempt is promised to start within this time.",
	"rule": "Retention rule.", "seen_at": "When it was last seen.", "since": "Since when.", "size": "Size in bytes.", "source": "Where it comes from.", "started_at": "When it started.", "state": "State.",
	"story": "Events, in order.", "tag": "Tag.", "tags": "Tags.", "time": "When the event happened.", "token": "Token of the lease.", "took": "How long it took.", "unique_key": "Unique key of the job.", "value": "Value.",
	"version": "Version.", "versions": "Versions of the application.", "why": "Why.", "worker": "Name of the worker.", "workers": "Workers.",
}
