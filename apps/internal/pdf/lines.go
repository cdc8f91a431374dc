package pdf

import (
	"cmp"
	"slices"
)

// The distances by which glyphs are grouped, in parts of the font size.
const (
	sameBase   = 0.2  // baselines that count as one
	wordGap    = 0.1  // letters that are further apart belong to two words
	lineGap    = 1.5  // words that are further apart belong to two lines at the same height
	overprint  = 0.1  // the same letter this close was drawn twice to look bold
	paragraph  = 0.85 // lines that are further apart belong to two blocks
	unevenness = 0.3  // how much the distance of lines may grow within a block
	nearby     = 64   // how many neighbouring lines are considered
)

// A row collects the glyphs of a line, from left to right.
type row struct {
	glyphs         []glyph
	u0, u1         float64
	top, base, low float64
	size           float64
}

func newRow(glyphs []glyph) row {
	r := row{glyphs: glyphs, u0: glyphs[0].u0, u1: glyphs[0].u1, top: glyphs[0].top, base: glyphs[0].base, low: glyphs[0].low}
	sizes := map[float64]int{}
	for _, g := range glyphs {
		r.u0, r.u1 = min(r.u0, g.u0), max(r.u1, g.u1)
		r.top, r.low = min(r.top, g.top), max(r.low, g.low)
		if sizes[g.size]++; sizes[g.size] > sizes[r.size] {
			r.size, r.base = g.size, g.base
		}
	}
	return r
}

// blocks groups glyphs into lines and lines into blocks, in reading order. Rotated text forms blocks of its own, after the horizontal text.
func (s *source) blocks(glyphs []glyph) ([]Block, error) {
	directions := map[int][]glyph{}
	for _, g := range glyphs {
		directions[g.angle] = append(directions[g.angle], g)
	}
	angles := make([]int, 0, len(directions))
	for angle := range directions {
		angles = append(angles, angle)
	}
	slices.Sort(angles)
	var all []Block
	for _, angle := range angles {
		rows := joinSmall(rowsOf(directions[angle]))
		found, err := s.groupLines(rows)
		if err != nil {
			return nil, err
		}
		for _, b := range inOrder(found) {
			if block := b.block(turnBy(angle)); len(block.Lines) > 0 {
				all = append(all, block)
			}
		}
	}
	return all, nil
}

// rowsOf collects the glyphs on one baseline, and splits them at wide gaps.
func rowsOf(glyphs []glyph) []row {
	slices.SortStableFunc(glyphs, func(a, b glyph) int { return cmp.Compare(a.base, b.base) })
	var rows []row
	for from := 0; from < len(glyphs); {
		to := from + 1
		for to < len(glyphs) && glyphs[to].base-glyphs[from].base <= sameBase*min(glyphs[to].size, glyphs[from].size) {
			to++
		}
		rows = append(rows, splitRow(glyphs[from:to])...)
		from = to
	}
	return rows
}

func splitRow(glyphs []glyph) []row {
	slices.SortStableFunc(glyphs, func(a, b glyph) int { return cmp.Compare(a.u0, b.u0) })
	var rows []row
	var part []glyph
	var end float64
	finish := func() {
		if len(part) > 0 {
			rows = append(rows, newRow(part))
		}
		part = nil
	}
	for _, g := range glyphs {
		if g.text == " " && (len(part) == 0 || part[len(part)-1].text == " ") {
			continue
		}
		if len(part) > 0 && isDrawnTwice(part, g) {
			continue
		}
		if len(part) > 0 && g.u0-end > lineGap*g.size {
			finish()
		}
		if g.text == " " && len(part) == 0 {
			continue
		}
		if len(part) == 0 {
			end = g.u1
		}
		if part = append(part, g); g.text != " " {
			end = max(end, g.u1)
		}
	}
	finish()
	return rows
}

// isDrawnTwice reports whether the same glyph was already drawn at this position.
func isDrawnTwice(part []glyph, g glyph) bool {
	for i := len(part) - 1; i >= max(0, len(part)-3); i-- {
		if p := part[i]; p.text == g.text && abs(p.u0-g.u0) < overprint*g.size && abs(p.base-g.base) < overprint*g.size {
			return true
		}
	}
	return false
}

// joinSmall adds superscripts and subscripts to the line that they belong to.
func joinSmall(rows []row) []row {
	joined := make([]bool, len(rows))
	for i := range rows {
		for j := max(0, i-nearby); j < min(len(rows), i+nearby) && !joined[i]; j++ {
			if i != j && !joined[j] && belongs(rows[i], rows[j]) {
				glyphs := append(slices.Clone(rows[j].glyphs), rows[i].glyphs...)
				slices.SortStableFunc(glyphs, func(a, b glyph) int { return cmp.Compare(a.u0, b.u0) })
				rows[j] = newRow(glyphs)
				joined[i] = true
			}
		}
	}
	var left []row
	for i, r := range rows {
		if !joined[i] {
			left = append(left, r)
		}
	}
	return left
}

func belongs(small, big row) bool {
	if small.size*1.15 > big.size || len(small.glyphs) > 12 {
		return false
	}
	shared := min(small.low, big.low) - max(small.top, big.top)
	if shared < (small.low-small.top)/2 {
		return false
	}
	gap := max(small.u0-big.u1, big.u0-small.u1)
	return gap < 0.3*big.size
}

// words splits a line into words, in reading order.
func (r row) words() []Word {
	var spaced []glyph
	for i, g := range r.glyphs {
		if i > 0 && g.text != " " && r.glyphs[i-1].text != " " && g.u0-r.glyphs[i-1].u1 > wordGap*min(g.size, r.glyphs[i-1].size) {
			spaced = append(spaced, glyph{text: " "})
		}
		spaced = append(spaced, g)
	}
	var words []Word
	var word []glyph
	finish := func() {
		if len(word) > 0 {
			words = append(words, wordOf(word)...)
		}
		word = nil
	}
	for _, g := range logical(spaced, func(g glyph) string { return g.text }) {
		if g.text == " " {
			finish()
			continue
		}
		word = append(word, g)
	}
	finish()
	return words
}
