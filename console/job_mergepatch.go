package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

// A mergePatch turns one JSON text into another: the merge patch (RFC 7396) and its result. Parts that the visitor did not change stay byte for byte, including
// the spelling of numbers and the order of members.
type mergePatch struct {
	patch json.RawMessage // nil if nothing changes
	after json.RawMessage
}

// A jsonMember is a member of an object. Its text is the name as it was written.
type jsonMember struct {
	name  string
	text  []byte
	value json.RawMessage
}

// mergePatchOf returns the patch that turns was into is. It fails if there is none: in a merge patch null removes a member, so a patch cannot set null.
func mergePatchOf(was, is json.RawMessage, at string) (mergePatch, error) {
	before, both := membersOf(was)
	after, object := membersOf(is)
	switch {
	case bytes.Equal(compacted(was), compacted(is)):
		return mergePatch{after: was}, nil
	case !object:
		return mergePatch{patch: is, after: is}, nil
	case !both:
		before = nil
	}
	var b patchBuilder
	wanted := map[string]json.RawMessage{}
	for _, m := range after {
		if _, twice := wanted[m.name]; twice {
			return mergePatch{}, invalidArgs("%s appears twice: keep one", at+"."+m.name)
		}
		wanted[m.name] = m.value
	}
	seen := map[string]bool{}
	for _, m := range before {
		seen[m.name] = true
		want, kept := wanted[m.name]
		if !kept {
			b.patch(m, json.RawMessage("null"))
			continue
		}
		if err := b.member(m, m.value, want, at); err != nil {
			return mergePatch{}, err
		}
	}
	for _, m := range after {
		if seen[m.name] {
			continue
		}
		if err := b.member(m, nil, m.value, at); err != nil {
			return mergePatch{}, err
		}
	}
	made := mergePatch{after: b.object(b.whole)}
	if len(b.changes) > 0 || !both {
		made.patch = b.object(b.changes)
	}
	return made, nil
}

// A patchBuilder collects the members of a patch and of its result.
type patchBuilder struct{ changes, whole [][]byte }

func (j *patchBuilder) patch(m jsonMember, value json.RawMessage) {
	j.changes = append(j.changes, pair(m, value))
}

// member adds a member that exists after the patch.
func (j *patchBuilder) member(m jsonMember, was, is json.RawMessage, at string) error {
	where := at + "." + m.name
	if string(is) == "null" && string(was) != "null" {
		return invalidArgs("%s cannot be set to null: remove it, or use another value", where)
	}
	inner, err := mergePatchOf(was, is, where)
	if err != nil {
		return err
	}
	if inner.patch != nil {
		j.patch(m, inner.patch)
	}
	j.whole = append(j.whole, pair(m, inner.after))
	return nil
}

func (j *patchBuilder) object(members [][]byte) json.RawMessage {
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

// membersOf returns the members of an object in order, and whether the value is an object.
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

func invalidArgs(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: "arguments: " + text}
}

// readJSON parses the text of the form. Its error names the line.
func readJSON(text string) (json.RawMessage, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var value json.RawMessage
	err := json.Unmarshal([]byte(text), &value)
	var wrong *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		at := strings.Count(text[:min(max(int(wrong.Offset)-1, 0), len(text))], "\n") + 1
		return nil, invalidArgs("line %d is not JSON (%s)", at, wrong.Error())
	case err != nil:
		return nil, invalidArgs("this is not JSON")
	case len(text) > check.MaxArgs:
		return nil, invalidArgs("%s bytes, but the limit is %s", num(len(text)), num(check.MaxArgs))
	}
	return value, nil
}
