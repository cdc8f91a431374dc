package pdf

import (
	"context"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// describe reads the metadata and the number of pages with pdfinfo.
func (p poppler) describe(ctx context.Context, file *os.File) (*Document, int, error) {
	doc, count := &Document{}, 0
	err := run(ctx, file, p.info, []string{"-isodates", "-enc", "UTF-8", "-"}, func(r io.Reader) error {
		all, err := io.ReadAll(io.LimitReader(r, 1<<20))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(all)) {
			name, value, _ := strings.Cut(line, ":")
			value = normalise(cleanText(strings.ToValidUTF8(value, "\ufffd")))
			if name == "Pages" {
				count, _ = strconv.Atoi(value)
				continue
			}
			if to := fieldOf(doc, name); to != nil {
				*to = value
			}
		}
		return nil
	})
	doc.About.Created, doc.About.Modified = firstDate(doc.About.Created), firstDate(doc.About.Modified)
	return doc, count, err
}

// fieldOf returns the field for a line of pdfinfo.
func fieldOf(doc *Document, name string) *string {
	a := &doc.About
	return map[string]*string{"Title": &a.Title, "Author": &a.Author, "Subject": &a.Subject, "Keywords": &a.Keywords, "Creator": &a.Creator,
		"Producer": &a.Producer, "CreationDate": &a.Created, "ModDate": &a.Modified, "PDF version": &doc.Version}[name]
}

// A tile is a square of 32 by 32 points on a page.
type tile struct{ x, y int }

// copyFonts copies the font and size of the other page's word at the same position to each word.
func copyFonts(page, other Page) {
	at := map[tile][]Word{}
	eachWord(other, func(w *Word) {
		p := tileOf(w.Box)
		at[p] = append(at[p], *w)
	})
	eachWord(page, func(w *Word) {
		p := tileOf(w.Box)
		nearest := math.Inf(1)
		for _, near := range []tile{p, {p.x - 1, p.y}, {p.x + 1, p.y}, {p.x, p.y - 1}, {p.x, p.y + 1}} {
			for _, o := range at[near][:min(len(at[near]), 64)] {
				distance := abs(w.Box.X-o.Box.X) + abs(w.Box.Y-o.Box.Y)
				if distance < nearest && distance < max(o.Size, 4) {
					nearest, w.Font, w.Size = distance, o.Font, o.Size
				}
			}
		}
	})
}

func tileOf(b Box) tile { return tile{int(b.X) >> 5, int(b.Y) >> 5} }

func eachWord(p Page, do func(*Word)) {
	for i := range p.Blocks {
		for j := range p.Blocks[i].Lines {
			for k := range p.Blocks[i].Lines[j].Words {
				do(&p.Blocks[i].Lines[j].Words[k])
			}
		}
	}
}
