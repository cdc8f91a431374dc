package gateway

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
)

// A pageRange says which pages are looked at. The zero value: all.
type pageRange struct{ first, last int } // from 1; -1 is the last page

// has reports whether a page is meant.
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

// A view is what a rule looks at: pages, or parts of them, or the text that the rule around it has found.
type view struct {
	document *pdf.Document
	pages    []*leaf
	plain    string // when there are no pages
}

// A leaf is one page, or a part of it. Its rows are made when somebody asks.
type leaf struct {
	number int
	blocks []pdf.Block
	rows   []string
}

func wholePages(d *pdf.Document) (all []*leaf) {
	for _, p := range d.Pages {
		all = append(all, &leaf{number: p.Number, blocks: p.Blocks})
	}
	return all
}

// only narrows a view.
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
			l = &leaf{number: l.number, blocks: within(l.blocks, *region)}
		}
		narrow.pages = append(narrow.pages, l)
	}
	return narrow
}

// within keeps the words whose middle lies in a region.
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

// The units that patterns are matched with.
const (
	inRow  = "row"
	inLine = "line"
	inPage = "page"
)

// units are the texts that a pattern is matched with, one after the other.
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

// text is everything in view.
func (v view) text() string { return strings.Join(v.units(inPage), "\n") }

// field is the value of a form's field.
func (v view) field(name string) string {
	for _, f := range v.document.Fields {
		if f.Name == name {
			return tidy(f.Value)
		}
	}
	return ""
}

func (l *leaf) lines() (all []string) {
	for _, b := range l.blocks {
		for _, line := range b.Lines {
			all = append(all, lineText(line))
		}
	}
	return all
}

// text is a page as people read it: block by block, with an empty line between them.
func (l *leaf) text() string {
	var blocks []string
	for _, b := range l.blocks {
		blocks = append(blocks, strings.Join((&leaf{blocks: []pdf.Block{b}}).lines(), "\n"))
	}
	return strings.Join(blocks, "\n\n")
}

// rows are what stands side by side on a page, whichever blocks it belongs to, from left to right and from top to bottom. A table's row is one, although a
// reader takes its columns for blocks. A gap as wide as a letter is high becomes a tab, any other a space.
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
