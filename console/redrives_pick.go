package console

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A pick says which dead letters are meant, as a query does: each field is a parameter of that name.
type pick struct {
	Code, Kind, Queue, Owner string
	Fingerprint, Dependency  string
	Tag, Group               string
	Older, Younger           string // ages, such as 90m, 6h or 7d
}

// pickNames are the parameters of a pick, in the order in which people read them.
var pickNames = []string{"code", "fingerprint", "kind", "queue", "owner", "group", "dependency", "tag", "older", "younger"}

func (p *pick) field(name string) *string {
	return map[string]*string{
		"code": &p.Code, "fingerprint": &p.Fingerprint, "kind": &p.Kind, "queue": &p.Queue, "owner": &p.Owner,
		"group": &p.Group, "dependency": &p.Dependency, "tag": &p.Tag, "older": &p.Older, "younger": &p.Younger,
	}[name]
}

// pickOf reads a pick from a request.
func pickOf(q *ask) (p pick) {
	for _, name := range pickNames {
		*p.field(name) = q.text(name)
	}
	return p
}

// pickedBy is a filter as a pick: what a redrive was ordered to take.
func pickedBy(f holdfast.Filter) pick {
	p := pick{Code: f.Code, Kind: f.Kind, Queue: f.Queue, Owner: f.Owner, Fingerprint: f.Fingerprint, Dependency: f.Dependency, Tag: f.Tag}
	if !f.Group.IsZero() {
		p.Group = f.Group.String()
	}
	if f.OlderThan > 0 {
		p.Older = ageText(f.OlderThan)
	}
	if f.YoungerThan > 0 {
		p.Younger = ageText(f.YoungerThan)
	}
	return p
}

// filter is what a store is asked for. What makes no sense is ErrInvalid.
func (p pick) filter() (f holdfast.Filter, err error) {
	f = holdfast.Filter{Code: p.Code, Kind: p.Kind, Queue: p.Queue, Owner: p.Owner, Fingerprint: p.Fingerprint, Dependency: p.Dependency, Tag: p.Tag}
	if p.Group != "" {
		if f.Group, err = holdfast.ParseID(p.Group); err != nil {
			return f, unfit("the group %q is no id: copy it from the group's page", cut(p.Group, 60))
		}
	}
	if f.OlderThan, err = ageOf(p.Older); err != nil {
		return f, err
	}
	f.YoungerThan, err = ageOf(p.Younger)
	return f, err
}

// Empty reports whether everything is meant.
func (p pick) Empty() bool { return p == pick{} }

// values are the parameters of a pick.
func (p pick) values() url.Values {
	query := url.Values{}
	for _, name := range pickNames {
		if value := *p.field(name); value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// A pickedField is a name and a value: a hidden field, or a part of a selection that is told.
type pickedField struct{ Name, Value string }

// Chips tell a pick, in words.
func (p pick) Chips() (all []pickedField) {
	words := map[string]string{"fingerprint": "error group", "older": "older than", "younger": "younger than"}
	for _, name := range pickNames {
		value := *p.field(name)
		if value == "" {
			continue
		}
		if word := words[name]; word != "" {
			name = word
		}
		all = append(all, pickedField{name, value})
	}
	return all
}

// Search is the pick as the search for jobs understands it.
func (p pick) Search() string {
	words := []string{"is:dead"}
	for _, name := range pickNames {
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

// ageOf reads an age: a duration, or a number of days (7d) or weeks (2w).
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
		return 0, unfit("the age %q cannot be read: write it like 90m, 6h, 7d or 2w", cut(text, 40))
	}
	return age, nil
}

// ageText is an age as ageOf reads it.
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

// unfit: what was asked for makes no sense.
func unfit(format string, args ...any) error {
	return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}
