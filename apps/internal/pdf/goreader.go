package pdf

import (
	"context"
	"errors"
	"os"
)

// goReader reads with what is in this package and pdfcpu.
type goReader struct{}

func (goReader) Name() string { return "go" }

// Read reads a PDF. Whatever is in it, it ends: what a document may cost is bounded, and so is how deep it is followed.
func (goReader) Read(ctx context.Context, file *os.File, l Limits) (doc *Document, err error) {
	defer guard(&err)
	s, err := open(ctx, file, l)
	if err != nil {
		return nil, err
	}
	sheets, err := s.sheets()
	if err != nil {
		return nil, err
	}
	doc = &Document{Version: s.version()}
	if doc.About, err = s.about(); err != nil {
		return nil, err
	}
	if doc.Fields, err = s.fields(sheets); err != nil {
		return nil, err
	}
	for i, p := range sheets {
		page, err := s.page(i+1, p)
		if err != nil {
			return nil, err
		}
		doc.Pages = append(doc.Pages, page)
	}
	return doc, nil
}

func (s *source) page(number int, p sheet) (Page, error) {
	page := Page{Number: number, Rotation: p.turned}
	page.Width, page.Height = p.size()
	if err := s.ctx.Err(); err != nil {
		return page, err
	}
	glyphs, err := s.draw(p)
	if err != nil {
		return page, err
	}
	page.Blocks, err = s.blocks(glyphs)
	return page, err
}

func isDamage(err error) bool { return errors.Is(err, ErrDamaged) }
