package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apikey"
)

// Earlier, 27 of 160 pages passed on bidi overrides from texts of jobs.
func TestNoPageContainsBidiControlsFromJobs(t *testing.T) {
	const evil = "\u202e\u2066\u009b\u200f"
	s := newScene(t, apikey.Admin, func(column, text string) string {
		switch column {
		case "args", "message", "detail", "stack":
			return text + evil
		}
		return text // a name with such characters is refused
	})
	seen := map[string]bool{}
	next := []string{"/"}
	link := regexp.MustCompile(`href="(/[^"#]*)"`)
	for len(next) > 0 && len(seen) < 120 {
		path := next[0]
		next = next[1:]
		if seen[path] || strings.HasPrefix(path, "/asset") {
			continue
		}
		seen[path] = true
		status, text := s.get(strings.ReplaceAll(path, "&amp;", "&"))
		if status != http.StatusOK {
			continue
		}
		if at := strings.IndexAny(text, evil+"\u202a\u2067\u061c"); at >= 0 {
			t.Errorf("%s: %q", path, text[max(0, at-60):min(len(text), at+20)])
		}
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			next = append(next, found[1])
		}
	}
	if len(seen) < 30 {
		t.Errorf("only %d pages were seen", len(seen))
	}
}
