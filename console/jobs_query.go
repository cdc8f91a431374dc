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
)

// A jobQuery is a search for jobs, read from what somebody wrote. All of its parts apply together.
type jobQuery struct {
	text     string
	parts    []queryPart
	filter   holdfast.Filter
	category string // the store does not know it: pages are narrowed to it here
	problem  string // what is wrong, and what to do. Nothing is looked for then
	instead  string // the search that was probably meant, if that can be told
}

// A queryPart is one qualifier and its value.
type queryPart struct{ name, value string }

// String writes a part so that it is read the same.
func (p queryPart) String() string {
	if p.value != "" && !strings.ContainsFunc(p.value, func(r rune) bool { return unicode.IsSpace(r) || r == '"' }) {
		return p.name + ":" + p.value
	}
	return p.name + `:"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p.value) + `"`
}

// A qualifier is a name that a search understands.
type qualifier struct {
	name    string
	example string
	about   string
	take    func(q *jobQuery, value string) error
}

// qualifiers are all there are, in the order in which they are explained.
var qualifiers = []qualifier{
	{"state", "state:failed", "queued, processing, complete, failed or cancelled", takeState},
	{"is", "is:dead", "dead: failed, not discarded and not benign. retrying: queued after a failure", takeIs},
	{"benign", "benign:true", "true: failed as was to be expected. false: failed otherwise", takeBenign},
	{"kind", "kind:mail", "what the job does", func(q *jobQuery, v string) error { q.filter.Kind = v; return nil }},
	{"queue", "queue:default", "where it waits", func(q *jobQuery, v string) error { q.filter.Queue = v; return nil }},
	{"owner", "owner:ada", "whose it is", func(q *jobQuery, v string) error { q.filter.Owner = v; return nil }},
	{"code", "code:GW_5XX", "of its last failure", func(q *jobQuery, v string) error { q.filter.Code = v; return nil }},
	{"category", "category:network", "of its last failure", takeCategory},
	{"fingerprint", "fingerprint:3f2a", "of its last failure: one error group", func(q *jobQuery, v string) error { q.filter.Fingerprint = v; return nil }},
	{"dependency", "dependency:gateway", "what it calls", func(q *jobQuery, v string) error { q.filter.Dependency = v; return nil }},
	{"tag", `tag:"big file"`, "one of its tags", func(q *jobQuery, v string) error { q.filter.Tag = v; return nil }},
	{"worker", "worker:web-1", "in whose hands it is now", func(q *jobQuery, v string) error { q.filter.Worker = v; return nil }},
	{"group", "group:01890a5d-…", "member of this group", func(q *jobQuery, v string) error { return takeID(&q.filter.Group, v) }},
	{"redrive", "redrive:01890a5d-…", "taken by this redrive", func(q *jobQuery, v string) error { return takeID(&q.filter.Redrive, v) }},
	{"generation", "generation:2", "1 at first, one more with each manual retry", takeGeneration},
	{"age", "age:>1h", "older than that, or younger: age:<15m", takeAge},
}

// An amissError says what is wrong with a search, in sentences for whoever wrote it.
type amissError string

func (e amissError) Error() string { return string(e) }

func amiss(format string, args ...any) error { return amissError(fmt.Sprintf(format, args...)) }

// mostQuery is how long a search may be.
const mostQuery = 2000

// parseJobs reads a search. What it cannot read is said in problem.
func parseJobs(text string) jobQuery {
	q := jobQuery{text: strings.TrimSpace(text)}
	if len(q.text) > mostQuery {
		q.text, q.problem = cut(q.text, mostQuery), fmt.Sprintf("This search is longer than %s bytes. Name less.", num(mostQuery))
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

// A queryWord is a word of a search: with a name when it is a qualifier.
type queryWord struct {
	queryPart
	raw string // as it was written
}

// splitQuery cuts a search into words. Quotes keep blanks together; within them a backslash keeps a quote or a backslash.
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
		return words, amiss(`A quote is opened and not closed. Close it: kind:"two words".`)
	}
	return words, nil
}

