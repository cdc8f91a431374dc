package console

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/store"
)

// A jobQuery is a parsed search for jobs. All parts must match.
type jobQuery struct {
	text       string
	parts      []queryPart
	filter     store.Filter
	category   string // the store cannot filter by it: the console filters its pages
	problem    string // what is wrong and how to fix it; if set, nothing is searched
	suggestion string // the search that the visitor probably meant, if known
}

// A queryPart is a qualifier with its value.
type queryPart struct{ name, value string }

// String returns the part as parseJobs reads it, quoted if needed.
func (p queryPart) String() string {
	if p.value != "" && !strings.ContainsFunc(p.value, func(r rune) bool { return unicode.IsSpace(r) || r == '"' }) {
		return p.name + ":" + p.value
	}
	return p.name + `:"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p.value) + `"`
}

// A qualifier is a name that a search can use.
type qualifier struct {
	name    string
	example string
	about   string
	take    func(q *jobQuery, value string) error
}

// qualifiers lists all qualifiers, in the order of the help.
var qualifiers = []qualifier{
	{"state", "state:failed", "queued, processing, complete, failed or cancelled", takeState},
	{"is", "is:dead", "dead: failed, not discarded and not benign. retrying: queued after a failure", takeIs},
	{"benign", "benign:true", "true: expected failures. false: all other failures", takeBenign},
	{"kind", "kind:mail", "type of the job", func(q *jobQuery, v string) error { q.filter.Kind = v; return nil }},
	{"queue", "queue:default", "queue of the job", func(q *jobQuery, v string) error { q.filter.Queue = v; return nil }},
	{"owner", "owner:ada", "owner of the job", func(q *jobQuery, v string) error { q.filter.Owner = v; return nil }},
	{"code", "code:GW_5XX", "code of the last failure", func(q *jobQuery, v string) error { q.filter.Code = v; return nil }},
	{"category", "category:network", "category of the last failure", takeCategory},
	{"fingerprint", "fingerprint:3f2a", "error group of the last failure", func(q *jobQuery, v string) error { q.filter.Fingerprint = v; return nil }},
	{"dependency", "dependency:gateway", "dependency that it calls", func(q *jobQuery, v string) error { q.filter.Dependency = v; return nil }},
	{"tag", `tag:"big file"`, "one of its tags", func(q *jobQuery, v string) error { q.filter.Tag = v; return nil }},
	{"worker", "worker:web-1", "worker that runs it", func(q *jobQuery, v string) error { q.filter.Worker = v; return nil }},
	{"group", "group:01890a5d-…", "member of this group", func(q *jobQuery, v string) error { return takeID(&q.filter.Group, v) }},
	{"redrive", "redrive:01890a5d-…", "taken by this redrive", func(q *jobQuery, v string) error { return takeID(&q.filter.Redrive, v) }},
	{"generation", "generation:2", "1 at first, plus 1 for each manual retry", takeGeneration},
	{"age", "age:>1h", "older than this, or newer: age:<15m", takeAge},
}

// A queryError says what is wrong with a search, in full sentences for the visitor.
type queryError string

func (e queryError) Error() string { return string(e) }

func queryErrorf(format string, args ...any) error { return queryError(fmt.Sprintf(format, args...)) }

// maxQuery is the maximum length of a search in bytes.
const maxQuery = 2000

// parseJobs parses a search. If it is invalid, problem says why.
func parseJobs(text string) jobQuery {
	q := jobQuery{text: strings.TrimSpace(text)}
	if len(q.text) > maxQuery {
		q.text, q.problem = truncate(q.text, maxQuery), fmt.Sprintf("The search is longer than %s bytes. Shorten it.", num(maxQuery))
		return q
	}
	words, err := splitQuery(q.text)
	for i := 0; err == nil && i < len(words); i++ {
		err = q.take(words[i])
	}
	if err != nil {
		q.problem = err.Error()
	}
	return q
}

// A queryWord is a word of a search. It has a name if it is a qualifier.
type queryWord struct {
	queryPart
	raw string // as it was written
}

// splitQuery splits a search into words. Words with spaces are quoted; within quotes a backslash escapes a quote or a backslash.
func splitQuery(text string) (words []queryWord, err error) {
	var raw, value strings.Builder
	var word queryWord
	named, quoted, escaped := false, false, false
	end := func() {
		if word.raw, word.value = raw.String(), value.String(); word.raw != "" {
			words = append(words, word)
		}
		word, named = queryWord{}, false
		raw.Reset()
		value.Reset()
	}
	for _, r := range text {
		switch {
		case !quoted && unicode.IsSpace(r):
			end()
			continue
		case escaped:
			if r != '"' && r != '\\' {
				value.WriteByte('\\')
			}
			value.WriteRune(r)
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case r == ':' && !named && !quoted && value.Len() == raw.Len():
			word.name, named = value.String(), true
			value.Reset()
		default:
			value.WriteRune(r)
		}
		raw.WriteRune(r)
	}
	end()
	if quoted {
		return words, queryErrorf(`A quote is not closed. Close it: kind:"two words".`)
	}
	return words, nil
}

