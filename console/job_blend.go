package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
)

// A blend is what it takes to make one JSON text of another: a merge patch (RFC 7396), and what the first one is then. What was not touched
// stays to the letter, numbers and order too.
type blend struct {
	patch json.RawMessage // nil: nothing changes
	after json.RawMessage
}

// A jsonMember is a name and a value of an object. Its text is the name as it was written.
type jsonMember struct {
	name  string
	text  []byte
	value json.RawMessage
}

// blended finds out how a text becomes another. Not everything can be said by a patch: null takes a member away, so it cannot be written.
func blended(was, is json.RawMessage, at string) (blend, error) {
	before, both := membersOf(was)
	after, object := membersOf(is)
	switch {
	case bytes.Equal(compacted(was), compacted(is)):
		return blend{after: was}, nil
	case !object:
		return blend{patch: is, after: is}, nil
	case !both:
		before = nil
	}
	var b joiner
	wanted := map[string]json.RawMessage{}
	for _, m := range after {
		if _, twice := wanted[m.name]; twice {
			return blend{}, amissJSON("%s appears twice: write it once", at+"."+m.name)
		}
		wanted[m.name] = m.value
	}
	met := map[string]bool{}
	for _, m := range before {
		met[m.name] = true
		want, kept := wanted[m.name]
		if !kept {
			b.patch(m, json.RawMessage("null"))
			continue
		}
		if err := b.blend(m, m.value, want, at); err != nil {
			return blend{}, err
		}
	}
	for _, m := range after {
		if met[m.name] {
			continue
		}
		if err := b.blend(m, nil, m.value, at); err != nil {
			return blend{}, err
		}
	}
	made := blend{after: b.object(b.whole)}
	if len(b.changes) > 0 || !both {
		made.patch = b.object(b.changes)
	}
	return made, nil
}

// A joiner gathers the members of a patch, and of what it makes.
type joiner struct{ changes, whole [][]byte }

func (j *joiner) patch(m jsonMember, value json.RawMessage) {
	j.changes = append(j.changes, pair(m, value))
}

// blend adds a member that stays, in whatever form.
func (j *joiner) blend(m jsonMember, was, is json.RawMessage, at string) error {
	where := at + "." + m.name
	if string(is) == "null" && string(was) != "null" {
		return amissJSON("%s cannot become null: leave it out, or give it another value", where)
	}
	inner, err := blended(was, is, where)
	if err != nil {
		return err
	}
	if inner.patch != nil {
		j.patch(m, inner.patch)
	}
	j.whole = append(j.whole, pair(m, inner.after))
	return nil
}

func (j *joiner) object(members [][]byte) json.RawMessage {
	return append(append([]byte{'{'}, bytes.Join(members, []byte(","))...), '}')
}

func pair(m jsonMember, value json.RawMessage) []byte {
	return append(append(bytes.Clone(m.text), ':'), value...)
}

func compacted(text json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

// membersOf are those of an object, in order. What is no object has none.
func membersOf(value json.RawMessage) (all []jsonMember, object bool) {
	in := json.NewDecoder(bytes.NewReader(value))
	if open, err := in.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	for in.More() {
		before := in.InputOffset()
		name, err := in.Token()
		if err != nil {
			return nil, false
		}
		m := jsonMember{text: bytes.TrimLeft(value[before:in.InputOffset()], ", \t\r\n")}
		m.name, _ = name.(string) // a name is a text
		if err := in.Decode(&m.value); err != nil {
			return nil, false
		}
		all = append(all, m)
	}
	return all, true
}

func amissJSON(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return &holdfast.Error{Kind: holdfast.ErrInvalid, Message: "the arguments: " + text}
}

// readJSON reads what somebody wrote, and says in which line it is wrong.
func readJSON(text string) (json.RawMessage, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var value json.RawMessage
	err := json.Unmarshal([]byte(text), &value)
	var wrong *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		at := strings.Count(text[:min(max(int(wrong.Offset)-1, 0), len(text))], "\n") + 1
		return nil, amissJSON("line %d is no JSON (%s)", at, wrong.Error())
	case err != nil:
		return nil, amissJSON("they are no JSON")
	case len(text) > holdfast.MaxArgs:
		return nil, amissJSON("%s bytes, and the limit is %s", num(len(text)), num(holdfast.MaxArgs))
	}
	return value, nil
}
