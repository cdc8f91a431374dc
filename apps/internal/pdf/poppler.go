package pdf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// poppler reads the words with poppler's pdftotext. The form, the metadata and the fonts come from the reader of this package, which reads the document first, so that both
// refuse the same documents.
type poppler struct {
	text, info string // paths of its programs
}

// findPoppler returns ErrNoPoppler if poppler's programs are not installed.
func findPoppler() (poppler, error) {
	text, err := exec.LookPath("pdftotext")
	if err != nil {
		return poppler{}, ErrNoPoppler
	}
	info, err := exec.LookPath("pdfinfo")
	if err != nil {
		return poppler{}, ErrNoPoppler
	}
	return poppler{text: text, info: info}, nil
}

func (poppler) Name() string { return "poppler" }

// Read reads a PDF.
func (p poppler) Read(ctx context.Context, file *os.File, l Limits) (doc *Document, err error) {
	defer recoverAsDamage(&err)
	doc, err = goReader{}.Read(ctx, file, l)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return nil, err
	}
	if err != nil {
		return p.readAlone(ctx, file, l, err)
	}
	pages, err := p.words(ctx, file, l, len(doc.Pages))
	if errors.Is(err, ErrDamaged) || err == nil && len(pages) != len(doc.Pages) {
		return doc, nil // poppler cannot read it; use what this package has read
	}
	if err != nil {
		return nil, err
	}
	for i := range pages {
		pages[i].Width, pages[i].Height, pages[i].Rotation = doc.Pages[i].Width, doc.Pages[i].Height, doc.Pages[i].Rotation
		copyFonts(pages[i], doc.Pages[i])
	}
	doc.Pages = pages
	return doc, nil
}

// readAlone reads a document that the reader of this package takes as damaged: poppler can repair more. A file that is cut off or has a wrong end is still refused.
func (p poppler) readAlone(ctx context.Context, file *os.File, l Limits, why error) (*Document, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkEnds(file, info.Size()); err != nil {
		return nil, err
	}
	if l.Pages <= 0 {
		l.Pages = defaultPages
	}
	if l.Text <= 0 {
		l.Text = defaultText
	}
	doc, count, err := p.describe(ctx, file)
	if err != nil {
		return nil, err
	}
	if count == 0 {
		return nil, why
	}
	if count > l.Pages {
		return nil, ErrTooMuch
	}
	if doc.Pages, err = p.words(ctx, file, l, count); err != nil {
		return nil, err
	}
	return doc, nil
}

// words reads all pages with pdftotext.
func (p poppler) words(ctx context.Context, file *os.File, l Limits, count int) ([]Page, error) {
	if l.Text <= 0 {
		l.Text = defaultText
	}
	var parser layoutParser
	parser.left = l.Text
	err := run(ctx, file, p.text, []string{"-q", "-bbox-layout", "-cropbox", "-enc", "UTF-8", "-l", fmt.Sprint(max(count, 1)), "-", "-"}, parser.read)
	if err != nil {
		return nil, err
	}
	return parser.pages, nil
}