// take adds one word.
func (q *jobQuery) take(w queryWord) error {
	name := strings.ToLower(w.name)
	switch strings.ToUpper(w.raw) {
	case "AND", "OR", "NOT":
		return amiss("%s is not understood. All qualifiers apply together, each names one value. Leave the word out.", strings.ToUpper(w.raw))
	}
	if strings.HasPrefix(w.raw, "-") || strings.HasPrefix(w.raw, "!") {
		return amiss("Leaving something out is not supported: %q. Name what you want to see instead, such as state:failed.", cut(w.raw, 60))
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
		return amiss("%s: says nothing yet. Give it a value, such as %s.", name, qualifiers[at].example)
	}
	for _, other := range q.parts {
		if other == part {
			return nil
		}
		if other.name == name && !(name == "age" && other.value[0] != part.value[0]) && name != "is" {
			return amiss("%s is named twice, as %q and as %q. A job has one: keep one of them.", name, cut(other.value, 60), cut(part.value, 60))
		}
	}
	q.parts = append(q.parts, part)
	return qualifiers[at].take(q, part.value)
}

// freeWord explains that words are not searched for.
func freeWord(w queryWord) error {
	if _, err := holdfast.ParseID(w.value); err == nil {
		return amiss("A job's id leads to that job, and stands alone. Take the rest away, or the id.")
	}
	return amiss("Free text is not searched: %q. Say what it is: kind:, queue:, owner:, code:, tag:, … or paste a whole job id.", cut(w.value, 60))
}

// unknown names the qualifier that was probably meant.
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
		q.instead = strings.Replace(q.text, w.raw, queryPart{best, w.value}.String(), 1)
		return amiss("There is no qualifier %q. Did you mean %s?", cut(w.name, 60), best)
	}
	return amiss("There is no qualifier %q. There are %s.", cut(w.name, 60), strings.Join(names, ", "))
}

func takeBenign(q *jobQuery, value string) error {
	benign, err := strconv.ParseBool(value)
	if err != nil {
		return amiss("benign is true or false, not %q.", cut(value, 60))
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
		q.instead = strings.Replace(q.text, "state:"+value, "is:"+string(state), 1)
		return amiss("%s is no state. Use is:%s.", state, state)
	}
	return amiss("There is no state %q. Use state:queued, processing, complete, failed or cancelled.", cut(value, 60))
}

func takeIs(q *jobQuery, value string) error {
	switch strings.ToLower(value) {
	case "dead":
		q.filter.DeadLetters = true
	case "retrying":
		q.filter.Retrying = true
	default:
		return amiss("is:%s is not known. Use is:dead or is:retrying; for a state say state:failed.", cut(value, 60))
	}
	return nil
}

func takeCategory(q *jobQuery, value string) error {
	if !slices.Contains(failure.Categories(), value) {
		return amiss("There is no category %q. There are %s.", cut(value, 60), strings.Join(failure.Categories(), ", "))
	}
	q.category = value
	return nil
}

func takeID(to *holdfast.ID, value string) error {
	id, err := holdfast.ParseID(value)
	if err != nil {
		return amiss("%q is no id. Give a whole one, of the form 01890a5d-ac96-774b-bcce-b302099a8057.", cut(value, 60))
	}
	*to = id
	return nil
}

func takeGeneration(q *jobQuery, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return amiss("generation:%s is no number from 1 on. 1 is the first; 2 comes after one manual retry.", cut(value, 60))
	}
	q.filter.Generation = n
	return nil
}

func takeAge(q *jobQuery, value string) error {
	older, isOlder := strings.CutPrefix(value, ">")
	younger, isYounger := strings.CutPrefix(value, "<")
	switch {
	case !isOlder && !isYounger:
		return amiss("age:%s leaves open which way. Use age:>%s for older, age:<%s for younger.", cut(value, 60), cut(value, 60), cut(value, 60))
	case isOlder:
		age, err := parseAge(older)
		q.filter.OlderThan = age
		return err
	}
	age, err := parseAge(younger)
	q.filter.YoungerThan = age
	return err
}

// ageUnits are what ages are counted in.
var ageUnits = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}

// parseAge reads an age such as 90s, 15m, 1h30m, 7d or 2w.
func parseAge(text string) (age time.Duration, err error) {
	bad := amiss("%q is no age. Use numbers with s, m, h, d or w, such as age:>1h, age:<15m or age:>7d.", cut(text, 60))
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
			return 0, amiss("%q is more than a hundred years. Use less.", cut(text, 60))
		}
		age += time.Duration(n) * unit
		rest = rest[digits+1:]
	}
	if age <= 0 {
		return 0, bad
	}
	return age, nil
}
