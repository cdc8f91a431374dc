package api

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// sound reports whether JSON is valid: UTF-8, and no name is said twice. Nearly all that comes is seen through at once.
func sound(raw []byte) bool { return tidy(raw) || jsontext.Value(raw).IsValid() }

// tidy reports whether JSON is certainly valid and without spaces around its parts. It knows only what most JSON is made of: who is told false asks
// somebody who knows all of it. A test holds the two against each other.
func tidy(raw []byte) bool {
	s := scan{text: raw}
	return s.value(1) && s.at == len(raw) && (!s.wide || utf8.Valid(raw))
}

// How deep and how broad JSON may be to be seen through at once.
const (
	tidyDepth = 12
	tidyNames = 24
)

// A scan walks through JSON.
type scan struct {
	text []byte
	at   int
	wide bool // there is more than ASCII
}

// take steps over a byte if it is the next one.
func (s *scan) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scan) value(depth int) bool {
	if s.at >= len(s.text) || depth > tidyDepth {
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
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *scan) word(word string) bool {
	if len(s.text)-s.at < len(word) || string(s.text[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

func (s *scan) list(depth int) bool {
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

func (s *scan) object(depth int) bool {
	s.at++
	if s.take('}') {
		return true
	}
	var names [tidyNames][]byte
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
		if bytes.IndexByte(name, '\\') >= 0 { // it may be another one in disguise
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

// ordinary are the bytes that stand for themselves in a text.
var ordinary = func() (is [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// allOrdinary reports whether eight bytes are, all at once: none has its high bit set, is below a space, or is a quote or a backslash.
func allOrdinary(eight uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	quote, slash := eight^(each*'"'), eight^(each*'\\')
	return (eight|(eight-each*' ')|(quote-each)|(slash-each))&high == 0
}

func (s *scan) quoted() bool {
	for i := s.at + 1; i < len(s.text); i++ {
		for i+8 < len(s.text) && allOrdinary(binary.LittleEndian.Uint64(s.text[i:])) {
			i += 8
		}
		c := s.text[i]
		switch {
		case ordinary[c]:
		case c == '"':
			s.at = i + 1
			return true
		case c >= utf8.RuneSelf:
			s.wide = true
		case c != '\\' || i+1 >= len(s.text):
			return false
		default:
			i++
			if bytes.IndexByte([]byte(`"\/bfnrt`), s.text[i]) < 0 { // by number: not seen through
				return false
			}
		}
	}
	return false
}

func (s *scan) digits() bool {
	begin := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > begin
}

func (s *scan) number() bool {
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

// afterText is where a text ends that begins at a quote: behind its last one, or at the very end.
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

// afterValue is where a value ends that text begins with, if it is JSON at all; -1 where it has no end.
func afterValue(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i = afterText(text, i) - 1; depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
			if depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}
