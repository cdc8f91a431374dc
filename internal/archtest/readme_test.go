package archtest

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A page names the file its code is taken from, and the part if the file has several:
//
//	<!-- example: examples/welcome/main.go -->
//	<!-- example: docs/handlers_test.go checkpoint -->
//	```go
//
// The block must equal the text of that file between a line "// README start" (or "// README start checkpoint") and the next line "// README end", or the
// whole file where there are no such lines. `go test ./internal/archtest -run CodeInThePages -update` copies the code into the pages.
var example = regexp.MustCompile("(?sm)^<!-- example: (\\S+)(?: (\\S+))? -->\n+```[a-z]*\n(.*?)^```$")

var anyMarker = regexp.MustCompile(`(?m)^<!-- example: (\S+)(?: \S+)? -->`)

var update = flag.Bool("update", false, "copy the code of the examples into the pages")

func TestTheCodeInThePagesIsTheCodeThatRuns(t *testing.T) {
	for _, s := range files(t, ".md") {
		text, bad := synced(s, func(name string) (string, error) {
			text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
			return string(text), err
		})
		if *update && text != s.text {
			if err := os.WriteFile(filepath.Join(root(t), filepath.FromSlash(s.path)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		report(t, bad)
	}
}

// synced returns the text of a page with the code of its examples, and where that differs from the page.
func synced(s source, read func(string) (string, error)) (text string, bad []violation) {
	blocks := example.FindAllStringSubmatchIndex(s.text, -1)
	if markers := len(anyMarker.FindAllString(s.text, -1)); markers != len(blocks) {
		bad = append(bad, s.violation(1, "%d example markers but %d code blocks: put each marker on the line before its block", markers, len(blocks)))
	}
	from := 0
	for _, at := range blocks {
		name, part, shown := s.text[at[2]:at[3]], "", s.text[at[6]:at[7]]
		if at[4] >= 0 {
			part = s.text[at[4]:at[5]]
		}
		line := 1 + strings.Count(s.text[:at[0]], "\n")
		code, err := read(name)
		if err == nil && part != "" && !strings.Contains(code, "// README start "+part+"\n") {
			err = fmt.Errorf("it has no line // README start %s", part)
		}
		if err != nil {
			bad = append(bad, s.violation(line, "the example %s cannot be read: %v", name, err))
			continue
		}
		want := excerpt(code, part)
		if strings.TrimSpace(shown) != want {
			bad = append(bad, s.violation(line, "the code differs from %s: copy this into the block (or run the test with -update):\n%s", name, want))
		}
		text += s.text[from:at[6]] + want + "\n"
		from = at[7]
	}
	return text + s.text[from:], bad
}

var goBlock = regexp.MustCompile("(?m)^```go$")

func TestEveryGoBlockOfThePagesIsTakenFromAFile(t *testing.T) {
	for _, s := range files(t, ".md") {
		if s.path == "README.md" || s.folder() == "docs" {
			report(t, looseCode(s))
		}
	}
}

// looseCode finds blocks of Go without a marker, which no compiler sees.
func looseCode(s source) (bad []violation) {
	taken := example.FindAllStringIndex(s.text, -1)
	for _, at := range goBlock.FindAllStringIndex(s.text, -1) {
		inside := slices.ContainsFunc(taken, func(e []int) bool { return e[0] <= at[0] && at[1] <= e[1] })
		if !inside {
			bad = append(bad, s.violation(1+strings.Count(s.text[:at[0]], "\n"), "Go code that is not compiled: put it into a file, such as docs/%s_test.go, and name the file with <!-- example: ... -->", strings.TrimSuffix(path.Base(s.path), ".md")))
		}
	}
	return bad
}

// excerpt returns the marked part without its indentation.
func excerpt(text, part string) string {
	_, after, found := strings.Cut(text, strings.TrimSuffix("// README start "+part, " ")+"\n")
	if found {
		text, _, _ = strings.Cut(after, "// README end")
	}
	lines := strings.Split(strings.Trim(text, "\n\t "), "\n")
	if found {
		lines = strings.Split(strings.TrimRight(strings.Trim(text, "\n"), "\t \n"), "\n")
	}
	indent := len(lines[0]) - len(strings.TrimLeft(lines[0], "\t"))
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, strings.Repeat("\t", indent))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
