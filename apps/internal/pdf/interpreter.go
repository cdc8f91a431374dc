package pdf

import (
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

const (
	maxOperands    = 256
	maxStates      = 256
	maxGlyphs      = 500_000 // on one page
	maxFormNesting = 20
)

// A state is the graphics state.
type state struct {
	ctm                                    matrix
	font                                   *font
	size, char, word, scale, leading, rise float64
}

// An interpreter runs the content of a page and collects the glyphs.
type interpreter struct {
	*source
	now        state
	saved      []state
	unsaved    int // saved states beyond maxStates, which are not kept
	text, line matrix
	glyphs     []glyph
	marked     []markedContent
	width      float64
	height     float64
	formDepth  int
}

// A markedContent is a part of the content that may have an ActualText.
type markedContent struct {
	text    string
	hasText bool
	from    int // its first glyph
}

// draw runs the content of a page and its annotations, which include form fields.
func (s *source) draw(p pageObject) ([]glyph, error) {
	d := &interpreter{source: s, text: identity, line: identity}
	d.width, d.height = p.size()
	d.now = state{ctm: p.base(), scale: 1}
	content, err := s.contents(p.dict["Contents"])
	if err != nil {
		return nil, err
	}
	if err := d.run(content, p.resources); err != nil {
		return nil, err
	}
	for _, o := range s.array(p.dict["Annots"]) {
		if err := d.drawAnnotation(p, s.dict(o)); err != nil {
			return nil, err
		}
	}
	return d.glyphs, nil
}

// contents returns all content streams of a page as one.
func (s *source) contents(o types.Object) ([]byte, error) {
	parts := s.array(o)
	if parts == nil {
		return s.content(o)
	}
	var all []byte
	for _, part := range parts {
		data, err := s.content(part)
		if err != nil {
			return nil, err
		}
		if len(all)+len(data) > maxStream {
			return nil, ErrTooMuch
		}
		all = append(append(all, data...), '\n')
	}
	return all, nil
}

// drawAnnotation draws the appearance of a visible annotation.
func (d *interpreter) drawAnnotation(p pageObject, note types.Dict) error {
	const hidden = 1<<1 | 1<<5
	if note == nil || d.integer(note["F"])&hidden != 0 || d.name(note["Subtype"]) == "Popup" {
		return nil
	}
	drawing := d.dict(note["AP"])["N"]
	if states, ok := d.resolve(drawing).(types.Dict); ok {
		drawing = states[d.name(note["AS"])]
	}
	form := d.dict(drawing)
	where, ok := d.rectangle(note["Rect"])
	box, hasBox := d.rectangle(form["BBox"])
	if !ok || !hasBox {
		return nil
	}
	own, _ := toMatrix(d.numbers(form["Matrix"]))
	shown := boundingBox(own, box.x0, box.y0, box.x1, box.y1)
	if shown.x1 <= shown.x0 || shown.y1 <= shown.y0 {
		return nil
	}
	sx, sy := (where.x1-where.x0)/(shown.x1-shown.x0), (where.y1-where.y0)/(shown.y1-shown.y0)
	d.now = state{ctm: matrix{sx, 0, 0, sy, where.x0 - shown.x0*sx, where.y0 - shown.y0*sy}.then(p.base()), scale: 1}
	return d.form(drawing, p.resources)
}

// form draws a form XObject.
func (d *interpreter) form(o types.Object, resources types.Dict) error {
	if d.formDepth >= maxFormNesting {
		return nil
	}
	if d.forms--; d.forms <= 0 {
		return ErrTooMuch
	}
	content, err := d.content(o)
	if err != nil {
		return err
	}
	form := d.dict(o)
	if own := d.dict(form["Resources"]); own != nil {
		resources = own
	}
	keep, saved, unsaved, text, line := d.now, d.saved, d.unsaved, d.text, d.line
	if own, ok := toMatrix(d.numbers(form["Matrix"])); ok {
		d.now.ctm = own.then(d.now.ctm)
	}
	d.saved, d.unsaved = nil, 0
	d.formDepth++
	err = d.run(content, resources)
	d.formDepth--
	d.now, d.saved, d.unsaved, d.text, d.line = keep, saved, unsaved, text, line
	return err
}

// An operand is a number, a string, a name, an array of numbers and strings, or a dictionary of strings.
type operand struct {
	token
	items []token
	dict  map[string]token
}

func (d *interpreter) run(content []byte, resources types.Dict) error {
	l := &lexer{data: content}
	marks := len(d.marked)
	defer func() { d.marked = d.marked[:min(marks, len(d.marked))] }()
	var operands []operand
	for {
		if err := d.step(); err != nil {
			return err
		}
		t := l.next()
		switch t.kind {
		case tokenEnd:
			return nil
		case tokenWord:
			if err := d.execute(t.text, operands, l, resources); err != nil {
				return err
			}
			operands = operands[:0]
			continue
		case tokenOpen:
			o, err := d.collect(l, t)
			if err != nil {
				return err
			}
			operands = append(operands, o)
		default:
			operands = append(operands, operand{token: t})
		}
		if len(operands) > maxOperands {
			operands = operands[:0]
		}
	}
}

// collect reads an array or a dictionary up to its end. Nested values are skipped.
func (d *interpreter) collect(l *lexer, open token) (operand, error) {
	o := operand{token: open}
	if open.text == "<<" {
		o.dict = map[string]token{}
	}
	key := ""
	for depth := 1; depth > 0; {
		if err := d.step(); err != nil {
			return o, err
		}
		t := l.next()
		switch {
		case t.kind == tokenEnd:
			return o, nil
		case t.kind == tokenOpen:
			depth++
		case t.kind == tokenClose:
			depth--
		case depth > 1:
		case o.dict == nil:
			o.items = append(o.items, t)
		case key == "" && t.kind == tokenName:
			key = t.text
		default:
			o.dict[key] = t
			key = ""
		}
	}
	return o, nil
}

// beginMarked begins marked content.
func (d *interpreter) beginMarked(operands []operand, resources types.Dict) {
	m := markedContent{from: len(d.glyphs)}
	if n := len(operands); n > 0 {
		last := operands[n-1]
		if text, ok := last.dict["ActualText"]; ok {
			m.text, m.hasText = decodeText([]byte(text.text)), true
		} else if last.kind == tokenName {
			properties := d.dict(d.dict(resources["Properties"])[last.text])
			if text, ok := properties["ActualText"]; ok {
				m.text, m.hasText = d.textOf(text), true
			}
		}
	}
	if len(d.marked) < maxStates {
		d.marked = append(d.marked, m)
	}
}

// endMarked ends marked content. If it has an ActualText, its first glyph gets that text and the others are dropped.
func (d *interpreter) endMarked() {
	if len(d.marked) == 0 {
		return
	}
	m := d.marked[len(d.marked)-1]
	d.marked = d.marked[:len(d.marked)-1]
	if !m.hasText || m.from >= len(d.glyphs) {
		return
	}
	first := d.glyphs[m.from]
	for _, g := range d.glyphs[m.from+1:] {
		first.u1 = max(first.u1, g.u1)
	}
	first.text = m.text
	d.glyphs = append(d.glyphs[:m.from], first)
}

// resource returns the resource that the last operand names.
func (d *interpreter) resource(resources types.Dict, kind string, operands []operand) types.Object {
	if len(operands) == 0 || operands[len(operands)-1].kind != tokenName {
		return nil
	}
	return d.dict(resources[kind])[operands[len(operands)-1].text]
}

// applyState applies the font of a graphics state from the resources.
func (d *interpreter) applyState(o types.Object) error {
	given := d.array(d.dict(o)["Font"])
	if len(given) != 2 {
		return nil
	}
	f, err := d.source.font(given[0])
	if err != nil {
		return err
	}
	d.now.font = f
	d.now.size, _ = d.number(given[1])
	return nil
}
