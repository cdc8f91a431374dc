package console

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A deadLetterFilter selects dead letters. Each field is a query parameter of the same name.
type deadLetterFilter struct {
	Code, Kind, Queue, Owner string
	Fingerprint, Dependency  string
	Tag, Group               string
	Older, Younger           string // ages, such as 90m, 6h or 7d
}

// deadLetterFields are the query parameters of a filter, in display order.
var deadLetterFields = []string{"code", "fingerprint", "kind", "queue", "owner", "group", "dependency", "tag", "older", "younger"}

func (p *deadLetterFilter) field(name string) *string {
	return map[string]*string{
		"code": &p.Code, "fingerprint": &p.Fingerprint, "kind": &p.Kind, "queue": &p.Queue, "owner": &p.Owner,
		"group": &p.Group, "dependency": &p.Dependency, "tag": &p.Tag, "older": &p.Older, "younger": &p.Younger,
	}[name]
}

// deadLetterFilterOf reads a filter from a request.
func deadLetterFilterOf(q *request) (p deadLetterFilter) {
	for _, name := range deadLetterFields {
		*p.field(name) = q.text(name)
	}
	return p
}

// deadLetterFilterFrom returns the filter of a redrive.
func deadLetterFilterFrom(f store.Filter) deadLetterFilter {
	p := deadLetterFilter{Code: f.Code, Kind: f.Kind, Queue: f.Queue, Owner: f.Owner, Fingerprint: f.Fingerprint, Dependency: f.Dependency, Tag: f.Tag}
	if !f.Group.IsZero() {
		p.Group = f.Group.String()
	}
	if f.OlderThan > 0 {
		p.Older = ageText(f.OlderThan)
	}
	if f.NewerThan > 0 {
		p.Younger = ageText(f.NewerThan)
	}
	return p
}

// storeFilter returns the filter for the store, or ErrInvalid.
func (p deadLetterFilter) storeFilter() (f store.Filter, err error) {
	f = store.Filter{Code: p.Code, Kind: p.Kind, Queue: p.Queue, Owner: p.Owner, Fingerprint: p.Fingerprint, Dependency: p.Dependency, Tag: p.Tag}
	if p.Group != "" {
		if f.Group, err = holdfast.ParseID(p.Group); err != nil {
			return f, invalid("group %q is not an id: copy it from the page of the group", truncate(p.Group, 60))
		}
	}
	if f.OlderThan, err = ageOf(p.Older); err != nil {
		return f, err
	}
	f.NewerThan, err = ageOf(p.Younger)
	return f, err
}

// Empty reports whether the filter matches every dead letter.
func (p deadLetterFilter) Empty() bool { return p == deadLetterFilter{} }

// values returns the query parameters.
func (p deadLetterFilter) values() url.Values {
	query := url.Values{}
	for _, name := range deadLetterFields {
		if value := *p.field(name); value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// A formField is a name and a value: of a hidden field, or of a chip that shows a filter.
type formField struct{ Name, Value string }

// Chips returns the filter as chips.
func (p deadLetterFilter) Chips() (all []formField) {
	words := map[string]string{"fingerprint": "error group", "older": "older than", "younger": "newer than"}
	for _, name := range deadLetterFields {
		value := *p.field(name)
		if value == "" {
			continue
		}
		if word := words[name]; word != "" {
			name = word
		}
		all = append(all, formField{name, value})
	}
	return all
}

// Search returns the filter as a job search.
func (p deadLetterFilter) Search() string {
	words := []string{"is:dead"}
	for _, name := range deadLetterFields {
		value := *p.field(name)
		switch {
		case value == "":
			continue
		case name == "older":
			name, value = "age", ">"+value
		case name == "younger":
			name, value = "age", "<"+value
		}
		if strings.ContainsAny(value, " \t\"") {
			value = strconv.Quote(value)
		}
		words = append(words, name+":"+value)
	}
	return strings.Join(words, " ")
}

// ageOf parses an age: a duration, or a number of days (7d) or weeks (2w).
func ageOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	age, err := time.ParseDuration(text)
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			var count int
			if count, err = strconv.Atoi(number); err == nil && count > 100*366 {
				err = strconv.ErrRange
			}
			age = time.Duration(count) * length
		}
	}
	if err != nil || age <= 0 {
		return 0, invalid("age %q is invalid: use 90m, 6h, 7d or 2w", truncate(text, 40))
	}
	return age, nil
}

// ageText formats an age as ageOf reads it.
func ageText(age time.Duration) string {
	if day := 24 * time.Hour; age%day == 0 {
		return fmt.Sprintf("%dd", age/day)
	}
	text := age.String()
	for _, nothing := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, nothing) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// invalid returns an ErrInvalid.
func invalid(format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