// take adds one word to the query.
func (q *jobQuery) take(w queryWord) error {
	name := strings.ToLower(w.name)
	switch strings.ToUpper(w.raw) {
	case "AND", "OR", "NOT":
		return queryErrorf("%s is not supported. All qualifiers must match, each with one value. Remove the word.", strings.ToUpper(w.raw))
	}
	if strings.HasPrefix(w.raw, "-") || strings.HasPrefix(w.raw, "!") {
		return queryErrorf("Exclusion is not supported: %q. Search for what you want to see, such as state:failed.", truncate(w.raw, 60))
	}
	if w.name == "" {
		return freeWord(w)
	}
	at := slices.IndexFunc(qualifiers, func(one qualifier) bool { return one.name == name })
	if at < 0 {
		return q.unknown(w)
	}
	part := queryPart{name, w.value}
	if part.value == "" {
		return queryErrorf("%s: has no value. Add one, such as %s.", name, qualifiers[at].example)
	}
	for _, other := range q.parts {
		if other == part {
			return nil
		}
		if other.name == name && !(name == "age" && other.value[0] != part.value[0]) && name != "is" {
			return queryErrorf("%s is given twice, as %q and as %q. Keep one of them.", name, truncate(other.value, 60), truncate(part.value, 60))
		}
	}
	q.parts = append(q.parts, part)
	return qualifiers[at].take(q, part.value)
}

// freeWord returns the error for a word without a qualifier.
func freeWord(w queryWord) error {
	if _, err := holdfast.ParseID(w.value); err == nil {
		return queryErrorf("A job id cannot be combined with other terms. Remove the id or the rest.")
	}
	return queryErrorf("Free text is not searched: %q. Use a qualifier: kind:, queue:, owner:, code:, tag:, … or a full job id.", truncate(w.value, 60))
}

// unknown returns the error for an unknown qualifier and suggests the most similar one.
func (q *jobQuery) unknown(w queryWord) error {
	names := make([]string, len(qualifiers))
	for i, one := range qualifiers {
		names[i] = one.name
	}
	begun := slices.IndexFunc(names, func(name string) bool { return len(w.name) > 1 && strings.HasPrefix(name, strings.ToLower(w.name)) })
	best := policy.Nearest(w.name, names)
	if begun >= 0 {
		best = names[begun]
	}
	if best != "" {
		q.suggestion = strings.Replace(q.text, w.raw, queryPart{best, w.value}.String(), 1)
		return queryErrorf("There is no qualifier %q. Did you mean %s?", truncate(w.name, 60), best)
	}
	return queryErrorf("There is no qualifier %q. Use one of %s.", truncate(w.name, 60), strings.Join(names, ", "))
}

func takeBenign(q *jobQuery, value string) error {
	benign, err := strconv.ParseBool(value)
	if err != nil {
		return queryErrorf("benign must be true or false, not %q.", truncate(value, 60))
	}
	q.filter.Benign = &benign
	return nil
}

func takeState(q *jobQuery, value string) error {
	state := holdfast.State(strings.ToLower(value))
	switch state {
	case holdfast.Queued, holdfast.Processing, holdfast.Complete, holdfast.Failed, holdfast.Cancelled:
		q.filter.State = state
		return nil
	case "dead", "retrying":
		q.suggestion = strings.Replace(q.text, "state:"+value, "is:"+string(state), 1)
		return queryErrorf("%s is not a state. Use is:%s.", state, state)
	}
	return queryErrorf("There is no state %q. Use state:queued, processing, complete, failed or cancelled.", truncate(value, 60))
}

func takeIs(q *jobQuery, value string) error {
	switch strings.ToLower(value) {
	case "dead":
		q.filter.DeadLetters = true
	case "retrying":
		q.filter.Retrying = true
	default:
		return queryErrorf("is:%s is unknown. Use is:dead or is:retrying. For a state use state:failed.", truncate(value, 60))
	}
	return nil
}

func takeCategory(q *jobQuery, value string) error {
	if !slices.Contains(failure.Categories(), value) {
		return queryErrorf("There is no category %q. Use one of %s.", truncate(value, 60), strings.Join(failure.Categories(), ", "))
	}
	q.category = value
	return nil
}

func takeID(to *holdfast.ID, value string) error {
	id, err := holdfast.ParseID(value)
	if err != nil {
		return queryErrorf("%q is not an id. Use a full id, such as 01890a5d-ac96-774b-bcce-b302099a8057.", truncate(value, 60))
	}
	*to = id
	return nil
}

func takeGeneration(q *jobQuery, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return queryErrorf("generation:%s is not a number from 1. 1 is the first generation; 2 follows one manual retry.", truncate(value, 60))
	}
	q.filter.Generation = n
	return nil
}

func takeAge(q *jobQuery, value string) error {
	older, isOlder := strings.CutPrefix(value, ">")
	younger, isYounger := strings.CutPrefix(value, "<")
	switch {
	case !isOlder && !isYounger:
		return queryErrorf("age:%s has no direction. Use age:>%s for older, age:<%s for newer.", truncate(value, 60), truncate(value, 60), truncate(value, 60))
	case isOlder:
		age, err := parseAge(older)
		q.filter.OlderThan = age
		return err
	}
	age, err := parseAge(younger)
	q.filter.NewerThan = age
	return err
}

// ageUnits are the units of ages.
var ageUnits = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}

// parseAge reads an age such as 90s, 15m, 1h30m, 7d or 2w.
func parseAge(text string) (age time.Duration, err error) {
	bad := queryErrorf("%q is not an age. Use numbers with s, m, h, d or w, such as age:>1h, age:<15m or age:>7d.", truncate(text, 60))
	for rest := text; rest != ""; {
		digits := 0
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
			digits++
		}
		if digits == 0 || digits > 9 || digits == len(rest) || ageUnits[rest[digits]] == 0 {
			return 0, bad
		}
		n, _ := strconv.Atoi(rest[:digits]) // nine digits are a number
		unit := ageUnits[rest[digits]]
		if time.Duration(n) > (100*365*24*time.Hour-age)/unit {
			return 0, queryErrorf("%q is more than a hundred years. Use a smaller age.", truncate(text, 60))
		}
		age += time.Duration(n) * unit
		rest = rest[digits+1:]
	}
	if age <= 0 {
		return 0, bad
	}
	return age, nil
}
