package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// A source is one Go file, parsed whatever system it is meant for.
type source struct {
	path string // from the root of the repository, with slashes
	text string
	set  *token.FileSet
	file *ast.File

	bubbles bool // the tests of its package run in bubbles of testing/synctest
}

func (s source) room() string { return path.Dir(s.path) }
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }
func (s source) isLaws() bool {
	return s.isTest() || s.room() == "store/storetest" || s.room() == "ops/opstest"
}

func (s source) line(n ast.Node) int { return s.set.Position(n.Pos()).Line }
func (s source) last(n ast.Node) int { return s.set.Position(n.End()).Line }

// parse makes a source of a text, for the real files and for the house's own tests.
func parse(name, text string) (source, error) {
	s := source{path: name, text: text}
	if !strings.HasSuffix(name, ".go") {
		return s, nil
	}
	s.set = token.NewFileSet()
	file, err := parser.ParseFile(s.set, name, text, parser.ParseComments)
	s.file = file
	s.bubbles = strings.Contains(text, `"testing/synctest"`)
	return s, err
}

// root is the folder of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatalf("the house must stand two folders below the root of the repository: %v", err)
	}
	return dir
}

// files reads the files of the root module and of the applications whose names end in one of the endings. Other modules inside keep their own house.
func files(t *testing.T, endings ...string) []source {
	t.Helper()
	dir := root(t)
	var found []source
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		if d.IsDir() {
			return enter(rel, name)
		}
		if !ends(rel, endings) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(rel), string(text))
		found = append(found, s)
		return err
	})
	if err != nil {
		t.Fatalf("the house cannot read the repository: %v", err)
	}
	shareBubbles(found)
	return found
}

// shareBubbles lets every file of a package know that its tests run in bubbles: the one that opens them is often another.
func shareBubbles(found []source) {
	rooms := map[string]bool{}
	for _, s := range found {
		rooms[s.room()] = rooms[s.room()] || s.bubbles
	}
	for i := range found {
		found[i].bubbles = rooms[found[i].room()]
	}
}

// enter answers fs.SkipDir for a folder that is not the root module's.
func enter(rel, name string) error {
	if rel == "." || rel == "apps" {
		return nil
	}
	_, err := os.Stat(filepath.Join(name, "go.mod"))
	if base := filepath.Base(rel); err == nil || base[0] == '.' || base == "testdata" {
		return fs.SkipDir
	}
	return nil
}

func ends(name string, endings []string) bool {
	for _, e := range endings {
		if strings.HasSuffix(name, e) {
			return true
		}
	}
	return false
}
