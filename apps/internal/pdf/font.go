package pdf

import (
	"strings"

	corefont "github.com/pdfcpu/pdfcpu/pkg/font"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// A font maps codes to text and widths.
type font struct {
	name            string // without the prefix of a subset
	ascent, descent float64
	unit            float64 // of the widths, in em
	widths          map[int]float64
	missing         float64
	texts           [256]string // of a font with one-byte codes
	composite       bool
	toUnicode       *cmap
	codes           *cmap // of a composite font whose codes are not glyph numbers
	unicode         bool  // a composite font whose codes are UTF-16
}

// A shownCode is one code of a string with its text and width.
type shownCode struct {
	text  string
	width float64 // in em
	space bool    // the space code, to which word spacing applies
}

// font returns the font of an object. It is read once.
func (s *source) font(o types.Object) (*font, error) {
	number := objectNumber(o)
	if f, ok := s.fonts[number]; ok && number != 0 {
		return f, nil
	}
	f, err := s.makeFont(s.dict(o))
	if err != nil {
		return nil, err
	}
	if number != 0 {
		s.fonts[number] = f
	}
	return f, nil
}

func (s *source) makeFont(d types.Dict) (*font, error) {
	f := &font{name: plainName(s.name(d["BaseFont"])), unit: 0.001, widths: map[int]float64{}, missing: 0.5}
	f.ascent, f.descent = standardHeight(f.name)
	var err error
	if o, ok := d["ToUnicode"]; ok {
		if f.toUnicode, err = s.cmap(o); err != nil {
			return nil, err
		}
	}
	if s.name(d["Subtype"]) == "Type0" {
		f.composite = true
		return f, s.fillComposite(f, d)
	}
	s.fillHeight(f, s.dict(d["FontDescriptor"]))
	f.texts = s.encodingOf(f, d)
	s.fillWidths(f, d)
	return f, nil
}

func (s *source) cmap(o types.Object) (*cmap, error) {
	data, err := s.content(o)
	if err != nil || len(data) == 0 {
		return nil, ignoreDamage(err)
	}
	return parseCMap(s, data)
}

// ignoreDamage drops an ErrDamaged: a broken font does not make the whole document unreadable. Other errors, such as ErrTooMuch, are returned.
func ignoreDamage(err error) error {
	if err != nil && !isDamage(err) {
		return err
	}
	return nil
}

// encodingOf returns the texts of the 256 codes of a font: a base encoding, and differences from it by glyph names.
func (s *source) encodingOf(f *font, d types.Dict) [256]string {
	base := s.name(d["Encoding"])
	own := s.dict(d["Encoding"])
	if own != nil {
		base = s.name(own["BaseEncoding"])
	}
	if base == "" && s.name(d["Subtype"]) == "TrueType" {
		base = "WinAnsiEncoding"
	}
	texts := encoding(base)
	if f.name == "ZapfDingbats" {
		texts = dingbats()
	}
	at := 0
	for _, o := range s.array(own["Differences"]) {
		if n, ok := s.number(o); ok {
			at = int(max(0, min(n, 256)))
			continue
		}
		if at < 256 {
			text, _ := glyphText(s.name(o))
			texts[at] = text
		}
		at++
	}
	return texts
}

func (s *source) fillWidths(f *font, d types.Dict) {
	if m := s.numbers(d["FontMatrix"]); s.name(d["Subtype"]) == "Type3" && len(m) == 6 && m[0] != 0 {
		f.unit = m[0]
	}
	if n, ok := s.number(s.dict(d["FontDescriptor"])["MissingWidth"]); ok {
		f.missing = n * f.unit
	}
	first := s.integer(d["FirstChar"])
	all := s.array(d["Widths"])
	for i, o := range all {
		if n, ok := s.number(o); ok && first+i < 256 {
			f.widths[first+i] = n * f.unit
		}
	}
	if core := coreName(f.name); len(all) == 0 && core != "" {
		for c, text := range f.texts {
			f.widths[c] = coreWidth(core, c, text)
		}
	}
}

func (s *source) fillHeight(f *font, descriptor types.Dict) {
	if up, ok := s.number(descriptor["Ascent"]); ok && up > 0 {
		f.ascent = min(up*0.001, 1.05)
	}
	if down, ok := s.number(descriptor["Descent"]); ok && down != 0 {
		f.descent = max(-abs(down)*0.001, -0.4)
	}
}

func (s *source) fillComposite(f *font, d types.Dict) error {
	below := s.array(d["DescendantFonts"])
	if len(below) == 0 {
		return nil
	}
	child := s.dict(below[0])
	s.fillHeight(f, s.dict(child["FontDescriptor"]))
	f.missing = 1
	if n, ok := s.number(child["DW"]); ok {
		f.missing = n * 0.001
	}
	s.fillGlyphWidths(f, s.array(child["W"]))
	name := s.name(d["Encoding"])
	f.unicode = strings.Contains(name, "UCS2") || strings.Contains(name, "UTF16")
	if name != "" {
		return nil
	}
	var err error
	f.codes, err = s.cmap(d["Encoding"])
	return err
}

// fillGlyphWidths reads the two forms of the table of widths: first [w w w], and first last w.
func (s *source) fillGlyphWidths(f *font, table types.Array) {
	for i := 0; i+1 < len(table); {
		first := s.integer(table[i])
		if list := s.array(table[i+1]); list != nil {
			for j, o := range list {
				n, _ := s.number(o)
				f.widths[first+j] = n * 0.001
			}
			i += 2
			continue
		}
		if i+2 >= len(table) {
			return
		}
		n, _ := s.number(table[i+2])
		for c := first; c <= s.integer(table[i+1]) && c < 1<<16; c++ {
			f.widths[c] = n * 0.001
		}
		i += 3
	}
}

// eachCode splits a string into codes.
func (f *font) eachCode(text string, each func(shownCode) error) error {
	for len(text) > 0 {
		n := 1
		if f.composite {
			n = 2
			if f.codes != nil {
				n = f.codes.length(text)
			}
			n = min(n, len(text))
		}
		if err := each(f.code(text[:n])); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

func (f *font) code(codeBytes string) shownCode {
	c := code(codeBytes)
	glyph := int(c)
	if f.codes != nil {
		glyph = f.codes.glyph(c)
	}
	width, ok := f.widths[glyph]
	if !ok {
		width = f.missing
	}
	return shownCode{text: f.text(c), width: width, space: c == 32 && len(codeBytes) == 1}
}

// text returns the text of a code. An unknown code becomes U+FFFD, so that its loss is visible.
func (f *font) text(c uint32) string {
	if f.toUnicode != nil {
		if text, ok := f.toUnicode.text(c); ok {
			return text
		}
	}
	switch {
	case f.unicode:
		return string(rune(c))
	case f.composite:
		return "\ufffd"
	}
	return f.texts[c&255]
}

// plainName removes the six-letter prefix from the name of a font subset.
func plainName(name string) string {
	if len(name) > 7 && name[6] == '+' && strings.ToUpper(name[:6]) == name[:6] {
		return name[7:]
	}
	return name
}

// coreName returns the name of the standard font with the same measures, or "".
func coreName(name string) string {
	if corefont.IsCoreFont(name) {
		return name
	}
	style := strings.ToLower(name)
	bold, slanted := strings.Contains(style, "bold"), strings.Contains(style, "italic") || strings.Contains(style, "oblique")
	switch {
	case strings.HasPrefix(style, "arial") || strings.HasPrefix(style, "helvetica"):
		return pick("Helvetica", bold, slanted, [4]string{"", "-Oblique", "-Bold", "-BoldOblique"})
	case strings.HasPrefix(style, "times"):
		return pick("Times", bold, slanted, [4]string{"-Roman", "-Italic", "-Bold", "-BoldItalic"})
	case strings.HasPrefix(style, "courier"):
		return pick("Courier", bold, slanted, [4]string{"", "-Oblique", "-Bold", "-BoldOblique"})
	}
	return ""
}

func pick(name string, bold, slanted bool, styles [4]string) string {
	i := 0
	if slanted {
		i++
	}
	if bold {
		i += 2
	}
	return name + styles[i]
}

func coreWidth(core string, c int, text string) float64 {
	if r := []rune(text); core != "Symbol" && core != "ZapfDingbats" && len(r) == 1 {
		if narrow, ok := charmap.Windows1252.EncodeRune(r[0]); ok {
			c = int(narrow)
		}
	}
	n, err := corefont.CharWidth(core, rune(c))
	if err != nil {
		return 0.5
	}
	return float64(n) * 0.001
}

// standardHeight returns the ascent and descent for fonts that do not define them.
func standardHeight(name string) (up, down float64) {
	core := coreName(name)
	switch {
	case strings.HasPrefix(core, "Helvetica"):
		return 0.718, -0.207
	case strings.HasPrefix(core, "Times"):
		return 0.683, -0.217
	case strings.HasPrefix(core, "Courier"):
		return 0.629, -0.157
	}
	return 0.75, -0.25
}

// dingbats returns the characters of the standard font ZapfDingbats that forms use.
func dingbats() [256]string {
	var e [256]string
	for c := 0x21; c < 0x7f; c++ {
		e[c] = string(rune(0x2700 + c - 0x20))
	}
	e['l'], e['n'], e['u'], e['('], e[' '] = "●", "■", "◆", "☎", " "
	return e
}

func compose(s string) string { return norm.NFC.String(s) }

func abs(n float64) float64 { return max(n, -n) }
