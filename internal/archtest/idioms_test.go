package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// idioms are phrases that a reader whose second language is English has to read twice, each with what to write instead. They are regular expressions for lower-case
// text; a space matches any white space.
var idioms = []struct{ pattern, instead string }{
	{`somebody`, "name the actor: a worker, an operator, another client, another user"},
	{`nobody`, "name the actor: no worker, no operator, no client"},
	{`anybody`, "name the actor: any caller, any client"},
	{`whoever|whomever`, "name the actor: the worker that, the caller that, the operator who"},
	{`those who`, "name them: the workers that, the callers that"},
	{`trouble; trying again`, `"duty failed, will retry"`},
	{`circuits?`, `"breaker", or "circuit breaker" where the word is introduced`},
	{`sheaf|sheaves`, `"batch of rows"`},
	{`grumbles?|grumbling`, `"throttled log"`},
	{`towns?`, `"demo"`},
	{`(?:is|are|was|were|be|been|being) told`, `"is notified", "is shown", "receives"`},
	{`told apart|tells? \w+ apart|tells? apart`, `"distinguish"`},
	{`stands nowhere`, `"has no state row"`},
	{`the house`, `"the project"`},
	{`run an audit`, "\"run `holdfast doctor`\": an audit log is what people did"},
	{`anew`, `"again"`},
	{`in vain`, `"without effect", "and fails"`},
	{`in earnest`, `"in production", "for real use"`},
	{`believed in`, `"considered alive"`},
	{`what became of`, `"the result of", "the outcome of"`},
	{`goes on|went on|go on`, `"continues"`},
	{`(?:is|are|was|were) away`, `"is unavailable"`},
	{`strangers?`, `"a client without a key", "an unknown sender"`},
	{`tramples?`, `"overloads"`},
}

// idiomsAllowed is a ratchet: how many idioms the files of a folder still contain. A folder that is not listed may contain none. Lower a number when idioms were
// removed; never raise one.
var idiomsAllowed = map[string]int{
	".":                      3,
	"cmd/holdfast":           3,
	"console":                5,
	"docs/design":            1,
	"engine":                 13,
	"failure/breaker":        16,
	"failure/policy":         1,
	"internal/config":        1,
	"internal/opstest":       6,
	"internal/pgtest":        1,
	"kind/httpjob":           1,
	"notify":                 2,
	"notify/mail":            2,
	"notify/nats":            3,
	"notify/sse":             15,
	"notify/webhook":         6,
	"ops":                    11,
	"server":                 10,
	"store/internal/inspect": 3,
	"store/internal/lane":    1,
	"store/internal/sqltext": 1,
	"store/postgres":         1,
	"store/sqlite":           8,
	"store/storetest":        5,
}

// idiomSources are files that quote idioms in order to forbid them.
var idiomSources = []string{"internal/archtest/idioms_test.go", "internal/archtest/self_test.go"}

func TestProseUsesNoIdioms(t *testing.T) {
	found := map[string][]violation{}
	for _, s := range allFiles(t, ".go", ".sql", ".md", ".html", ".js", ".mjs", ".py", ".sh", "Makefile") {
		if !slices.Contains(idiomSources, s.path) {
			found[s.folder()] = append(found[s.folder()], idiomsIn(s)...)
		}
	}
	for folder, bad := range found {
		switch most := idiomsAllowed[folder]; {
		case len(bad) > most:
			t.Errorf("%s has %d idioms, %d are allowed: write plain English", folder, len(bad), most)
			report(t, bad)
		case len(bad) < most:
			t.Logf("%s has %d idioms: lower its line in idiomsAllowed from %d", folder, len(bad), most)
			fallthrough
		default:
			for _, v := range bad {
				t.Log(v)
			}
		}
	}
}

// anyIdiom matches every idiom at once, so that each text is searched only once.
var anyIdiom, eachIdiom = compileIdioms()

func compileIdioms() (combined *regexp.Regexp, each []*regexp.Regexp) {
	var all []string
	for _, i := range idioms {
		pattern := strings.ReplaceAll(i.pattern, " ", `\s+`)
		all = append(all, pattern)
		each = append(each, regexp.MustCompile(`^(?:`+pattern+`)$`))
	}
	return regexp.MustCompile(`\b(?:` + strings.Join(all, "|") + `)\b`), each
}

// idiomsIn finds idioms in the prose of a file.
func idiomsIn(s source) (bad []violation) {
	for _, p := range prose(s) {
		text := strings.ToLower(p.text)
		for _, at := range anyIdiom.FindAllStringIndex(text, -1) {
			phrase := text[at[0]:at[1]]
			if isPartOfName(text, at[0], at[1]) || strings.HasPrefix(phrase, "circuit") && followedByBreaker.MatchString(text[at[1]:]) {
				continue
			}
			for n, pattern := range eachIdiom {
				if pattern.MatchString(phrase) {
					bad = append(bad, s.violation(p.line+strings.Count(text[:at[0]], "\n"), "%q: write %s", strings.Join(strings.Fields(phrase), " "), idioms[n].instead))
					break
				}
			}
		}
	}
	return bad
}

var followedByBreaker = regexp.MustCompile(`^\s+breaker`)

// isPartOfName reports whether a match belongs to a longer name, such as --circuit-window or circuit.go.
func isPartOfName(text string, start, end int) bool {
	joins := func(at, beyond int) bool {
		return at >= 0 && at < len(text) && beyond >= 0 && beyond < len(text) && strings.IndexByte("-/.", text[at]) >= 0 && isWordByte(text[beyond])
	}
	return joins(start-1, start-2) || joins(end, end+1) || start > 1 && text[start-2:start] == "--"
}

func isWordByte(c byte) bool { return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' }

// A passage is a piece of text that people read. Its lines correspond to lines of the file.
type passage struct {
	line int
	text string
}

// prose returns what people read in a file: comments and string literals of Go, comments of SQL, and the whole text of other files without names in code spans.
func prose(s source) []passage {
	switch path.Ext(s.path) {
	case ".go":
		return goProse(s)
	case ".sql":
		return []passage{{1, sqlComment.ReplaceAllString(s.text, "$1")}}
	case ".md":
		return []passage{{1, codeSpan.ReplaceAllString(s.text, "``")}}
	default:
		return []passage{{1, commentMarker.ReplaceAllString(s.text, "$1")}}
	}
}

var (
	sqlComment    = regexp.MustCompile(`(?m)^.*?(?:--(.*))?$`)
	codeSpan      = regexp.MustCompile("`[^`\\s]+`")
	commentMarker = regexp.MustCompile(`(?m)^(\s*)(?://+|\*+|#+)`)
)

// goProse returns the comments and string literals of a Go file. A literal without white space is a name or a key, not prose. A comment group is one passage, so that
// an idiom is found across the end of a line.
func goProse(s source) (found []passage) {
	for _, group := range s.file.Comments {
		start, end := s.set.Position(group.Pos()), s.set.Position(group.End())
		found = append(found, passage{start.Line, commentMarker.ReplaceAllString(s.text[start.Offset:min(end.Offset, len(s.text))], "$1")})
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING && strings.ContainsAny(literal.Value, " \n\t") {
			found = append(found, passage{s.line(literal), literal.Value})
		}
		return true
	})
	return found
}
