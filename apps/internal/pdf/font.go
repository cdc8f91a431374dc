package pdf

import (
	"strings"

	corefont "github.com/pdfcpu/pdfcpu/pkg/font"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// A font says what codes show and how wide they are.
type font struct {
	name            string // without the subset's prefix
	ascent, descent float64
	unit            float64 // of the widths, in ems
	widths          map[int]float64
	missing         float64
	texts           [256]string // of a font with one byte a code
	composite       bool
	meaning         *cmap // ToUnicode
	codes           *cmap // of a composite font whose codes are no numbers of glyphs
	unicode         bool  // a composite font whose codes are UTF-16
}

// A sign is one code of a string, and what is known of it.
type sign struct {
	text  string
	width float64 // in ems
	space bool    // the code that is widened between words
}

// font is made once for each object.
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
		if f.meaning, err = s.cmap(o); err != nil {
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
		return nil, onlyCost(err)
	}
	return parseCMap(s, data)
}

// onlyCost lets pass what is broken: a font that cannot be understood does not make the whole document unreadable. What costs too much does.
func onlyCost(err error) error {
	if err != nil && !isDamage(err) {
		return err
	}
	return nil
}

// encodingOf puts together what the font says of its codes: a base, and differences from it by the names of glyphs.
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
	first := s.whole(d["FirstChar"])
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

// fillGlyphWidths reads the two forms of the table: first [w w w], and first last w.
func (s *source) fillGlyphWidths(f *font, table types.Array) {
	for i := 0; i+1 < len(table); {
		first := s.whole(table[i])
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
		for c := first; c <= s.whole(table[i+1]) && c < 1<<16; c++ {
			f.widths[c] = n * 0.001
		}
		i += 3
	}
}

// signs cuts a string into codes.
func (f *font) signs(text string, each func(sign) error) error {
	for len(text) > 0 {
		n := 1
		if f.composite {
			n = 2
			if f.codes != nil {
				n = f.codes.length(text)
			}
			n = min(n, len(text))
		}
		if err := each(f.sign(text[:n])); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

func (f *font) sign(codeBytes string) sign {
	c := code(codeBytes)
	glyph := int(c)
	if f.codes != nil {
		glyph = f.codes.glyph(c)
	}
	width, ok := f.widths[glyph]
	if !ok {
		width = f.missing
	}
	return sign{text: f.shows(c), width: width, space: c == 32 && len(codeBytes) == 1}
}

// shows is what a code means. What nobody can know is shown as such, so that it is not lost without a word.
func (f *font) shows(c uint32) string {
	if f.meaning != nil {
		if text, ok := f.meaning.text(c); ok {
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

// plainName leaves out the six letters that stand before the name of a font that is not there as a whole.
func plainName(name string) string {
	if len(name) > 7 && name[6] == '+' && strings.ToUpper(name[:6]) == name[:6] {
		return name[7:]
	}
	return name
}

// coreName is the name under which the measures of a font that every reader has are known; "" for other fonts.
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

// standardHeight is how far letters reach above and below the line, for fonts that do not say.
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

// dingbats are the signs whose font every reader has, as far as forms use them.
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
