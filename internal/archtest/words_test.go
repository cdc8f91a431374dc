package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// instead holds the words that are not ours and the word to say for each. Words that mean something else in Go or SQL
// (done, pending, type, channel, block, clean) are left to the reader's judgement.
var instead = map[string]string{
	"task":      "job",
	"tenant":    "owner",
	"heartbeat": "renew",
	"ack":       "settle",
	"nack":      "settle",
	"fetch":     "claim",
	"fetcher":   "claim",
	"rescue":    "reclaim",
	"rescuer":   "reclaim",
	"reaper":    "reclaim",
	"requeue":   "retry, manual retry or redrive",
	"replay":    "manual retry or redrive",
	"resurrect": "manual retry or redrive",
	"morgue":    "dead letter",
	"graveyard": "dead letter",
	"prune":     "purge",
	"pruner":    "purge",
}

// elsewhere are rooms where a word means something else, with what it means there.
var elsewhere = map[string]string{
	"internal/chaos/powerloss replay": "a log of writes is played back, not a job",
	"internal/chaos/powerloss ack":    "the store's answer to an enqueue, not the end of a lease",
}

// rooms of these names collect whatever nobody found a place for.
var nameless = map[string]bool{"util": true, "utils": true, "common": true, "types": true, "helper": true, "helpers": true, "misc": true, "base": true, "shared": true, "lib": true}

func TestEverybodyUsesTheSameWords(t *testing.T) {
	for _, s := range files(t, ".go", ".sql") {
		report(t, foreignWords(s))
	}
}

func foreignWords(s source) (bad []complaint) {
	if s.file == nil {
		return foreignSQL(s)
	}
	if nameless[s.file.Name.Name] {
		bad = append(bad, s.complain(1, "a package named %s says nothing: name it after what it is about", s.file.Name.Name))
	}
	for _, i := range declaredIn(s.file) {
		bad = append(bad, s.foreign(s.line(i), i.Name)...)
	}
	name := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.path), ".go"), "_test")
	return append(bad, s.foreign(1, name)...)
}

var sqlWord = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

func foreignSQL(s source) (bad []complaint) {
	for n, line := range strings.Split(s.text, "\n") {
		code, _, _ := strings.Cut(line, "--")
		for _, word := range sqlWord.FindAllString(code, -1) {
			bad = append(bad, s.foreign(n+1, word)...)
		}
	}
	return bad
}

func (s source) foreign(line int, name string) (bad []complaint) {
	for _, word := range words(name) {
		one := strings.TrimSuffix(word, "s")
		say, ok := instead[word]
		if !ok {
			word, say = one, instead[one]
		}
		if say == "" || elsewhere[s.room()+" "+word] != "" {
			continue
		}
		bad = append(bad, s.complain(line, "%s: here we do not say %q, say %q (the words are in docs/glossary.md)", name, word, say))
	}
	return bad
}

// words splits a name as people read it: HTTPServerURL is http server url, run_at is run at.
func words(name string) (list []string) {
	runes := []rune(name)
	start := 0
	cut := func(end int) {
		if end > start {
			list = append(list, strings.ToLower(string(runes[start:end])))
		}
		start = end
	}
	for i, r := range runes {
		switch {
		case r == '_' || unicode.IsDigit(r):
			cut(i)
			start = i + 1
		case unicode.IsUpper(r) && i > 0:
			if unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
				cut(i)
			}
		}
	}
	cut(len(runes))
	return list
}

// declaredIn lists the names a file brings into the world. Names it only uses are somebody else's.
func declaredIn(f *ast.File) (idents []*ast.Ident) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			idents = append(idents, n.Name)
		case *ast.TypeSpec:
			idents = append(idents, n.Name)
		case *ast.ValueSpec:
			idents = append(idents, n.Names...)
		case *ast.Field:
			idents = append(idents, n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				idents = append(idents, identsOf(n.Lhs...)...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				idents = append(idents, identsOf(n.Key, n.Value)...)
			}
		}
		return true
	})
	return idents
}

func identsOf(list ...ast.Expr) (idents []*ast.Ident) {
	for _, e := range list {
		if i, ok := e.(*ast.Ident); ok {
			idents = append(idents, i)
		}
	}
	return idents
}

func TestAJobHasExactlyTheFiveStatesOfThePlan(t *testing.T) {
	want := map[string]bool{"queued": true, "processing": true, "complete": true, "failed": true, "cancelled": true}
	text := regexp.MustCompile(`\bState\s*=\s*"([a-z ]+)"`)
	for _, s := range files(t, ".go") {
		if s.room() != "." || s.isTest() {
			continue
		}
		for _, m := range text.FindAllStringSubmatch(s.text, -1) {
			if !want[m[1]] {
				t.Errorf("%s: %q is no state of the plan: a job is queued, processing, complete, failed or cancelled", s.path, m[1])
			}
			delete(want, m[1])
		}
	}
	for state := range want {
		t.Errorf("the root package lacks the state %q", state)
	}
}
