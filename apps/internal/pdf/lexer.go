package pdf

import (
	"bytes"
	"math"
	"strconv"
)

// A tokenKind is the kind of a token.
type tokenKind byte

const (
	tokenEnd tokenKind = iota
	tokenNumber
	tokenString
	tokenName
	tokenOpen  // of an array or a dictionary
	tokenClose // of either
	tokenWord  // an operator, or anything else
)

type token struct {
	kind   tokenKind
	number float64
	text   string // a string's bytes, a name without its slash, a word, or the bracket
}

// A lexer splits page contents and character maps into tokens. It never fails: invalid input becomes unknown words.
type lexer struct {
	data []byte
	at   int
}

func (l *lexer) next() token {
	l.skip()
	if l.at >= len(l.data) {
		return token{}
	}
	c := l.data[l.at]
	switch c {
	case '(':
		return l.literal()
	case '<':
		if l.peek(1) == '<' {
			return l.take(2, tokenOpen)
		}
		return l.hex()
	case '>':
		if l.peek(1) == '>' {
			return l.take(2, tokenClose)
		}
		return l.take(1, tokenWord)
	case '[':
		return l.take(1, tokenOpen)
	case ']':
		return l.take(1, tokenClose)
	case '/':
		return l.nameToken()
	case '{', '}', ')':
		return l.take(1, tokenWord)
	}
	start := l.at
	for l.at < len(l.data) && isRegular(l.data[l.at]) {
		l.at++
	}
	word := l.data[start:l.at]
	if isDigit(c) || c == '.' || c == '-' || c == '+' {
		if n, ok := parseNumber(word); ok {
			return token{kind: tokenNumber, number: n}
		}
	}
	return token{kind: tokenWord, text: string(word)}
}

func (l *lexer) take(n int, kind tokenKind) token {
	t := token{kind: kind, text: string(l.data[l.at : l.at+n])}
	l.at += n
	return t
}

func (l *lexer) peek(n int) byte {
	if l.at+n < len(l.data) {
		return l.data[l.at+n]
	}
	return 0
}

// skip skips white space and comments.
func (l *lexer) skip() {
	for ; l.at < len(l.data); l.at++ {
		c := l.data[l.at]
		if c == '%' {
			for l.at < len(l.data) && l.data[l.at] != '\n' && l.data[l.at] != '\r' {
				l.at++
			}
			continue
		}
		if !isWhite(c) {
			return
		}
	}
}

func (l *lexer) literal() token {
	l.at++
	var b []byte
	for depth := 1; l.at < len(l.data); l.at++ {
		c := l.data[l.at]
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				l.at++
				return token{kind: tokenString, text: string(b)}
			}
		case '\\':
			b = l.escaped(b)
			continue
		case '\r':
			if l.peek(1) == '\n' {
				l.at++
			}
			c = '\n'
		}
		b = append(b, c)
	}
	return token{kind: tokenString, text: string(b)}
}

// escaped appends the character of an escape sequence and stops at its last byte.
func (l *lexer) escaped(b []byte) []byte {
	l.at++
	if l.at >= len(l.data) {
		return b
	}
	c := l.data[l.at]
	if i := bytes.IndexByte([]byte("nrtbf"), c); i >= 0 {
		return append(b, "\n\r\t\b\f"[i])
	}
	switch {
	case c == '\r':
		if l.peek(1) == '\n' {
			l.at++
		}
		return b
	case c == '\n':
		return b
	case c < '0' || c > '7':
		return append(b, c)
	}
	n := 0
	for i := 0; i < 3 && l.at < len(l.data) && l.data[l.at] >= '0' && l.data[l.at] <= '7'; i++ {
		n = n*8 + int(l.data[l.at]-'0')
		l.at++
	}
	l.at--
	return append(b, byte(n))
}

func (l *lexer) hex() token {
	l.at++
	var b []byte
	half, pending := byte(0), false
	for ; l.at < len(l.data) && l.data[l.at] != '>'; l.at++ {
		v, ok := hexValue(l.data[l.at])
		if !ok {
			continue
		}
		if pending {
			b = append(b, half<<4|v)
		}
		half, pending = v, !pending
	}
	l.at++
	if pending {
		b = append(b, half<<4)
	}
	return token{kind: tokenString, text: string(b)}
}

func (l *lexer) nameToken() token {
	l.at++
	var b []byte
	for ; l.at < len(l.data) && isRegular(l.data[l.at]); l.at++ {
		c := l.data[l.at]
		if c == '#' {
			high, ok1 := hexValue(l.peek(1))
			low, ok2 := hexValue(l.peek(2))
			if ok1 && ok2 {
				c = high<<4 | low
				l.at += 2
			}
		}
		b = append(b, c)
	}
	return token{kind: tokenName, text: string(b)}
}

// skipImage skips the bytes of an inline image.
func (l *lexer) skipImage() {
	for l.at < len(l.data) {
		i := bytes.Index(l.data[l.at:], []byte("EI"))
		if i < 0 {
			l.at = len(l.data)
			return
		}
		before := l.at + i - 1
		l.at += i + 2
		if before >= 0 && isWhite(l.data[before]) && (l.at >= len(l.data) || isWhite(l.data[l.at])) && l.looksLikeContent() {
			return
		}
	}
}

// looksLikeContent reports whether content can follow here: the bytes of an image can contain what looks like its end.
func (l *lexer) looksLikeContent() bool {
	for _, c := range l.data[l.at:min(len(l.data), l.at+12)] {
		if c > 126 || c < 32 && !isWhite(c) {
			return false
		}
	}
	return true
}

// parseNumber parses a number, also with two signs or a sign in the middle, which some programs write.
func parseNumber(word []byte) (float64, bool) {
	s := string(bytes.TrimLeft(word, "+-"))
	if i := bytes.IndexByte([]byte(s), '-'); i > 0 {
		s = s[:i]
	}
	if s == "" || s == "." {
		return 0, len(word) > 0
	}
	for i := range len(s) {
		if !isDigit(s[i]) && s[i] != '.' {
			return 0, false
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return 0, false
	}
	if word[0] == '-' {
		n = -n
	}
	return n, true
}

func isWhite(c byte) bool {
	return c == 0 || c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == ' '
}

func isRegular(c byte) bool {
	return !isWhite(c) && bytes.IndexByte([]byte("()<>[]{}/%"), c) < 0
}

func hexValue(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
