package rule

import (
	"bytes"
	"encoding/json"
)

// Merge applies a JSON merge patch (RFC 7396) to a JSON value. What the patch does not touch is kept to the letter: numbers,
// spelling, order. Both must be valid JSON.
func Merge(target, patch json.RawMessage) json.RawMessage {
	changes, is := members(patch)
	if !is {
		return bytes.TrimSpace(patch)
	}
	wanted := make(map[string]json.RawMessage, len(changes))
	for _, c := range changes {
		wanted[c.name] = c.value
	}
	out, met := []byte{'{'}, map[string]bool{}
	put := func(m member, value json.RawMessage) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, m.text...), ':'), value...)
	}
	was, _ := members(target)
	for _, m := range was {
		change, changed := wanted[m.name]
		met[m.name] = true
		switch {
		case !changed:
			put(m, m.value)
		case !isNull(change):
			put(m, Merge(m.value, change))
		}
	}
	for _, c := range changes {
		if value := wanted[c.name]; !met[c.name] && !isNull(value) {
			put(c, Merge(nil, value))
		}
		met[c.name] = true
	}
	return append(out, '}')
}

func isNull(value json.RawMessage) bool { return string(bytes.TrimSpace(value)) == "null" }

// A member is one name and value of an object. Its text is the name as it was written.
type member struct {
	name  string
	text  []byte
	value json.RawMessage
}

// members are those of an object, in order. What is no object has none.
func members(value json.RawMessage) (all []member, object bool) {
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
		m := member{name: name.(string), text: bytes.TrimLeft(value[before:in.InputOffset()], ", \t\r\n")}
		if err := in.Decode(&m.value); err != nil {
			return nil, false
		}
		all = append(all, m)
	}
	return all, true
}
