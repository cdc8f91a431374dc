package pdf

import (
	"math"
	"strings"
	"unicode"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// A glyph is the drawing of one code. Its edges are along and across its direction.
type glyph struct {
	angle          int // degrees, clockwise; 0 runs from left to right
	u0, u1         float64
	top, base, low float64
	text           string
	font           string
	size           float64
	from           edges // its position on the page
}

// execute executes one operator.
func (d *interpreter) execute(name string, operands []operand, l *lexer, resources types.Dict) error {
	switch name {
	case "q":
		d.save()
	case "Q":
		d.restore()
	case "cm":
		if m, ok := toMatrix(numbersOf(operands)); ok {
			if m = m.then(d.now.ctm); m.valid() {
				d.now.ctm = m
			}
		}
	case "Do":
		o := d.resource(resources, "XObject", operands)
		if d.name(d.dict(o)["Subtype"]) == "Form" {
			return d.form(o, resources)
		}
	case "gs":
		return d.applyState(d.resource(resources, "ExtGState", operands))
	case "BI":
		d.skipInlineImage(l)
	case "BMC", "BDC":
		d.beginMarked(operands, resources)
	case "EMC":
		d.endMarked()
	case "BT":
		d.text, d.line = identity, identity
	default:
		return d.doText(name, operands, resources)
	}
	return nil
}

// skipInlineImage skips an inline image: its entries up to ID, and its bytes.
func (d *interpreter) skipInlineImage(l *lexer) {
	for t := l.next(); t.kind != tokenEnd; t = l.next() {
		if t.kind == tokenWord && t.text == "ID" {
			l.skipImage()
			return
		}
	}
}

func (d *interpreter) doText(name string, operands []operand, resources types.Dict) error {
	n := numbersOf(operands)
	switch name {
	case "Tf":
		return d.selectFont(operands, resources)
	case "Tc", "Tw", "Tz", "TL", "Ts":
		if len(n) == 1 {
			d.set(name, n[0])
		}
	case "Td", "TD":
		if len(n) == 2 {
			if name == "TD" {
				d.now.leading = -n[1]
			}
			d.move(n[0], n[1])
		}
	case "Tm":
		if m, ok := toMatrix(n); ok {
			d.text, d.line = m, m
		}
	case "T*":
		d.move(0, -d.now.leading)
	case "Tj":
		return d.showLast(operands)
	case "'":
		d.move(0, -d.now.leading)
		return d.showLast(operands)
	case "\"":
		if len(operands) == 3 {
			d.now.word, d.now.char = operands[0].number, operands[1].number
		}
		d.move(0, -d.now.leading)
		return d.showLast(operands)
	case "TJ":
		return d.showArray(operands)
	}
	return nil
}

func (d *interpreter) set(name string, n float64) {
	switch name {
	case "Tc":
		d.now.char = n
	case "Tw":
		d.now.word = n
	case "Tz":
		d.now.scale = n / 100
	case "TL":
		d.now.leading = n
	case "Ts":
		d.now.rise = n
	}
}

func (d *interpreter) selectFont(operands []operand, resources types.Dict) error {
	if len(operands) < 2 {
		return nil
	}
	size := operands[len(operands)-1]
	o := d.resource(resources, "Font", operands[:len(operands)-1])
	if o == nil {
		d.now.font = nil
		return nil
	}
	f, err := d.source.font(o)
	if err != nil {
		return err
	}
	d.now.font, d.now.size = f, size.number
	return nil
}

func (d *interpreter) save() {
	if len(d.saved) >= maxStates {
		d.unsaved++
		return
	}
	d.saved = append(d.saved, d.now)
}

func (d *interpreter) restore() {
	switch {
	case d.unsaved > 0:
		d.unsaved--
	case len(d.saved) > 0:
		d.now = d.saved[len(d.saved)-1]
		d.saved = d.saved[:len(d.saved)-1]
	}
}

func (d *interpreter) move(x, y float64) {
	d.line = matrix{1, 0, 0, 1, x, y}.then(d.line)
	d.text = d.line
}

func (d *interpreter) showLast(operands []operand) error {
	if len(operands) == 0 || operands[len(operands)-1].kind != tokenString {
		return nil
	}
	return d.show(operands[len(operands)-1].token.text)
}

func (d *interpreter) showArray(operands []operand) error {
	if len(operands) == 0 {
		return nil
	}
	for _, t := range operands[len(operands)-1].items {
		if t.kind == tokenString {
			if err := d.show(t.text); err != nil {
				return err
			}
			continue
		}
		d.advance(-t.number / 1000 * d.now.size * d.now.scale)
	}
	return nil
}

func (d *interpreter) advance(by float64) { d.text = matrix{1, 0, 0, 1, by, 0}.then(d.text) }

func (d *interpreter) show(text string) error {
	f := d.now.font
	if f == nil {
		return nil
	}
	return f.eachCode(text, func(c shownCode) error {
		if err := d.step(); err != nil {
			return err
		}
		if d.source.text -= int64(len(c.text)) + 1; d.source.text < 0 {
			return ErrTooMuch
		}
		d.addGlyph(f, c)
		if len(d.glyphs) > maxGlyphs {
			return ErrTooMuch
		}
		by := c.width*d.now.size + d.now.char
		if c.space {
			by += d.now.word
		}
		d.advance(by * d.now.scale)
		return nil
	})
}

// addGlyph adds the glyph of one code if it is visible on the page.
func (d *interpreter) addGlyph(f *font, c shownCode) {
	m := matrix{d.now.size * d.now.scale, 0, 0, d.now.size, 0, d.now.rise}.then(d.text).then(d.now.ctm)
	along, size := math.Hypot(m[0], m[1]), math.Hypot(m[2], m[3])
	text := visibleText(c.text)
	if !m.valid() || along < 1e-6 || size < 1e-6 || text == "" {
		return
	}
	g := glyph{angle: (int(math.Round(math.Atan2(m[1], m[0])*180/math.Pi)) + 360) % 360, text: text, font: f.name, size: size}
	turn := turnBy(-g.angle)
	u, v := turn.point(m[4], m[5])
	g.u0, g.u1, g.base = u, u+max(0, c.width*along), v
	g.top, g.low = v-f.ascent*size, v-f.descent*size
	g.from = boundingBox(turnBy(g.angle), g.u0, g.top, g.u1, g.low)
	x, y := (g.from.x0+g.from.x1)/2, (g.from.y0+g.from.y1)/2
	if x < -1 || y < -1 || x > d.width+1 || y > d.height+1 {
		return
	}
	d.glyphs = append(d.glyphs, g)
}

// turnBy returns the rotation by degrees, clockwise.
func turnBy(degrees int) matrix {
	switch degrees = (degrees + 360) % 360; degrees {
	case 0:
		return identity
	case 90:
		return matrix{0, 1, -1, 0, 0, 0}
	case 180:
		return matrix{-1, 0, 0, -1, 0, 0}
	case 270:
		return matrix{0, -1, 1, 0, 0, 0}
	}
	sin, cos := math.Sincos(float64(degrees) * math.Pi / 180)
	return matrix{cos, sin, -sin, cos, 0, 0}
}

var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st")

// visibleText resolves ligatures to letters and removes invisible characters.
func visibleText(text string) string {
	text = ligatures.Replace(text)
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0xfeff:
			return -1
		}
		return r
	}, text)
}

func numbersOf(operands []operand) []float64 {
	all := make([]float64, 0, len(operands))
	for _, o := range operands {
		if o.kind != tokenNumber {
			return nil
		}
		all = append(all, o.number)
	}
	return all
}
