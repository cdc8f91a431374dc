package archtest

import (
	"go/ast"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestTestsNeitherSkipNorSleep(t *testing.T) {
	for _, s := range files(t, ".go") {
		if s.isTestCode() {
			report(t, skipsAndSleeps(s))
		}
	}
}

// skipsAndSleeps finds tests that skip or sleep. A test may sleep in a package that uses testing/synctest, where the time is virtual. A rapid.T may skip: it
// discards one generated step and generates another.
func skipsAndSleeps(s source) (bad []violation) {
	generated := regexp.MustCompile(`\b(\w+) \*rapid\.T\b`).FindStringSubmatch(s.text)
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		f, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		on, _ := f.X.(*ast.Ident)
		switch {
		case on == nil || generated != nil && on.Name == generated[1]:
		case on.Name == "time" && f.Sel.Name == "Sleep" && !s.synctest:
			bad = append(bad, s.violation(s.line(n), "a test must not sleep: wait for the event itself, inject the time, or use testing/synctest"))
		case len(on.Name) <= 2 && (f.Sel.Name == "Skip" || f.Sel.Name == "Skipf" || f.Sel.Name == "SkipNow"):
			bad = append(bad, s.violation(s.line(n), "a test must not skip itself: provide what it needs, or fail and say what is missing"))
		}
		return true
	})
	return bad
}

func TestTheCodeHasNoNotesForLater(t *testing.T) {
	for _, s := range files(t, ".go", ".sql", ".md", "Makefile", ".sh") {
		report(t, notes(s))
	}
}

var note = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)

func notes(s source) (bad []violation) {
	for n, line := range strings.Split(s.text, "\n") {
		if word := note.FindString(line); word != "" {
			bad = append(bad, s.violation(n+1, "%s: do it now, or file an issue and leave no note here", word))
		}
	}
	return bad
}

func TestNoFileNamesAPathOfThisMachine(t *testing.T) {
	places := []string{root(t)}
	if home, err := os.UserHomeDir(); err == nil {
		places = append(places, home)
	}
	for _, s := range files(t, ".go", ".sql", ".md", "Makefile", ".sh", ".json", ".mod") {
		for _, place := range places {
			report(t, machinePaths(s, place))
		}
	}
}

// machinePaths finds lines that contain a path of this machine. A path with fewer than two separators, such as /src, is too common and is not searched for.
func machinePaths(s source, place string) (bad []violation) {
	if strings.Count(place, "/")+strings.Count(place, `\`) < 2 {
		return nil
	}
	for n, line := range strings.Split(s.text, "\n") {
		if strings.Contains(line, place) {
			bad = append(bad, s.violation(n+1, "the path %s exists on this machine only: make it relative, or a setting", place))
		}
	}
	return bad
}

func TestReceiversAreShortAndExportedNamesAreDocumented(t *testing.T) {
	for _, s := range files(t, ".go") {
		report(t, names(s))
		if !s.isTest() && s.file.Name.Name != "main" {
			report(t, undocumented(s))
		}
	}
}

func names(s source) (bad []violation) {
	for _, decl := range s.file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv == nil {
			continue
		}
		if r := f.Recv.List[0]; len(r.Names) > 0 && utf8.RuneCountInString(r.Names[0].Name) > 1 && r.Names[0].Name != "id" {
			bad = append(bad, s.violation(s.line(f), "the receiver %s of %s: use one letter (only an ID may be id)", r.Names[0].Name, f.Name.Name))
		}
		if rest, ok := strings.CutPrefix(f.Name.Name, "Get"); ok && rest != "" && unicode.IsUpper(rune(rest[0])) {
			bad = append(bad, s.violation(s.line(f), "%s: name it %s, without Get", f.Name.Name, rest))
		}
	}
	return bad
}

// undocumented finds exported functions and types without a doc comment. Methods are not checked: the contract of a store's methods is written once, at the role
// interface.
func undocumented(s source) (bad []violation) {
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() && d.Doc == nil {
				bad = append(bad, s.violation(s.line(d), "%s is exported and has no doc comment: write its contract", d.Name.Name))
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && t.Name.IsExported() && t.Doc == nil && d.Doc == nil {
					bad = append(bad, s.violation(s.line(t), "%s is exported and has no doc comment: write its contract", t.Name.Name))
				}
			}
		}
	}
	return bad
}

func TestEverySQLStatementHasAReason(t *testing.T) {
	for _, s := range files(t, ".sql") {
		report(t, unexplained(s))
	}
}

func unexplained(s source) (bad []violation) {
	lines := strings.Split(s.text, "\n")
	for n, line := range lines {
		if strings.HasPrefix(line, "-- name: ") && (n+1 == len(lines) || !strings.HasPrefix(lines[n+1], "-- ")) {
			bad = append(bad, s.violation(n+1, "%s: the next line must be a comment that gives the reason for the form of the statement", strings.TrimPrefix(line, "-- ")))
		}
	}
	return bad
}
