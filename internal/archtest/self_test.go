package archtest

import (
	"errors"
	"strings"
	"testing"
)

// TestEachCheckFindsItsViolation runs each check on a text that breaks its rule and on one that does not.
func TestEachCheckFindsItsViolation(t *testing.T) {
	cases := []struct {
		rule  string
		check func(source) []violation
		path  string
		bad   string
		good  string
	}{
		{"the root imports no other package of the repository", badImports, "x.go", "package holdfast\nimport _ \"" + module + "/failure\"", "package holdfast\nimport _ \"time\""},
		{"the engine imports no store", badImports, "engine/x.go", "package engine\nimport _ \"" + module + "/store/sqlite\"", "package engine\nimport _ \"" + module + "/failure\""},
		{"the engine does not import net/http", badImports, "engine/x.go", "package engine\nimport _ \"net/http\"", "package engine\nimport _ \"" + module + "\""},
		{"stores do not import each other", badImports, "store/sqlite/x.go", "package sqlite\nimport _ \"" + module + "/store/postgres\"", "package sqlite\nimport _ \"zombiezen.com/go/sqlite\""},
		{"decisions import no database driver", badImports, "failure/x.go", "package failure\nimport _ \"github.com/jackc/pgx/v5\"", "package failure\nimport _ \"" + module + "\""},
		{"a new folder needs an import rule", badImports, "garage/x.go", "package garage", ""},
		{"a long function", tooBig, "x.go", "package x\nfunc f() {\n" + strings.Repeat("_ = 1\n", functionLines) + "}\n", "package x\nfunc f() {\n" + strings.Repeat("_ = 1\n", functionLines-2) + "}\n"},
		{"deep nesting", tooBig, "x.go", "package x\nfunc f() { for { if true { for { if true { if true { } } } } } }", "package x\nfunc f() { for { if true { for { if true { } else if false { } } } } }"},
		{"many parameters", tooBig, "x.go", "package x\nfunc f(a, b, c, d, e, f int) {}", "package x\nfunc f(a, b, c, d, e int) {}"},
		{"a wide interface", tooBig, "x.go", "package x\ntype i interface { a(); b(); c(); d(); e(); f(); g(); h(); i(); j(); k(); l(); m() }", "package x\ntype i interface { a(); b(); c(); d(); e(); f(); g(); h(); error }"},
		{"a synonym in Go", synonymsIn, "x.go", "package x\nvar maxTasks int", "package x\nvar multitasking, acknowledged int"},
		{"a synonym in SQL", synonymsIn, "x.sql", "SELECT tenant_id FROM job", "SELECT owner FROM job -- also called a tenant"},
		{"a synonym in a file name", synonymsIn, "engine/heartbeat.go", "package engine", ""},
		{"a vague package name", synonymsIn, "util/x.go", "package util", "package backoff"},
		{"a skipped test", skipsAndSleeps, "x_test.go", "package x\nfunc f(t *testing.T) { t.Skip() }", "package x\nfunc f(t *testing.T) { t.Fatal() }"},
		{"a sleeping test", skipsAndSleeps, "x_test.go", "package x\nfunc f() { time.Sleep(1) }", "package x\nimport _ \"testing/synctest\"\nfunc f() { time.Sleep(1) }"},
		{"a note for later", notes, "x.sql", "-- TO" + "DO", "-- done"},
		{"a long receiver", names, "x.go", "package x\nfunc (store s) Claim() {}", "package x\nfunc (s store) Claim() {}"},
		{"a getter", names, "x.go", "package x\nfunc (s store) GetJob() {}", "package x\nfunc (s store) Getter() {}"},
		{"an exported name without a doc comment", undocumented, "x.go", "package x\nfunc Do() {}", "package x\n// Do does.\nfunc Do() {}"},
		{"a decision that reads the clock", impure, "failure/x.go", "package failure\nvar t = time.Now()", "package failure\nvar d = time.Second"},
		{"an agentless subject in a comment", idiomsIn, "x.go", "package x\n\n// Nobody reads it.\nvar a int", "package x\n\n// No worker reads it.\nvar nobody int"},
		{"an idiom across two lines of a comment", idiomsIn, "x.go", "package x\n\n// The worker is\n// told of it.\nvar a int", "package x\n\n// The worker is notified of it.\nvar a int"},
		{"an idiom in a string", idiomsIn, "x.go", "package x\n\nvar a = \"somebody else holds it\"", "package x\n\nvar a = \"somebody\""},
		{"circuit without breaker", idiomsIn, "x.md", "The circuit is open.", "The circuit breaker is open: `circuit`, `--circuit-window 5`, CIRCUIT_WINDOW."},
		{"an idiom in a page", idiomsIn, "x.html", "<p>Whoever reads this</p>", "<p>The reader</p>"},
		{"an idiom in a comment of SQL", idiomsIn, "x.sql", "SELECT 1 -- decided anew", "SELECT whoever -- decided again"},
		{"a statement without a reason", unexplained, "x.sql", "-- name: a\nSELECT 1", "-- name: a\n-- One is enough.\nSELECT 1"},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			if bad := c.check(read(t, c.path, c.bad)); len(bad) != 1 {
				t.Errorf("found %d violations, want 1: %v", len(bad), bad)
			}
			if c.good == "" {
				return
			}
			if bad := c.check(read(t, c.path, c.good)); len(bad) != 0 {
				t.Errorf("found violations in a correct text: %v", bad)
			}
		})
	}
}

