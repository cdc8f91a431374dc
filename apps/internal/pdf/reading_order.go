package pdf

import (
	"cmp"
	"slices"
)

// maxUnits is up to how many units of a page are ordered by columns. More are ordered from top to bottom.
const maxUnits = 300

// A unit is read as a whole: a block, or the cells of a row of a table.
type unit struct {
	blocks           []*blockBuilder
	u0, u1, top, low float64
}

// inOrder returns blocks in reading order: from top to bottom, and a whole column before the next one; from the right if most of the page is right-to-left text. The cells
// of a row of a table follow each other.
func inOrder(blocks []*blockBuilder) []*blockBuilder {
	right := readsRight(blocks)
	units := unitsOf(blocks)
	if right {
		for i := range units {
			units[i].u0, units[i].u1 = -units[i].u1, -units[i].u0
		}
	}
	slices.SortStableFunc(units, func(a, b unit) int { return cmp.Or(cmp.Compare(a.top, b.top), cmp.Compare(a.u0, b.u0)) })
	if len(units) <= maxUnits {
		units = byColumns(units)
	}
	var all []*blockBuilder
	for _, u := range units {
		if right {
			slices.Reverse(u.blocks)
		}
		all = append(all, u.blocks...)
	}
	return all
}

func readsRight(blocks []*blockBuilder) bool {
	right, left := 0, 0
	for _, b := range blocks {
		for _, r := range b.rows {
			for _, g := range r.glyphs {
				switch direction(g.text) {
				case rightward:
					left++
				case leftward:
					right++
				}
			}
		}
	}
	return right > left
}

// unitsOf joins one-line blocks on the same baseline.
func unitsOf(blocks []*blockBuilder) []unit {
	sorted := slices.Clone(blocks)
	slices.SortStableFunc(sorted, func(a, b *blockBuilder) int { return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(a.u0, b.u0)) })
	var units []unit
	for _, b := range sorted {
		if n := len(units) - 1; n >= 0 && len(b.rows) == 1 {
			last := units[n].blocks[len(units[n].blocks)-1]
			if len(last.rows) == 1 && abs(last.base-b.base) < sameBase*b.rows[0].size {
				u := &units[n]
				u.blocks = append(u.blocks, b)
				u.u0, u.u1, u.top, u.low = min(u.u0, b.u0), max(u.u1, b.u1), min(u.top, b.top), max(u.low, b.low)
				continue
			}
		}
		units = append(units, unit{[]*blockBuilder{b}, b.u0, b.u1, b.top, b.low})
	}
	for i := range units {
		slices.SortStableFunc(units[i].blocks, func(a, b *blockBuilder) int { return cmp.Compare(a.u0, b.u0) })
	}
	return units
}

// byColumns repeatedly takes the topmost unit before which no remaining unit has to be read.
func byColumns(units []unit) []unit {
	n := len(units)
	before := make([][]bool, n)
	for i := range units {
		before[i] = make([]bool, n)
		for j := range units {
			before[i][j] = i != j && goesBefore(units, i, j)
		}
	}
	done := make([]bool, n)
	ordered := make([]unit, 0, n)
	for len(ordered) < n {
		next := -1
		for i := 0; i < n; i++ {
			if done[i] {
				continue
			}
			if next < 0 {
				next = i // in a cycle, the topmost is first
			}
			if isFree(before, done, i) {
				next = i
				break
			}
		}
		done[next] = true
		ordered = append(ordered, units[next])
	}
	return ordered
}

func isFree(before [][]bool, done []bool, i int) bool {
	for j := range done {
		if !done[j] && before[j][i] {
			return false
		}
	}
	return true
}

// goesBefore reports whether unit i is read before unit j: it is above it, or to its left with no unit between them that spans both.
func goesBefore(units []unit, i, j int) bool {
	a, b := units[i], units[j]
	if a.u0 < b.u1 && b.u0 < a.u1 {
		return a.top < b.top || a.top == b.top && i < j
	}
	if a.u1 > b.u0 {
		return false
	}
	for k, c := range units {
		if k == i || k == j {
			continue
		}
		between := c.top >= min(a.low, b.low)-0.01 && c.low <= max(a.top, b.top)+0.01
		if between && c.u0 < a.u1 && a.u0 < c.u1 && c.u0 < b.u1 && b.u0 < c.u1 {
			return false
		}
	}
	return true
}
