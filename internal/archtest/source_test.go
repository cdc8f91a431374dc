package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A source is one file of the repository. Go files are parsed whatever their build constraints.
type source struct {
	path string // from the root of the repository, with slashes
	text string
	set  *token.FileSet
	file *ast.File // nil unless it is a Go file

	unchecked bool // it belongs to a module that is not in checkedModules, such as bench
	synctest  bool // the tests of its package use testing/synctest
}

func (s source) folder() string { return path.Dir(s.path) }
func (s source) isTest() bool   { return strings.HasSuffix(s.path, "_test.go") }

// isTestCode also covers the conformance tests, which are ordinary packages so that every store can run them.
func (s source) isTestCode() bool {
	return s.isTest() || s.folder() == "store/storetest" || s.folder() == "ops/opstest"
}

func (s source) line(n ast.Node) int { return s.set.Position(n.Pos()).Line }
func (s source) last(n ast.Node) int { return s.set.Position(n.End()).Line }

// parse makes a source of a text: of a file, or of an example in this package's own tests.
func parse(name, text string) (source, error) {
	s := source{path: name, text: text}
	if !strings.HasSuffix(name, ".go") {
		return s, nil
	}
	s.set = token.NewFileSet()
	file, err := parser.ParseFile(s.set, name, text, parser.ParseComments)
	s.file = file
	s.synctest = strings.Contains(text, `"testing/synctest"`)
	return s, err
}

// root returns the folder of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatalf("archtest must be two folders below the root of the repository: %v", err)
	}
	return dir
}

// checkedModules are the folders of the modules whose code keeps all rules. Other modules, such as bench, keep those about words and names of tests.
var checkedModules = []string{".", "apps", "cmd", "telemetry", "notify/mail", "notify/nats", "internal/interop"}

// files returns the files of the checked modules whose names end in one of the endings.
func files(t *testing.T, endings ...string) (found []source) {
	t.Helper()
	for _, s := range allFiles(t, endings...) {
		if !s.unchecked && (s.file == nil || !ast.IsGenerated(s.file)) { // a generator has its own style
			found = append(found, s)
		}
	}
	return found
}

// allFiles returns the files of every module of the repository whose names end in one of the endings.
func allFiles(t *testing.T, endings ...string) (found []source) {
	t.Helper()
	all, err := repository()
	if err != nil {
		t.Fatalf("archtest cannot read the repository: %v", err)
	}
	for _, s := range all {
		if hasEnding(s.path, endings) {
			found = append(found, s)
		}
	}
	return found
}

// repository reads and parses every text file of the repository, once for all tests.
var repository = sync.OnceValues(func() (found []source, err error) {
	dir, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	var modules []string // folders of the modules that are not checked
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			return enter(rel)
		}
		if d.Name() == "go.mod" && !slices.Contains(checkedModules, path.Dir(rel)) {
			modules = append(modules, path.Dir(rel))
		}
		if !hasEnding(rel, textEndings) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		s, err := parse(rel, string(text))
		found = append(found, s)
		return err
	})
	markModules(found, modules)
	shareSynctest(found)
	return found, err
})

var textEndings = []string{".go", ".sql", ".md", ".html", ".js", ".mjs", ".py", ".sh", ".json", ".mod", "Makefile"}

// enter returns fs.SkipDir for folders whose files were not written here or are test data.
func enter(rel string) error {
	base := path.Base(rel)
	if rel != "." && base[0] == '.' || base == "testdata" || base == "node_modules" || rel == "bin" {
		return fs.SkipDir
	}
	return nil
}

func markModules(found []source, modules []string) {
	for i := range found {
		for _, folder := range modules {
			found[i].unchecked = found[i].unchecked || under(found[i].path, folder)
		}
	}
}

// shareSynctest marks every file of a package whose tests use testing/synctest: often only one of the files imports it.
func shareSynctest(found []source) {
	folders := map[string]bool{}
	for _, s := range found {
		folders[s.folder()] = folders[s.folder()] || s.synctest
	}
	for i := range found {
		found[i].synctest = folders[found[i].folder()]
	}
}

func hasEnding(name string, endings []string) bool {
	for _, e := range endings {
		if strings.HasSuffix(name, e) {
			return true
		}
	}
	return false
}
