package server

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/ops"
)

// TestEveryReasonOfExplainIsEitherReadableByOwnersOrAHold: a new reason must be sorted into one of the two lists, or an owner would read "it is held".
func TestEveryReasonOfExplainIsEitherReadableByOwnersOrAHold(t *testing.T) {
	source, err := os.ReadFile("../ops/explain.go")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(strings.ReplaceAll(string(source), "\t//", " ")), " ")
	lists := regexp.MustCompile(`Name is one of: (.*?), duty paused; and of holds: (.*?)\. `).FindStringSubmatch(text)
	if lists == nil {
		t.Fatal("ops/explain.go no longer lists the names of reasons")
	}
	names := strings.Split(lists[1], ", ")
	slices.Sort(names)
	want := slices.Sorted(slices.Values(plainReasons))
	if !slices.Equal(names, want) {
		t.Errorf("plainReasons has\n%q\nExplain has\n%q", want, names)
	}
	for _, name := range []string{"throttled", "benign"} {
		if shown := withoutOperators([]ops.Reason{{Name: name, Text: "text"}}); shown[0].Text != "text" {
			t.Errorf("%s: owners read %q", name, shown[0].Text)
		}
	}
}
