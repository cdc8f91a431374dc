package pdf

import (
	"context"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// describe has pdfinfo tell of a document: what it says of itself, and how many pages it has.
func (p poppler) describe(ctx context.Context, file *os.File) (*Document, int, error) {
	doc, count := &Document{}, 0
	err := run(ctx, file, p.info, []string{"-isodates", "-enc", "UTF-8", "-"}, func(r io.Reader) error {
		all, err := io.ReadAll(io.LimitReader(r, 1<<20))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(all)) {
			name, value, _ := strings.Cut(line, ":")
			value = tidy(cleanText(strings.ToValidUTF8(value, "\ufffd")))
			if name == "Pages" {
				count, _ = strconv.Atoi(value)
				continue
			}
			if to := lineOf(doc, name); to != nil {
				*to = value
			}
		}
		return nil
	})
	doc.About.Created, doc.About.Modified = firstDate(doc.About.Created), firstDate(doc.About.Modified)
	return doc, count, err
}

// lineOf is where a line of pdfinfo's goes.
func lineOf(doc *Document, name string) *string {
	a := &doc.About
	return map[string]*string{"Title": &a.Title, "Author": &a.Author, "Subject": &a.Subject, "Keywords": &a.Keywords, "Creator": &a.Creator,
		"Producer": &a.Producer, "CreationDate": &a.Created, "ModDate": &a.Modified, "PDF version": &doc.Version}[name]
}

// A place on a page is a square of 32 points.
type place struct{ x, y int }

// nameFonts gives words the font and size of the word of the other reading that stands at the same place.
func nameFonts(page, other Page) {
	at := map[place][]Word{}
	eachWord(other, func(w *Word) {
		p := placeOf(w.Box)
		at[p] = append(at[p], *w)
	})
	eachWord(page, func(w *Word) {
		p := placeOf(w.Box)
		nearest := math.Inf(1)
		for _, near := range []place{p, {p.x - 1, p.y}, {p.x + 1, p.y}, {p.x, p.y - 1}, {p.x, p.y + 1}} {
			for _, o := range at[near][:min(len(at[near]), 64)] {
				far := abs(w.Box.X-o.Box.X) + abs(w.Box.Y-o.Box.Y)
				if far < nearest && far < max(o.Size, 4) {
					nearest, w.Font, w.Size = far, o.Font, o.Size
				}
			}
		}
	})
}

func placeOf(b Box) place { return place{int(b.X) >> 5, int(b.Y) >> 5} }

func eachWord(p Page, do func(*Word)) {
	for i := range p.Blocks {
		for j := range p.Blocks[i].Lines {
			for k := range p.Blocks[i].Lines[j].Words {
				do(&p.Blocks[i].Lines[j].Words[k])
			}
		}
	}
}
