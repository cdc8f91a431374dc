package pdf

import (
	"unicode/utf16"
)

const (
	maxCodes  = 200_000 // single codes in one map
	maxTarget = 64      // bytes of the text of one code
)

// A cmap maps the codes of a font to characters or to glyph numbers.
type cmap struct {
	lengths [5]bool // the lengths of its codes, in bytes
	spaces  []codeSpace
	texts   map[uint32]string
	ranges  []textRange
	glyphs  []glyphRange
}

type codeSpace struct {
	length    int
	low, high uint32
}

type textRange struct {
	low, high uint32
	text      []uint16 // of the first code; the last unit counts up
}

type glyphRange struct {
	low, high uint32
	first     int
}

// parseCMap parses a map. It skips what it does not understand.
func parseCMap(s *source, data []byte) (*cmap, error) {
	m := &cmap{texts: map[uint32]string{}}
	l := &lexer{data: data}
	for t := l.next(); t.kind != tokenEnd; t = l.next() {
		if err := s.step(); err != nil {
			return nil, err
		}
		if t.kind != tokenWord {
			continue
		}
		var err error
		switch t.text {
		case "begincodespacerange":
			err = m.section(s, l, 2, m.addSpace)
		case "beginbfchar":
			err = m.section(s, l, 2, m.addText)
		case "beginbfrange":
			err = m.section(s, l, 3, m.addRange)
		case "begincidchar":
			err = m.section(s, l, 2, func(t []token) { m.addGlyphs([]token{t[0], t[0], t[1]}) })
		case "begincidrange":
			err = m.section(s, l, 3, m.addGlyphs)
		}
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// section reads entries of n tokens each until the end of the section. An array counts as one token; its items follow the other tokens.
func (m *cmap) section(s *source, l *lexer, n int, add func([]token)) error {
	var entry []token
	for {
		if err := s.step(); err != nil {
			return err
		}
		t := l.next()
		switch t.kind {
		case tokenEnd, tokenWord:
			return nil
		case tokenOpen:
			entry = append(entry, t)
			for t = l.next(); t.kind == tokenString; t = l.next() {
				entry = append(entry, t)
			}
		default:
			entry = append(entry, t)
		}
		if len(entry) >= n {
			add(entry)
			entry = entry[:0]
		}
	}
}

func (m *cmap) addSpace(e []token) {
	if n := len(e[0].text); n >= 1 && n <= 4 && len(e[1].text) == n && len(m.spaces) < 100 {
		m.lengths[n] = true
		m.spaces = append(m.spaces, codeSpace{n, code(e[0].text), code(e[1].text)})
	}
}

func (m *cmap) addText(e []token) {
	if len(m.texts) < maxCodes && len(e[1].text) <= maxTarget {
		m.texts[code(e[0].text)] = string(utf16.Decode(units(e[1].text)))
	}
}

func (m *cmap) addRange(e []token) {
	low, high := code(e[0].text), code(e[1].text)
	if e[2].kind == tokenOpen {
		for i, t := range e[3:] {
			m.addText([]token{{text: codeText(low + uint32(i))}, t})
		}
		return
	}
	if target := units(e[2].text); high >= low && len(target) > 0 && len(e[2].text) <= maxTarget && len(m.ranges) < maxCodes {
		m.ranges = append(m.ranges, textRange{low, high, target})
	}
}

func (m *cmap) addGlyphs(e []token) {
	low, high := code(e[0].text), code(e[1].text)
	if high >= low && e[2].kind == tokenNumber && len(m.glyphs) < maxCodes {
		m.glyphs = append(m.glyphs, glyphRange{low, high, int(max(0, min(e[2].number, 1<<20)))})
	}
}

// text returns the text of a code, and false if the map has none.
func (m *cmap) text(c uint32) (string, bool) {
	if s, ok := m.texts[c]; ok {
		return s, true
	}
	for i := len(m.ranges) - 1; i >= 0; i-- {
		if r := m.ranges[i]; c >= r.low && c <= r.high {
			u := append([]uint16(nil), r.text...)
			u[len(u)-1] += uint16(c - r.low)
			s := string(utf16.Decode(u))
			if len(m.texts) < maxCodes {
				m.texts[c] = s
			}
			return s, true
		}
	}
	return "", false
}

// glyph returns the glyph number of a code.
func (m *cmap) glyph(c uint32) int {
	for i := len(m.glyphs) - 1; i >= 0; i-- {
		if r := m.glyphs[i]; c >= r.low && c <= r.high {
			return r.first + int(c-r.low)
		}
	}
	return 0
}

// length returns the length of the code at the beginning of a string.
func (m *cmap) length(s string) int {
	for n := 1; n <= 4 && n <= len(s); n++ {
		c := code(s[:n])
		for _, space := range m.spaces {
			if space.length == n && c >= space.low && c <= space.high {
				return n
			}
		}
	}
	for n := 1; n <= 4; n++ {
		if m.lengths[n] {
			return n
		}
	}
	return 1
}

func code(s string) uint32 {
	n := uint32(0)
	for i := range min(len(s), 4) {
		n = n<<8 | uint32(s[i])
	}
	return n
}

func codeText(c uint32) string {
	return string([]byte{byte(c >> 24), byte(c >> 16), byte(c >> 8), byte(c)})
}

// units splits a string into the units of UTF-16. A single byte, which some programs write, is one unit.
func units(s string) []uint16 {
	if len(s) == 1 {
		return []uint16{uint16(s[0])}
	}
	u := make([]uint16, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		u = append(u, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return u
}
