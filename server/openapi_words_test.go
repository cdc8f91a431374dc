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

// rooms are the folders of the packages with JSON types.
var rooms = []string{"..", "../api", "../ops", "../apikey", "../duty", "../schedule", "../failure/redrive", "../failure/breaker", "../notify/subscription"}

// wordsOf reads the comments of structs and their fields, which become the descriptions in the document.
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
