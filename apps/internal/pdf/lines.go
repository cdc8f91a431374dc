package pdf

import (
	"cmp"
	"slices"
)

// How text is put together again, in parts of the letters' size.
const (
	sameBase   = 0.2  // baselines that count as one
	wordGap    = 0.1  // from here on, letters are of two words
	lineGap    = 1.5  // from here on, words are of two lines beside each other
	overprint  = 0.1  // the same letter again this near is drawn twice to look bold
	paragraph  = 0.85 // lines further apart are of two blocks
	unevenness = 0.3  // that the distance of lines may grow within a block
	nearby     = 64   // lines that are looked at around one
)

// A row is a line in the making: glyphs beside each other, from left to right.
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

// blocks puts a page together: glyphs become lines, lines become blocks, in the order in which people read them. Text that runs in another
// direction stands for itself, behind what runs straight.
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
		found, err := s.stack(rows)
		if err != nil {
			return nil, err
		}
		for _, b := range inOrder(found) {
			if block := b.finish(turnBy(angle)); len(block.Lines) > 0 {
				all = append(all, block)
			}
		}
	}
	return all, nil
}

// rowsOf collects the glyphs with one baseline, and parts them where the gap is wide.
func rowsOf(glyphs []glyph) []row {
	slices.SortStableFunc(glyphs, func(a, b glyph) int { return cmp.Compare(a.base, b.base) })
	var rows []row
	for from := 0; from < len(glyphs); {
		to := from + 1
		for to < len(glyphs) && glyphs[to].base-glyphs[from].base <= sameBase*min(glyphs[to].size, glyphs[from].size) {
			to++
		}
		rows = append(rows, partRow(glyphs[from:to])...)
		from = to
	}
	return rows
}

func partRow(glyphs []glyph) []row {
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
		if len(part) > 0 && isAgain(part, g) {
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

// isAgain tells whether a glyph was drawn already at this place.
func isAgain(part []glyph, g glyph) bool {
	for i := len(part) - 1; i >= max(0, len(part)-3); i-- {
		if p := part[i]; p.text == g.text && abs(p.u0-g.u0) < overprint*g.size && abs(p.base-g.base) < overprint*g.size {
			return true
		}
	}
	return false
}

// joinSmall puts what is raised or lowered, a note's mark or an index, into the line it belongs to.
func joinSmall(rows []row) []row {
	gone := make([]bool, len(rows))
	for i := range rows {
		for j := max(0, i-nearby); j < min(len(rows), i+nearby) && !gone[i]; j++ {
			if i != j && !gone[j] && belongs(rows[i], rows[j]) {
				glyphs := append(slices.Clone(rows[j].glyphs), rows[i].glyphs...)
				slices.SortStableFunc(glyphs, func(a, b glyph) int { return cmp.Compare(a.u0, b.u0) })
				rows[j] = newRow(glyphs)
				gone[i] = true
			}
		}
	}
	var left []row
	for i, r := range rows {
		if !gone[i] {
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

// words cuts a line into words, in the order in which they are read.
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
