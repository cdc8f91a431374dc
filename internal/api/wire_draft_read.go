package api

import (
	stdjson "encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
)

// readDrafts decodes a list of drafts in the form in which clients of this package send them: without white space between the members, and with plain members
// only. ok is false for any other form, valid or not; the caller then uses the JSON library. A call may carry ten thousand drafts, and the library needs three
// times as long. A test compares the two.
func readDrafts(text []byte, drafts []holdfast.Draft) (read []holdfast.Draft, ok bool) {
	s := jsonScanner{text: text}
	if !s.take('[') {
		return nil, false
	}
	var before holdfast.Draft
	for {
		drafts = append(drafts, holdfast.Draft{})
		if d := &drafts[len(drafts)-1]; !s.draft(d, &before) {
			return nil, false
		} else {
			before.Kind, before.Queue, before.Owner = d.Kind, d.Queue, d.Owner
		}
		if !s.take(',') {
			return drafts, s.take(']') && s.at == len(text) && (!s.wide || utf8.Valid(text))
		}
	}
}

// draft reads one draft. Texts that are equal to those of the draft before share their memory.
func (s *jsonScanner) draft(d, before *holdfast.Draft) bool {
	if !s.take('{') {
		return false
	}
	for seen := 0; ; {
		begin := s.at + 1
		if s.at >= len(s.text) || s.text[s.at] != '"' || !s.quoted() {
			return false
		}
		name := s.text[begin : s.at-1]
		if !s.take(':') {
			return false
		}
		begin = s.at
		if !s.value(3) {
			return false
		}
		number, ok := setMember(d, before, string(name), s.text[begin:s.at])
		if !ok || seen&(1<<number) != 0 {
			return false
		}
		seen |= 1 << number
		if !s.take(',') {
			return s.take('}')
		}
	}
}

// setMember sets a member of a draft, and returns a number that identifies the member.
func setMember(d, before *holdfast.Draft, name string, value []byte) (number int, ok bool) {
	switch name {
	case "kind":
		return 0, setText(&d.Kind, before.Kind, value)
	case "queue":
		return 1, setText(&d.Queue, before.Queue, value)
	case "args":
		d.Args = append(make(stdjson.RawMessage, 0, len(value)), value...)
		return 2, true
	case "owner":
		return 3, setText(&d.Owner, before.Owner, value)
	case "id":
		return 4, setID(&d.ID, value)
	case "group":
		return 5, setID(&d.Group, value)
	case "priority":
		n, err := strconv.ParseInt(string(value), 10, 16)
		d.Priority = int16(n)
		return 6, err == nil
	case "max_attempts":
		n, err := strconv.Atoi(string(value))
		d.MaxAttempts = n
		return 7, err == nil
	case "dependency":
		return 8, setText(&d.Dependency, "", value)
	case "step":
		return 9, setText(&d.Step, "", value)
	case "unique_key":
		return 10, setText(&d.UniqueKey, "", value)
	case "idempotency_key":
		return 11, setText(&d.IdempotencyKey, "", value)
	case "order":
		return 12, setText(&d.Order, "", value)
	case "trace":
		return 13, setText(&d.Trace, "", value)
	}
	return 0, false
}

func setText(to *string, before string, value []byte) bool {
	if value[0] != '"' {
		return false
	}
	for _, c := range value {
		if c == '\\' {
			return false
		}
	}
	if value = value[1 : len(value)-1]; before == string(value) {
		*to = before
	} else {
		*to = string(value)
	}
	return true
}

func setID(to *holdfast.ID, value []byte) bool {
	if len(value) != 38 || value[0] != '"' {
		return false
	}
	id, err := holdfast.ParseID(string(value[1:37]))
	*to = id
	return err == nil
}
