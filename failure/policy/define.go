package policy

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/holdfastdev/holdfast/failure"
)

// A definition is what a file sets for a code. Empty fields leave the code unchanged.
type definition struct {
	name              string
	message, remedy   string
	category          string
	blame             failure.Blame
	status            int
	retryable, benign *bool
}

// defines are the settings that make an entry of codes a definition. The setting retryable belongs to definitions and to
// policies.
var defines = []string{"message", "remedy", "category", "blame", "http_status", "benign"}

// over returns a code with the fields of the definition replaced.
func (d definition) over(c failure.Code) failure.Code {
	c.Name = d.name
	for _, one := range []struct {
		given string
		to    *string
	}{{d.message, &c.Message}, {d.remedy, &c.Remedy}, {d.category, &c.Category}, {string(d.blame), (*string)(&c.Blame)}} {
		if one.given != "" {
			*one.to = one.given
		}
	}
	if d.status != 0 {
		c.HTTPStatus = d.status
	}
	if d.retryable != nil {
		c.Retryable = *d.retryable
	}
	if d.benign != nil {
		c.Benign = *d.benign
	}
	return c
}

// Codes returns the codes that the file defines. Missing fields come from base, or from its UNKNOWN for a new code.
func (s *Set) Codes(base *failure.Taxonomy) (codes []failure.Code) {
	if s == nil {
		return nil
	}
	for _, d := range s.defined {
		code, known := base.Code(d.name)
		if !known {
			code, _ = base.Code("UNKNOWN")
			code.HTTPStatus = d.blame.HTTPStatus()
		}
		if code = d.over(code); code.Check() == nil {
			codes = append(codes, code)
		}
	}
	return codes
}

// Taxonomy returns base extended by the codes that the file defines, which take precedence.
func (s *Set) Taxonomy(base *failure.Taxonomy) *failure.Taxonomy {
	defined := s.Codes(base)
	if len(defined) == 0 {
		return base
	}
	own := slices.DeleteFunc(base.Own(), func(c failure.Code) bool {
		return slices.ContainsFunc(defined, func(d failure.Code) bool { return d.Name == c.Name })
	})
	t, err := failure.NewTaxonomy(append(own, defined...)...)
	if err != nil { // cannot happen: each code was checked, and each name is in a file once
		return base
	}
	return t
}

// define reads the codes that the file defines, before the parts of the file that may name them.
func (r *reader) define(root place, s *Set) {
	if r.defined = map[string]bool{}; root.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if at := root.Content[i+1]; root.Content[i].Value == "codes" && at.Kind == yaml.MappingNode {
			r.defineAll(place{at, "codes"}, s)
		}
	}
	s.taxonomy = s.Taxonomy(r.taxonomy)
	r.taxonomy = s.taxonomy
}

func (r *reader) defineAll(at place, s *Set) {
	for i := 0; i+1 < len(at.Content); i += 2 {
		word, value := at.Content[i], place{at.Content[i+1], join(at.path, at.Content[i].Value)}
		again := slices.ContainsFunc(s.defined, func(d definition) bool { return d.name == word.Value })
		if value.Kind != yaml.MappingNode || again || !failure.ValidName(word.Value) || !hasAny(value.Node, defines) {
			continue
		}
		d := definition{name: word.Value}
		r.defined[d.name] = true
		r.definition(value, &d)
		s.defined = append(s.defined, d)
	}
}

func hasAny(n *yaml.Node, words []string) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if slices.Contains(words, n.Content[i].Value) {
			return true
		}
	}
	return false
}

// definition reads one definition. A code that nothing else defines must be complete. For a built-in code the file may
// change message, remedy, status, retryable and benign, but not category and blame, because breakers, budgets and alerts
// depend on these.
func (r *reader) definition(at place, d *definition) {
	before := len(r.mistakes)
	for i := 0; i+1 < len(at.Content); i += 2 {
		value := place{at.Content[i+1], join(at.path, at.Content[i].Value)}
		switch at.Content[i].Value {
		case "message":
			d.message = r.line(value, "a message for people")
		case "remedy":
			d.remedy = r.line(value, "what an operator can do")
		case "category":
			d.category = r.oneOf(value, failure.Categories())
		case "blame":
			d.blame = failure.Blame(r.oneOf(value, []string{"user", "dependency", "us"}))
		case "http_status":
			count(&d.status, 400, 599)(r, value)
		case "retryable":
			var given *bool
			sub := reader{}
			flag(&given)(&sub, value) // a mistake is reported where the setting is read as part of the policy
			d.retryable = given
		case "benign":
			flag(&d.benign)(r, value)
		}
	}
	if len(r.mistakes) > before {
		return
	}
	var builtin *failure.Taxonomy
	if was, is := builtin.Code(d.name); is {
		if d.category != "" && d.category != was.Category {
			r.wrong(at, "%s is built in, and its category %s cannot be changed: define a code of your own", d.name, was.Category)
		}
		if d.blame != "" && d.blame != was.Blame {
			r.wrong(at, "%s is built in, and its blame %s cannot be changed: define a code of your own", d.name, was.Blame)
		}
		return
	}
	if _, known := r.taxonomy.Code(d.name); known {
		return
	}
	var missing []string
	for _, one := range []struct {
		word  string
		given bool
	}{{"message", d.message != ""}, {"remedy", d.remedy != ""}, {"category", d.category != ""}, {"blame", d.blame != ""}, {"retryable", d.retryable != nil}} {
		if !one.given {
			missing = append(missing, one.word)
		}
	}
	if len(missing) > 0 {
		// A worker does not treat this as a mistake: it may not have read yet what another program published.
		r.unknown = append(r.unknown, Problem{at.Line, at.path + ": a new code also needs " + strings.Join(missing, ", ")})
	}
}

// line reads one line of text.
func (r *reader) line(at place, want string) string {
	text, ok := r.scalar(at, want)
	if !ok {
		return ""
	}
	if probe := (failure.Code{Name: "X", Category: "unknown", Blame: failure.BlameUs, HTTPStatus: 500, Message: text, Remedy: text}); probe.Check() != nil {
		r.wrong(at, "give one line of 1 to 200 bytes, without control characters")
		return ""
	}
	return text
}

// oneOf reads one of the known words.
func (r *reader) oneOf(at place, known []string) string {
	text, ok := r.scalar(at, list(known))
	switch {
	case !ok:
		return ""
	case slices.Contains(known, text):
		return text
	}
	if meant := Nearest(text, known); meant != "" {
		r.wrong(at, "%s is not known; did you mean %s?", strconv.Quote(truncate(text, 40)), meant)
	} else {
		r.wrong(at, "%s is not known; use %s", strconv.Quote(truncate(text, 40)), list(known))
	}
	return ""
}

func truncate(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// definedElsewhere adds the settings of a definition, which are read before the rest of the file, so that they are not
// reported as unknown.
func definedElsewhere(keys []key) []key {
	for _, word := range defines {
		keys = append(keys, key{word, func(*reader, place) {}})
	}
	return keys
}
