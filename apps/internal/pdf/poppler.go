package pdf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// poppler has poppler's pdftotext find the words. The document's form, what it tells of itself, and which font a word is in come from the reader
// of this package, which has looked at the document before, so that both refuse the same.
type poppler struct {
	text, info string // where its programs are
}

// findPoppler answers with ErrNoPoppler when its programs are not there.
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
	defer guard(&err)
	doc, err = goReader{}.Read(ctx, file, l)
	if err != nil && !errors.Is(err, ErrDamaged) {
		return nil, err
	}
	if err != nil {
		return p.alone(ctx, file, l, err)
	}
	pages, err := p.words(ctx, file, l, len(doc.Pages))
	if errors.Is(err, ErrDamaged) || err == nil && len(pages) != len(doc.Pages) {
		return doc, nil // poppler does not get on with it, and there is a reading already
	}
	if err != nil {
		return nil, err
	}
	for i := range pages {
		pages[i].Width, pages[i].Height, pages[i].Rotation = doc.Pages[i].Width, doc.Pages[i].Height, doc.Pages[i].Rotation
		nameFonts(pages[i], doc.Pages[i])
	}
	doc.Pages = pages
	return doc, nil
}

// alone reads what this package's own reader took for damaged. Poppler repairs more; but a file whose shape is that of a damaged one stays refused.
func (p poppler) alone(ctx context.Context, file *os.File, l Limits, why error) (*Document, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkShape(file, info.Size()); err != nil {
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

// words has pdftotext read all pages.
func (p poppler) words(ctx context.Context, file *os.File, l Limits, count int) ([]Page, error) {
	if l.Text <= 0 {
		l.Text = defaultText
	}
	var reading layoutReading
	reading.left = l.Text
	err := run(ctx, file, p.text, []string{"-q", "-bbox-layout", "-cropbox", "-enc", "UTF-8", "-l", fmt.Sprint(max(count, 1)), "-", "-"}, reading.read)
	if err != nil {
		return nil, err
	}
	return reading.pages, nil
}
