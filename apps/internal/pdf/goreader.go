package pdf

import (
	"context"
	"errors"
	"os"
)

// goReader is the reader of this package. It uses pdfcpu.
type goReader struct{}

func (goReader) Name() string { return "go" }

// Read reads a PDF. It ends for every input: the cost of a document and the depth of its structures are limited.
func (goReader) Read(ctx context.Context, file *os.File, l Limits) (doc *Document, err error) {
	defer recoverAsDamage(&err)
	s, err := open(ctx, file, l)
	if err != nil {
		return nil, err
	}
	pages, err := s.pageObjects()
	if err != nil {
		return nil, err
	}
	doc = &Document{Version: s.version()}
	if doc.About, err = s.about(); err != nil {
		return nil, err
	}
	if doc.Fields, err = s.fields(pages); err != nil {
		return nil, err
	}
	for i, p := range pages {
		page, err := s.page(i+1, p)
		if err != nil {
			return nil, err
		}
		doc.Pages = append(doc.Pages, page)
	}
	return doc, nil
}

func (s *source) page(number int, p pageObject) (Page, error) {
	page := Page{Number: number, Rotation: p.rotation}
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
