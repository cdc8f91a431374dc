package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/check"
)

// A reader parses a file once and collects every mistake. It continues after a mistake, so that an operator sees all of them.
type reader struct {
	taxonomy *failure.Taxonomy
	mistakes Problems
	defined  map[string]bool // codes that the file defines, correctly or not
	unknown  Problems        // codes that are not in the taxonomy
	end      []func()        // checks that need the whole file
}

func (r *reader) atTheEnd(check func()) { r.end = append(r.end, check) }

// A place is a value in the file with its path: kinds.convert.max_attempts.
type place struct {
	*yaml.Node
	path string
}

func (r *reader) add(at *yaml.Node, format string, args ...any) {
	r.mistakes = append(r.mistakes, Problem{at.Line, fmt.Sprintf(format, args...)})
}

// wrong adds a mistake about a value.
func (r *reader) wrong(at place, format string, args ...any) {
	r.add(at.Node, "%s: %s", orFile(at.path), fmt.Sprintf(format, args...))
}

// A key is a name that is allowed in an object, and the reader of its value.
type key struct {
	name string
	read func(r *reader, at place)
}

// object reads an object with known names.
func (r *reader) object(at place, keys []key) {
	known := make([]string, len(keys))
	for i, k := range keys {
		known[i] = k.name
	}
	r.each(at, func(word *yaml.Node, value place) {
		if i := slices.Index(known, word.Value); i >= 0 {
			keys[i].read(r, value)
			return
		}
		if meant := Nearest(word.Value, known); meant != "" {
			r.add(word, "%s is not known; did you mean %s?", value.path, meant)
			return
		}
		r.add(word, "%s is not known; use %s", value.path, list(known))
	})
}

// each reads an object with any names, and refuses names that are given twice.
func (r *reader) each(at place, do func(word *yaml.Node, value place)) {
	if at.Kind != yaml.MappingNode {
		r.wrong(at, "expected names with values, such as {name: value}; found %s", nodeText(at.Node))
		return
	}
	if len(at.Content) == 0 && at.path != "" {
		r.wrong(at, "it is empty: add an entry, or remove it")
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(at.Content); i += 2 {
		word, value := at.Content[i], place{at.Content[i+1], join(at.path, at.Content[i].Value)}
		if word.Kind != yaml.ScalarNode || word.Tag == "!!null" {
			r.add(word, "%s: a name is missing, or is not a plain word", orFile(at.path))
			continue
		}
		if first, twice := seen[word.Value]; twice {
			r.add(word, "%s is given twice; the first is on line %d: keep one", value.path, first)
			continue
		}
		seen[word.Value] = word.Line
		do(word, value)
	}
}

// sequence reads a list; a single value is a list of one.
func (r *reader) sequence(at place, do func(at place)) {
	if at.Kind != yaml.SequenceNode {
		do(at)
		return
	}
	if len(at.Content) == 0 {
		r.wrong(at, "it is empty: add an entry, or remove it")
	}
	for i, n := range at.Content {
		do(place{n, fmt.Sprintf("%s[%d]", at.path, i+1)})
	}
}

// scalar returns the text of a plain value.
func (r *reader) scalar(at place, want string) (string, bool) {
	if at.Kind != yaml.ScalarNode || at.Tag == "!!null" {
		r.wrong(at, "expected %s, found %s", want, nodeText(at.Node))
		return "", false
	}
	return at.Value, true
}

// count reads a whole number.
func count(to *int, least, most int) func(*reader, place) {
	return func(r *reader, at place) {
		want := fmt.Sprintf("a whole number from %d to %d", least, most)
		text, ok := r.scalar(at, want)
		if !ok {
			return
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			r.wrong(at, "%.40q is not %s", text, want)
			return
		}
		*to = n
	}
}

// number reads a number above zero, up to most.
func number(to *float64, most float64) func(*reader, place) {
	return func(r *reader, at place) {
		want := fmt.Sprintf("a number above 0 and up to %v", most)
		text, ok := r.scalar(at, want)
		if !ok {
			return
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n > 0 && n <= most) {
			r.wrong(at, "%.40q is not %s", text, want)
			return
		}
		*to = n
	}
}

// share reads 20% or 0.2.
func share(to *float64) func(*reader, place) {
	return func(r *reader, at place) {
		if n, ok := r.percentage(at); ok {
			*to = n
		}
	}
}

func (r *reader) percentage(at place) (float64, bool) {
	text, ok := r.scalar(at, "a percentage such as 20%")
	if !ok {
		return 0, false
	}
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		n /= 100
	}
	switch {
	case err == nil && !percent && n > 1 && n <= 100:
		r.wrong(at, "%s is more than 100%%; write %s%% or %v", text, text, n/100)
	case err != nil || !(n > 0 && n <= 1):
		r.wrong(at, "%.40q is not a percentage above 0%% and up to 100%%, such as 20%%", text)
	default:
		return n, true
	}
	return 0, false
}

// span reads a duration above zero: 30s, 1h30m, 7d.
func span(to *time.Duration) func(*reader, place) {
	return func(r *reader, at place) {
		if d, ok := r.duration(at); ok && d > 0 {
			*to = d
		} else if ok {
			r.wrong(at, "0 is not allowed here: give at least 1ms, or remove it")
		}
	}
}

// duration reads a duration that may be zero.
func (r *reader) duration(at place) (time.Duration, bool) {
	text, ok := r.scalar(at, "a duration such as 30s")
	if !ok {
		return 0, false
	}
	d, err := parseDuration(text)
	switch _, bare := strconv.ParseFloat(text, 64); {
	case bare == nil && text != "0":
		r.wrong(at, "%.40s has no unit: write %.40ss, %.40sm or %.40sh", text, text, text, text)
	case err != nil || d < 0 || d > check.MaxDelay:
		r.wrong(at, "%.40q is not a duration up to 100 years, such as 250ms, 30s, 15m, 24h or 7d", text)
	default:
		return d, true
	}
	return 0, false
}

// parseDuration accepts days in addition to what time.ParseDuration accepts: 7d, 1d12h.
func parseDuration(text string) (time.Duration, error) {
	whole, rest, days := strings.Cut(text, "d")
	if !days {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseFloat(whole, 64)
	if err != nil || !(n >= 0 && n <= check.MaxDelay.Hours()/24) {
		return 0, fmt.Errorf("%q is not a number of days", whole)
	}
	d := time.Duration(math.Round(n * 24 * float64(time.Hour)))
	if rest == "" {
		return d, nil
	}
	more, err := time.ParseDuration(rest)
	if more < 0 {
		return 0, fmt.Errorf("%q is negative", rest)
	}
	return d + more, err
}

// flag reads true or false.
func flag(to **bool) func(*reader, place) {
	return func(r *reader, at place) {
		text, ok := r.scalar(at, "true or false")
		if !ok {
			return
		}
		value, known := map[string]bool{"true": true, "false": false}[text]
		if !known {
			r.wrong(at, "%.40q is neither true nor false", text)
			return
		}
		*to = &value
	}
}

// nodeText describes a node, for a mistake.
func nodeText(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "an object"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "nothing"
	}
	return fmt.Sprintf("%.40q", n.Value)
}

func join(path, word string) string {
	if len(word) > 80 {
		word = strings.ToValidUTF8(word[:80], "") + "..."
	}
	if path == "" {
		return word
	}
	return path + "." + word
}

func orFile(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}

// list joins words: "a, b or c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
