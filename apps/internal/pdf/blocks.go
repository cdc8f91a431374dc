package pdf

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// A blockBuilder collects the lines of a block, from top to bottom.
type blockBuilder struct {
	rows           []row
	u0, u1         float64
	top, low       float64
	distance       float64 // between its lines, once it has two
	base, lastBase float64
}

func newBlockBuilder(r row) *blockBuilder {
	return &blockBuilder{rows: []row{r}, u0: r.u0, u1: r.u1, top: r.top, low: r.low, base: r.base, lastBase: r.base}
}

func (s *blockBuilder) add(r row) {
	s.distance = r.base - s.lastBase
	s.rows = append(s.rows, r)
	s.u0, s.u1, s.low, s.lastBase = min(s.u0, r.u0), max(s.u1, r.u1), max(s.low, r.low), r.base
}

func (s *blockBuilder) last() row { return s.rows[len(s.rows)-1] }

// groupLines groups lines into blocks: lines of the same size that are close together, unless another line is at the same height.
func (s *source) groupLines(rows []row) ([]*blockBuilder, error) {
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(a.u0, b.u0)) })
	var all, open []*blockBuilder
	for i, r := range rows {
		if err := s.step(); err != nil {
			return nil, err
		}
		var found *blockBuilder
		for j := len(open) - 1; j >= max(0, len(open)-nearby); j-- {
			if open[j].accepts(r) && isOnly(rows, i, open[j].last()) {
				found = open[j]
				break
			}
		}
		if found == nil {
			found = newBlockBuilder(r)
			all, open = append(all, found), append(open, found)
		} else {
			found.add(r)
		}
		open = slices.DeleteFunc(open, func(o *blockBuilder) bool { return r.top-o.low > 3*max(r.size, o.last().size) })
		if len(open) > nearby {
			open = slices.Delete(open, 0, len(open)-nearby)
		}
	}
	return all, nil
}

// accepts reports whether a line continues the block.
func (s *blockBuilder) accepts(r row) bool {
	last := s.last()
	size := min(r.size, last.size)
	if max(r.size, last.size) > 1.25*size || r.base-last.base < 0.5*size {
		return false
	}
	gap := r.top - last.low
	if gap > paragraph*size || gap < -0.5*size {
		return false
	}
	if s.distance > 0 && r.base-last.base > s.distance+unevenness*size {
		return false
	}
	return overlap(r, last) > 0.3*min(r.u1-r.u0, last.u1-last.u0)
}

func overlap(a, b row) float64 { return min(a.u1, b.u1) - max(a.u0, b.u0) }

// isOnly reports whether a line is the only one at its height below another line, and that one the only one above it. Two at the same height are columns or cells.
func isOnly(rows []row, i int, above row) bool {
	r := rows[i]
	for j := max(0, i-nearby); j < min(len(rows), i+nearby); j++ {
		o := rows[j]
		if j == i {
			continue
		}
		if abs(o.base-r.base) < 0.5*r.size && overlap(o, above) > 0 {
			return false
		}
		if abs(o.base-above.base) < 0.5*r.size && overlap(o, r) > 0 && abs(o.u0-above.u0) > 0.01 {
			return false
		}
	}
	return true
}

// block returns the finished block in coordinates of the page.
func (s *blockBuilder) block(turn matrix) Block {
	var b Block
	box := edges{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, r := range s.rows {
		words := r.words()
		if len(words) == 0 {
			continue
		}
		where := boundingBox(turn, r.u0, r.top, r.u1, r.low)
		b.Lines = append(b.Lines, Line{Box: where.box(), Words: words})
		box = box.with(where)
	}
	if len(b.Lines) > 0 {
		b.Box = box.box()
	}
	return b
}

// wordOf returns the word of some glyphs, or several words if the text of a glyph contains space.
func wordOf(glyphs []glyph) []Word {
	where := glyphs[0].from
	var text strings.Builder
	for _, g := range glyphs {
		where = where.with(g.from)
		text.WriteString(g.text)
	}
	parts := strings.Fields(compose(text.String()))
	words := make([]Word, 0, len(parts))
	for _, part := range parts {
		words = append(words, Word{Box: where.box(), Text: part, Font: glyphs[0].font, Size: math.Round(glyphs[0].size*100) / 100})
	}
	return words
}
