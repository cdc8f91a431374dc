package archtest

import (
	"errors"
	"strings"
	"testing"
)

// TestTheHouseSeesWhatItLooksFor shows each check something broken and something sound.
func TestTheHouseSeesWhatItLooksFor(t *testing.T) {
	cases := []struct {
		law   string
		check func(source) []complaint
		path  string
		bad   string
		good  string
	}{
		{"the root imports nothing of ours", badImports, "x.go", "package holdfast\nimport _ \"" + module + "/failure\"", "package holdfast\nimport _ \"time\""},
		{"the engine knows no store", badImports, "engine/x.go", "package engine\nimport _ \"" + module + "/store/sqlite\"", "package engine\nimport _ \"" + module + "/failure\""},
		{"the engine speaks no HTTP", badImports, "engine/x.go", "package engine\nimport _ \"net/http\"", "package engine\nimport _ \"" + module + "\""},
		{"stores do not know each other", badImports, "store/sqlite/x.go", "package sqlite\nimport _ \"" + module + "/store/postgres\"", "package sqlite\nimport _ \"zombiezen.com/go/sqlite\""},
		{"decisions know no driver", badImports, "failure/x.go", "package failure\nimport _ \"github.com/jackc/pgx/v5\"", "package failure\nimport _ \"" + module + "\""},
		{"a new folder needs a line in the plan", badImports, "garage/x.go", "package garage", ""},
		{"a long function", tooBig, "x.go", "package x\nfunc f() {\n" + strings.Repeat("_ = 1\n", functionLines) + "}\n", "package x\nfunc f() {\n" + strings.Repeat("_ = 1\n", functionLines-2) + "}\n"},
		{"a long file", tooBig, "x.sql", strings.Repeat("\n", fileLines+1), strings.Repeat("\n", fileLines)},
		{"deep nesting", tooBig, "x.go", "package x\nfunc f() { for { if true { for { if true { if true { } } } } } }", "package x\nfunc f() { for { if true { for { if true { } else if false { } } } } }"},
		{"many parameters", tooBig, "x.go", "package x\nfunc f(a, b, c, d, e, f int) {}", "package x\nfunc f(a, b, c, d, e int) {}"},
		{"a wide interface", tooBig, "x.go", "package x\ntype i interface { a(); b(); c(); d(); e(); f(); g(); h(); i() }", "package x\ntype i interface { a(); b(); c(); d(); e(); f(); g(); h(); error }"},
		{"a foreign word in Go", foreignWords, "x.go", "package x\nvar maxTasks int", "package x\nvar multitasking, acknowledged int"},
		{"a foreign word in SQL", foreignWords, "x.sql", "SELECT tenant_id FROM job", "SELECT owner FROM job -- what others call a tenant"},
		{"a foreign word in a file's name", foreignWords, "engine/heartbeat.go", "package engine", ""},
		{"a package without a subject", foreignWords, "util/x.go", "package util", "package backoff"},
		{"a skipped test", skipsAndSleeps, "x_test.go", "package x\nfunc f(t *testing.T) { t.Skip() }", "package x\nfunc f(t *testing.T) { t.Fatal() }"},
		{"a sleeping test", skipsAndSleeps, "x_test.go", "package x\nfunc f() { time.Sleep(1) }", "package x\nimport _ \"testing/synctest\"\nfunc f() { time.Sleep(1) }"},
		{"a note for later", notes, "x.sql", "-- TO" + "DO", "-- done"},
		{"a long receiver", names, "x.go", "package x\nfunc (store s) Claim() {}", "package x\nfunc (s store) Claim() {}"},
		{"a getter", names, "x.go", "package x\nfunc (s store) GetJob() {}", "package x\nfunc (s store) Getter() {}"},
		{"an exported thing without a word", undocumented, "x.go", "package x\nfunc Do() {}", "package x\n// Do does.\nfunc Do() {}"},
		{"a decision that looks at the clock", impure, "failure/x.go", "package failure\nvar t = time.Now()", "package failure\nvar d = time.Second"},
		{"a statement without a reason", unexplained, "x.sql", "-- name: a\nSELECT 1", "-- name: a\n-- One is enough.\nSELECT 1"},
	}
	for _, c := range cases {
		t.Run(c.law, func(t *testing.T) {
			if bad := c.check(read(t, c.path, c.bad)); len(bad) != 1 {
				t.Errorf("it should be seen once, was %d times: %v", len(bad), bad)
			}
			if c.good == "" {
				return
			}
			if bad := c.check(read(t, c.path, c.good)); len(bad) != 0 {
				t.Errorf("what is sound was taken for broken: %v", bad)
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

func TestAnExampleThatDriftsFromItsPageIsSeen(t *testing.T) {
	file := func(string) (string, error) {
		return "package main\n\nfunc main() {\n\t// README start\n\tif true {\n\t\trun()\n\t}\n\t// README end\n}\n", nil
	}
	page := func(code string) source {
		return source{path: "README.md", text: "# x\n<!-- example: a.go -->\n```go\n" + code + "\n```\n"}
	}
	if bad := outdated(page("if true {\n\trun()\n}"), file); len(bad) != 0 {
		t.Errorf("the same code was taken for another: %v", bad)
	}
	if bad := outdated(page("walk()"), file); len(bad) != 1 {
		t.Errorf("other code was not seen: %v", bad)
	}
	if bad := outdated(page("run()"), func(string) (string, error) { return "", errors.New("no such file") }); len(bad) != 1 {
		t.Errorf("a missing example was not seen: %v", bad)
	}
}
