package gateway

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
)

// A pageRange selects pages. The zero value selects all.
type pageRange struct{ first, last int } // from 1; -1 is the last page

// has reports whether a page is in the range.
func (p pageRange) has(number, of int) bool {
	first, last := p.first, p.last
	if first < 0 {
		first = of
	}
	if last < 0 {
		last = of
	}
	return p == pageRange{} || number >= first && number <= last
}

// A view is what a rule searches: pages, regions of pages, or the match of the enclosing rule.
type view struct {
	document *pdf.Document
	pages    []*pageText
	plain    string // when there are no pages
}

// A pageText is one page or a region of it. Its rows are built when they are first needed.
type pageText struct {
	number int
	blocks []pdf.Block
	rows   []string
}

func wholePages(d *pdf.Document) (all []*pageText) {
	for _, p := range d.Pages {
		all = append(all, &pageText{number: p.Number, blocks: p.Blocks})
	}
	return all
}

// only returns the part of a view in the given pages and region.
func (v view) only(pages pageRange, region *pdf.Box) view {
	if pages == (pageRange{}) && region == nil {
		return v
	}
	narrow := view{document: v.document}
	for _, l := range v.pages {
		if !pages.has(l.number, len(v.document.Pages)) {
			continue
		}
		if region != nil {
			l = &pageText{number: l.number, blocks: within(l.blocks, *region)}
		}
		narrow.pages = append(narrow.pages, l)
	}
	return narrow
}

// within keeps the words whose centre is in a region.
func within(blocks []pdf.Block, region pdf.Box) (kept []pdf.Block) {
	for _, b := range blocks {
		part := pdf.Block{Box: b.Box}
		for _, l := range b.Lines {
			words := slices.DeleteFunc(slices.Clone(l.Words), func(w pdf.Word) bool {
				x, y := w.Box.X+w.Box.Width/2, middle(w)
				return x < region.X || x > region.X+region.Width || y < region.Y || y > region.Y+region.Height
			})
			if len(words) > 0 {
				part.Lines = append(part.Lines, pdf.Line{Box: l.Box, Words: words})
			}
		}
		if len(part.Lines) > 0 {
			kept = append(kept, part)
		}
	}
	return kept
}

func middle(w pdf.Word) float64 { return w.Box.Y + w.Box.Height/2 }

// The units of text that patterns are matched against.
const (
	inRow  = "row"
	inLine = "line"
	inPage = "page"
)

// units returns the texts that a pattern is matched against, in order.
func (v view) units(in string) (all []string) {
	if v.pages == nil {
		if in == inPage {
			return []string{v.plain}
		}
		return strings.Split(v.plain, "\n")
	}
	for _, l := range v.pages {
		switch in {
		case inPage:
			all = append(all, l.text())
		case inLine:
			all = append(all, l.lines()...)
		default:
			if l.rows == nil {
				l.rows = rows(l.blocks)
			}
			all = append(all, l.rows...)
		}
	}
	return all
}

// text returns all text of the view.
func (v view) text() string { return strings.Join(v.units(inPage), "\n") }

// field returns the value of a form field.
func (v view) field(name string) string {
	for _, f := range v.document.Fields {
		if f.Name == name {
			return normalise(f.Value)
		}
	}
	return ""
}

func (l *pageText) lines() (all []string) {
	for _, b := range l.blocks {
		for _, line := range b.Lines {
			all = append(all, lineText(line))
		}
	}
	return all
}

// text returns the text of a page: block by block, with an empty line between them.
func (l *pageText) text() string {
	var blocks []string
	for _, b := range l.blocks {
		blocks = append(blocks, strings.Join((&pageText{blocks: []pdf.Block{b}}).lines(), "\n"))
	}
	return strings.Join(blocks, "\n\n")
}

// rows returns the rows of a page from top to bottom. A row is all words at the same height, from left to right, whatever block they belong to. So the row of a table is
// one row, although readers report columns as blocks. A gap that is at least as wide as the word is high becomes a tab, any other gap a space.
func rows(blocks []pdf.Block) (all []string) {
	var words []pdf.Word
	for _, b := range blocks {
		for _, l := range b.Lines {
			words = append(words, l.Words...)
		}
	}
	slices.SortStableFunc(words, func(a, b pdf.Word) int { return cmp.Compare(middle(a), middle(b)) })
	for len(words) > 0 {
		n := 1
		for n < len(words) && math.Abs(middle(words[n])-middle(words[0])) < min(words[n].Box.Height, words[0].Box.Height)/2 {
			n++
		}
		all = append(all, row(words[:n]))
		words = words[n:]
	}
	return all
}

func row(words []pdf.Word) string {
	slices.SortStableFunc(words, func(a, b pdf.Word) int { return cmp.Compare(a.Box.X, b.Box.X) })
	var text strings.Builder
	for i, w := range words {
		if i > 0 {
			before := words[i-1].Box
			if w.Box.X-before.X-before.Width >= w.Box.Height {
				text.WriteByte('\t')
			} else {
				text.WriteByte(' ')
			}
		}
		text.WriteString(w.Text)
	}
	return text.String()
}
