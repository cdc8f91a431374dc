package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A page names the file its code is taken from:
//
//	<!-- example: examples/welcome/main.go -->
//	```go
//
// The block must equal the text of that file between a line "// README start" and a line "// README end", or the
// whole file where there are no such lines. For examples/welcome/main.go#charge the first line is "// README start charge".
var example = regexp.MustCompile("(?sm)^<!-- example: (\\S+) -->\n+```[a-z]*\n(.*?)\n```$")

var anyMarker = regexp.MustCompile(`(?m)^<!-- example: (\S+) -->`)

func TestTheCodeInThePagesIsTheCodeThatRuns(t *testing.T) {
	for _, s := range files(t, ".md") {
		report(t, outdated(s, func(name string) (string, error) {
			text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
			return string(text), err
		}))
	}
}

func outdated(s source, read func(string) (string, error)) (bad []violation) {
	blocks := example.FindAllStringSubmatchIndex(s.text, -1)
	if markers := len(anyMarker.FindAllString(s.text, -1)); markers != len(blocks) {
		bad = append(bad, s.violation(1, "%d example markers but %d code blocks: put each marker on the line before its block", markers, len(blocks)))
	}
	for _, at := range blocks {
		name, shown := s.text[at[2]:at[3]], s.text[at[4]:at[5]]
		line := 1 + strings.Count(s.text[:at[0]], "\n")
		file, part, _ := strings.Cut(name, "#")
		text, err := read(file)
		if err != nil {
			bad = append(bad, s.violation(line, "the example %s cannot be read: %v", name, err))
			continue
		}
		if want := excerpt(text, part); strings.TrimSpace(shown) != want {
			bad = append(bad, s.violation(line, "the code differs from %s: copy this into the block:\n%s", name, want))
		}
	}
	return bad
}

// excerpt returns the marked part without its indentation.
func excerpt(text, part string) string {
	_, after, found := strings.Cut(text, strings.TrimSpace("// README start "+part)+"\n")
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