func read(t *testing.T, path, text string) source {
	t.Helper()
	s, err := parse(path, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestATestThatDoesNotExistIsFound(t *testing.T) {
	tests := []string{"TestAClaim", "TestLongRuns"}
	for text, want := range map[string]int{"see `TestAClaim`": 0, "see `TestAClaims`": 1, "see `TestLong`": 1, "TestMain": 0} {
		if bad := unknownTests(source{path: "docs/x.md", text: text}, tests); len(bad) != want {
			t.Errorf("%q: %v", text, bad)
		}
	}
	if bad := unknownTests(source{path: "Makefile", text: "-run 'TestLong|TestShort'"}, tests); len(bad) != 1 {
		t.Errorf("the Makefile: %v", bad)
	}
}

func TestAnExampleThatDiffersFromItsPageIsFound(t *testing.T) {
	file := func(string) (string, error) {
		return "package main\n\nfunc main() {\n\t// README start\n\tif true {\n\t\trun()\n\t}\n\t// README end\n}\n", nil
	}
	page := func(code string) source {
		return source{path: "README.md", text: "# x\n<!-- example: a.go -->\n```go\n" + code + "\n```\n"}
	}
	outdated := func(s source, read func(string) (string, error)) []violation {
		_, bad := synced(s, read)
		return bad
	}
	if bad := outdated(page("if true {\n\trun()\n}"), file); len(bad) != 0 {
		t.Errorf("equal code was reported as different: %v", bad)
	}
	if bad := outdated(page("walk()"), file); len(bad) != 1 {
		t.Errorf("different code was not found: %v", bad)
	}
	if bad := outdated(page("run()"), func(string) (string, error) { return "", errors.New("no such file") }); len(bad) != 1 {
		t.Errorf("a missing example was not found: %v", bad)
	}
	if text, _ := synced(page("walk()"), file); text != page("if true {\n\trun()\n}").text {
		t.Errorf("the page was not updated:\n%s", text)
	}
	part := source{path: "docs/x.md", text: "<!-- example: a.go two -->\n```go\nb()\n```\n```go\nloose()\n```\n"}
	parts := func(string) (string, error) {
		return "// README start one\na()\n// README end\n// README start two\nb()\n// README end\n", nil
	}
	if bad := outdated(part, parts); len(bad) != 0 {
		t.Errorf("a part of a file: %v", bad)
	}
	if bad := outdated(part, file); len(bad) != 1 {
		t.Errorf("a missing part was not found: %v", bad)
	}
	if bad := looseCode(part); len(bad) != 1 || bad[0].line != 5 {
		t.Errorf("code without a file: %v", bad)
	}
}

func TestABrokenLinkIsFound(t *testing.T) {
	file := func(name string) (string, error) {
		if name != "docs/b.md" {
			return "", errors.New("no such file")
		}
		return "# One\n\n## Two: `words`, and (more)\n", nil
	}
	for text, want := range map[string]int{
		"[b](b.md)": 0, "[b](b.md#one)": 0, "[b](b.md#two-words-and-more)": 0, "[b](b.md#three)": 1, "[c](c.md)": 1, "[x](https://example.org/c.md)": 0, "```\n[c](c.md)\n```\n": 0,
	} {
		if bad := brokenLinks(source{path: "docs/a.md", text: text}, file); len(bad) != want {
			t.Errorf("%q: %v", text, bad)
		}
	}
}
