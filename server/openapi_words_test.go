package server

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

// rooms are where the types that travel are written, and what is said about them.
var rooms = []string{"..", "../api", "../ops", "../apikey", "../duty", "../schedule", "../failure/redrive", "../failure/breaker", "../notify/subscription"}

// wordsOf are the comments of structs and of their fields, so that the document says what the code says.
func wordsOf(t *testing.T) map[string]string {
	t.Helper()
	words := map[string]string{}
	for _, room := range rooms {
		wordsOfRoom(t, words, room)
	}
	return words
}

func wordsOfRoom(t *testing.T, words map[string]string, room string) {
	t.Helper()
	files := token.NewFileSet()
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
}

func wordsOfType(words map[string]string, room string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		of := spec.(*ast.TypeSpec)
		fields, ok := of.Type.(*ast.StructType)
		if !ok || !of.Name.IsExported() {
			continue
		}
		for _, f := range fields.Fields.List {
			for _, name := range f.Names {
				words[room+"."+of.Name.Name+"."+name.Name] = lineOf(f)
			}
		}
		about := of.Doc
		if about == nil && len(d.Specs) == 1 {
			about = d.Doc
		}
		words[room+"."+of.Name.Name] = unbroken(about.Text())
	}
}

// lineOf is what is said about a field. A few words above it are the title of a section.
func lineOf(f *ast.Field) string {
	above := unbroken(f.Doc.Text())
	if len(strings.Fields(above)) <= 7 {
		above = ""
	}
	return strings.TrimSpace(above + " " + unbroken(f.Comment.Text()))
}

// unbroken is a comment on one line.
func unbroken(text string) string { return strings.Join(strings.Fields(text), " ") }
