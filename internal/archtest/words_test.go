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

// synonyms maps words that identifiers and file names must not use to the word of docs/glossary.md. Words that mean something else in Go or SQL (done, pending, type,
// channel, block, clean) are not listed. Idioms in prose are in idioms_test.go.
var synonyms = map[string]string{
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
	"conclude":  "advance groups",
	"breach":    "missed deadline",
	"tally":     "counts",
	"room":      "remaining, or capacity",
	"shelf":     "archive",
	"sheaf":     "batch",
	"grumble":   "problem",
}

// otherMeanings lists folders in which a word of the table means something else, with that meaning.
var otherMeanings = map[string]string{
	"cmd/internal/chaos/powerloss replay": "a log of writes is replayed, not a job",
	"cmd/internal/chaos/powerloss ack":    "the store's answer to an enqueue, not the end of a lease",
	"apps/fetchbox/fetch fetch":           "a resource is downloaded, no job is claimed",
	"apps/fetchbox/fetch fetcher":         "what downloads resources",
	"apps/fetchbox fetch":                 "a resource is downloaded, no job is claimed",
	"apps/fetchbox fetcher":               "what downloads resources",
	"apps/fetchbox task":                  "the job of one resource: a job of FetchBox is a group of them",
	"apps/fetchbox/work fetch":            "a resource is downloaded, no job is claimed",
	"apps/fetchbox/work fetcher":          "what downloads resources",
	"apps/fetchbox/work task":             "the job of one resource: a job of FetchBox is a group of them",
	"apps/fetchbox/intake fetcher":        "what downloads resources",
	"apps/fetchbox/intake task":           "the job of one resource: a job of FetchBox is a group of them",
	"apps/fetchbox/view task":             "the job of one resource: a job of FetchBox is a group of them",
	"apps/fetchbox/view replay":           "a redrive that reads the dead letters from the stream",
	"apps/fetchbox/refusal replay":        "a redrive that reads the dead letters from the stream",
	"apps/fetchbox/api replay":            "a redrive that reads the dead letters from the stream",
	"apps/fetchbox/pages replay":          "a redrive that reads the dead letters from the stream",
	"apps/fetchbox replay":                "a redrive that reads the dead letters from the stream",
	"apps/fetchbox/replay replay":         "a redrive that reads the dead letters from the stream",
	"apps/fetchbox/deadletter task":       "DeadLetterTask is the name of the message in its specification",
	"apps/fetchbox/deadletter/pb task":    "DeadLetterTask is the name of the message in its specification",
}

// vaguePackageNames do not say what the package is about; such packages collect unrelated code.
var vaguePackageNames = map[string]bool{"util": true, "utils": true, "common": true, "types": true, "helper": true, "helpers": true, "misc": true, "base": true, "shared": true, "lib": true}

func TestNamesUseTheWordsOfTheGlossary(t *testing.T) {
	for _, s := range files(t, ".go", ".sql") {
		report(t, synonymsIn(s))
	}
}

func synonymsIn(s source) (bad []violation) {
	if s.file == nil {
		return synonymsInSQL(s)
	}
	if vaguePackageNames[s.file.Name.Name] {
		bad = append(bad, s.violation(1, "the package name %s says nothing: name the package after its subject", s.file.Name.Name))
	}
	for _, i := range declaredIn(s.file) {
		bad = append(bad, s.synonymsInName(s.line(i), i.Name)...)
	}
	name := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.path), ".go"), "_test")
	return append(bad, s.synonymsInName(1, name)...)
}

var sqlWord = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

func synonymsInSQL(s source) (bad []violation) {
	for n, line := range strings.Split(s.text, "\n") {
		code, _, _ := strings.Cut(line, "--")
		for _, word := range sqlWord.FindAllString(code, -1) {
			bad = append(bad, s.synonymsInName(n+1, word)...)
		}
	}
	return bad
}

func (s source) synonymsInName(line int, name string) (bad []violation) {
	for _, word := range words(name) {
		one := strings.TrimSuffix(word, "s")
		say, ok := synonyms[word]
		if !ok {
			word, say = one, synonyms[one]
		}
		if say == "" || otherMeanings[s.folder()+" "+word] != "" {
			continue
		}
		bad = append(bad, s.violation(line, "%s: use %[3]q instead of %[2]q (the words are in docs/glossary.md)", name, word, say))
	}
	return bad
}

// words splits a name into its words: HTTPServerURL is http server url, run_at is run at.
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

// declaredIn lists the names that a file declares. Names that it only uses are checked where they are declared.
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

func TestAJobHasExactlyTheFiveStates(t *testing.T) {
	want := map[string]bool{"queued": true, "processing": true, "complete": true, "failed": true, "cancelled": true}
	text := regexp.MustCompile(`\bState\s*=\s*"([a-z ]+)"`)
	for _, s := range files(t, ".go") {
		if s.folder() != "." || s.isTest() {
			continue
		}
		for _, m := range text.FindAllStringSubmatch(s.text, -1) {
			if !want[m[1]] {
				t.Errorf("%s: %q is no state of a job: a job is queued, processing, complete, failed or cancelled", s.path, m[1])
			}
			delete(want, m[1])
		}
	}
	for state := range want {
		t.Errorf("the root package lacks the state %q", state)
	}
}
