package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTestsThatPagesAndTheMakefileNameExist finds names of tests that were renamed: a page would name a proof that does not exist, and the Makefile would run or skip
// the wrong tests without a message.
func TestTestsThatPagesAndTheMakefileNameExist(t *testing.T) {
	var tests []string
	for _, s := range allFiles(t, ".go") {
		tests = append(tests, testsIn(s)...)
	}
	for _, s := range allFiles(t, ".md", "Makefile") {
		report(t, unknownTests(s, tests))
	}
}

func testsIn(s source) (names []string) {
	for _, decl := range s.file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && testName.MatchString(f.Name.Name) {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

var testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)

// unknownTests finds names of tests that are not declared. The Makefile may name the beginning of a name.
func unknownTests(s source, tests []string) (bad []violation) {
	for n, line := range strings.Split(s.text, "\n") {
		for _, name := range testName.FindAllString(line, -1) {
			known := false
			for _, declared := range tests {
				known = known || declared == name || s.path == "Makefile" && strings.HasPrefix(declared, name)
			}
			if !known && (s.path == "Makefile" || strings.Contains(line, "`"+name+"`")) {
				bad = append(bad, s.violation(n+1, "there is no test %s: it was renamed or removed", name))
			}
		}
	}
	return bad
}

// TestFilesThatTheMakefileNamesExist checks the Go files in the Makefile, such as those whose tests run without the race detector.
func TestFilesThatTheMakefileNamesExist(t *testing.T) {
	for _, s := range files(t, "Makefile") {
		for _, name := range regexp.MustCompile(`[\w/]+\.go\b`).FindAllString(s.text, -1) {
			if _, err := os.Stat(filepath.Join(root(t), filepath.FromSlash(name))); err != nil {
				t.Errorf("%s names %s, which does not exist", s.path, name)
			}
		}
	}
}
