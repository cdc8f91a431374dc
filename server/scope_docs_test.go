package server

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// scopeTable is the table of permissions as docs/security.md shows it: routes with the same permissions in one row.
func scopeTable(s *Server) string {
	at := map[string]string{}
	for _, m := range s.routes {
		at[m.name] = m.tag
	}
	names := map[row][]string{}
	for name, r := range gateTable {
		names[r] = append(names[r], name)
	}
	rows := slices.SortedFunc(maps.Keys(names), func(a, b row) int {
		return cmp.Or(cmp.Compare(len(b.scopes), len(a.scopes)), cmp.Compare(a.scopes, b.scopes), cmp.Compare(b.bound, a.bound))
	})
	bound := map[string]string{"job": "its own jobs", "group": "its own groups", "list": "what is its owner's", "": "no"}
	mark := func(r row, scope string) string {
		if strings.Contains(r.scopes, scope) {
			return "yes"
		}
		return "–"
	}
	var b strings.Builder
	b.WriteString("| viewer | worker | operator | admin | viewer or operator bound to an owner | routes |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		list := names[r]
		slices.SortFunc(list, func(x, y string) int { return cmp.Or(cmp.Compare(at[x], at[y]), cmp.Compare(x, y)) })
		b.WriteString("| " + strings.Join([]string{mark(r, "v"), mark(r, "w"), mark(r, "o"), mark(r, "a"), bound[r.bound], strings.Join(list, ", ")}, " | ") + " |\n")
	}
	open := slices.DeleteFunc(slices.Sorted(maps.Keys(unguarded)), func(pattern string) bool { return !strings.HasPrefix(pattern, "GET ") || pattern == "GET /metrics" })
	b.WriteString("\nWithout a key: `" + strings.ReplaceAll(strings.Join(open, "`, `"), "GET ", "") + "`. `/metrics` asks for a viewer, an operator or an admin.\n")
	return b.String()
}

func TestTheTableOfScopesInTheDocsIsUpToDate(t *testing.T) {
	const page, from, to = "../docs/security.md", "<!-- scopes: written by go test ./server -run TableOfScopes -update -->\n", "<!-- scopes end -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), from)
	shown, after, ends := strings.Cut(rest, to)
	if !ok || !ends {
		t.Fatalf("%s has no place for the table of scopes: put %q and %q into it", page, from, to)
	}
	want := scopeTable(newGateScene(t).srv)
	if shown == want {
		return
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+from+want+to+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s shows another table of scopes than the gate is tested by: look at the difference, then run go test ./server -run TableOfScopes -update\nshown:\n%s\nis:\n%s", page, shown, want)
}
