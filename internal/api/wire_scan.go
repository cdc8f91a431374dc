package api

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// validJSON reports whether JSON is valid: correct syntax, UTF-8, and no member name twice. The scanner decides most values; the JSON library decides the rest.
func validJSON(raw []byte) bool { return compactJSON(raw) || jsontext.Value(raw).IsValid() }

// compactJSON reports whether JSON is certainly valid and has no insignificant whitespace. The scanner accepts only a subset of JSON: on false, use the full
// parser. A test compares the two.
func compactJSON(raw []byte) bool {
	s := jsonScanner{text: raw}
	return s.value(1) && s.at == len(raw) && (!s.wide || utf8.Valid(raw))
}

// The limits of the scanner: maximum depth, and maximum number of members in one object. Beyond them compactJSON is false.
const (
	scanMaxDepth = 12
	scanMaxNames = 24
)

// A jsonScanner walks through JSON without building values. Its methods return false for invalid JSON and for valid JSON that the scanner does not support.
type jsonScanner struct {
	text []byte
	at   int
	wide bool // a string has non-ASCII bytes: the caller must check that they are UTF-8
}

// take skips a byte if it comes next.
func (s *jsonScanner) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *jsonScanner) value(depth int) bool {
	if s.at >= len(s.text) || depth > scanMaxDepth {
		return false
	}
	switch s.text[s.at] {
	case '{':
		return s.object(depth)
	case '[':
		return s.list(depth)
	case '"':
		return s.quoted()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.number()
}

func (s *jsonScanner) literal(word string) bool {
	if len(s.text)-s.at < len(word) || string(s.text[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

func (s *jsonScanner) list(depth int) bool {
	s.at++
	if s.take(']') {
		return true
	}
	for s.value(depth + 1) {
		if !s.take(',') {
			return s.take(']')
		}
	}
	return false
}

func (s *jsonScanner) object(depth int) bool {
	s.at++
	if s.take('}') {
		return true
	}
	var names [scanMaxNames][]byte
	for n := range names {
		begin := s.at
		if !s.take('"') {
			return false
		}
		s.at = begin
		if !s.quoted() {
			return false
		}
		name := s.text[begin:s.at]
		if bytes.IndexByte(name, '\\') >= 0 { // an escaped name may equal another one
			return false
		}
		for _, other := range names[:n] {
			if string(other) == string(name) {
				return false
			}
		}
		names[n] = name
		if !s.take(':') || !s.value(depth+1) {
			return false
		}
		if !s.take(',') {
			return s.take('}')
		}
	}
	return false
}

// unescaped are the ASCII bytes that need no escape in a JSON string.
var unescaped = func() (is [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// allUnescaped reports whether eight bytes are unescaped, in one step: none has its high bit set, is below a space, or is a quote or a backslash.
func allUnescaped(eight uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := eight^(each*'"'), eight^(each*'\\')
	return (eight|(eight-each*' ')|(quote-each)|(slash-each))&high == 0
}

func (s *jsonScanner) quoted() bool {
	for i := s.at + 1; i < len(s.text); i++ {
		for i+8 < len(s.text) && allUnescaped(binary.LittleEndian.Uint64(s.text[i:])) {
			i += 8
		}
		c := s.text[i]
		switch {
		case unescaped[c]:
		case c == '"':
			s.at = i + 1
			return true
		case c >= utf8.RuneSelf:
			s.wide = true
		case c != '\\' || i+1 >= len(s.text):
			return false
		default:
			i++
			if bytes.IndexByte([]byte(`"\/bfnrt`), s.text[i]) < 0 { // a \u escape: not supported by the scanner
				return false
			}
		}
	}
	return false
}

func (s *jsonScanner) digits() bool {
	begin := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > begin
}

func (s *jsonScanner) number() bool {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return false
	}
	if s.take('.') && !s.digits() {
		return false
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		return s.digits()
	}
	return true
}

// afterText returns the end of the string that starts with the quote at position at, or the end of text if the string has no end.
func afterText(text []byte, at int) int {
	for next := at + 1; ; next++ {
		found := bytes.IndexByte(text[next:], '"')
		if found < 0 {
			return len(text)
		}
		next += found
		escaped := false
		for i := next - 1; i > at && text[i] == '\\'; i-- {
			escaped = !escaped
		}
		if !escaped {
			return next + 1
		}
	}
}
