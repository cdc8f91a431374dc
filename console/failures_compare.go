package console

import (
	"cmp"
	"slices"
	"strings"
)

// A comparison is the common text of several texts, with gaps where they differ.
type comparison struct {
	Of     int // number of compared texts
	Pieces []piece
	Gaps   []gap
}

// A piece is a part of the common text, or the gap with number Gap.
type piece struct {
	Text string
	Gap  int
}

// A gap is a place where texts differ, with its values, the most frequent first.
type gap struct {
	Number   int
	Distinct int
	Values   []gapValue
}

// A gapValue is a value of a gap and the number of texts that have it.
type gapValue struct {
	Text  string
	Times int
}

const (
	maxCompared = 4 << 10 // bytes of each text
	maxGaps     = 12
	valuesOfGap = 5
)

// compareTexts compares texts word by word. It leaves out texts whose number of words is not the most frequent one.
func compareTexts(texts []string) comparison {
	byLength, usual := map[int][][]string{}, 0
	for _, text := range texts {
		words := strings.Fields(truncate(text, maxCompared))
		byLength[len(words)] = append(byLength[len(words)], words)
	}
	for length, all := range byLength {
		if len(all) > len(byLength[usual]) || len(all) == len(byLength[usual]) && length > usual {
			usual = length
		}
	}
	all := byLength[usual]
	if len(all) < 2 || usual == 0 {
		return comparison{}
	}
	c := comparison{Of: len(all)}
	for i := range usual {
		c.put(column(all, i))
	}
	if len(c.Gaps) == 0 {
		return comparison{Of: len(all)}
	}
	return c
}

// column counts the words at one position.
func column(all [][]string, i int) (values []gapValue) {
	for _, words := range all {
		at := slices.IndexFunc(values, func(v gapValue) bool { return v.Text == words[i] })
		if at < 0 {
			values, at = append(values, gapValue{Text: words[i]}), len(values)
		}
		values[at].Times++
	}
	return values
}

// put adds one position: a word that is the same in all texts, or a gap. After maxGaps gaps, further differences are shown as an ellipsis.
func (c *comparison) put(values []gapValue) {
	last := len(c.Pieces) - 1
	switch {
	case len(values) == 1 && last >= 0 && c.Pieces[last].Gap == 0:
		c.Pieces[last].Text += " " + values[0].Text
	case len(values) == 1:
		c.Pieces = append(c.Pieces, piece{Text: values[0].Text})
	case len(c.Gaps) == maxGaps:
		if last >= 0 && c.Pieces[last].Text != "…" {
			c.Pieces = append(c.Pieces, piece{Text: "…"})
		}
	default:
		slices.SortStableFunc(values, func(a, b gapValue) int { return cmp.Compare(b.Times, a.Times) })
		one := gap{Number: len(c.Gaps) + 1, Distinct: len(values), Values: values[:min(len(values), valuesOfGap)]}
		c.Gaps = append(c.Gaps, one)
		c.Pieces = append(c.Pieces, piece{Gap: one.Number})
	}
}
