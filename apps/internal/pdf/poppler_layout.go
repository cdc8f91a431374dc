package pdf

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A layoutParser parses the output of pdftotext -bbox-layout: pages, flows, blocks, lines and words, each with its box.
type layoutParser struct {
	pages []Page
	left  int64 // bytes of text left
	word  *strings.Builder
	box   Box
}

func (r *layoutParser) read(from io.Reader) error {
	d := xml.NewDecoder(bufio.NewReaderSize(&cleaner{from: from}, 1<<16))
	d.Strict = false
	d.Entity = xml.HTMLEntity
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("parsing the output of poppler: %w", err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			r.start(t)
		case xml.EndElement:
			if err := r.end(t.Name.Local); err != nil {
				return err
			}
		case xml.CharData:
			if r.word != nil {
				r.word.Write(t)
			}
		}
	}
}

func (r *layoutParser) start(e xml.StartElement) {
	switch e.Name.Local {
	case "page":
		r.pages = append(r.pages, Page{Number: len(r.pages) + 1, Width: attribute(e, "width"), Height: attribute(e, "height")})
	case "block":
		if p := r.page(); p != nil {
			p.Blocks = append(p.Blocks, Block{Box: boxOf(e)})
		}
	case "line":
		if b := r.block(); b != nil {
			b.Lines = append(b.Lines, Line{Box: boxOf(e)})
		}
	case "word":
		r.word, r.box = &strings.Builder{}, boxOf(e)
	}
}

func (r *layoutParser) end(name string) error {
	switch name {
	case "word":
		if r.word == nil {
			return nil
		}
		text := r.word.String()
		r.word = nil
		if r.left -= int64(len(text)) + 1; r.left < 0 {
			return ErrTooMuch
		}
		if l := r.line(); l != nil {
			l.Words = append(l.Words, Word{Box: r.box, Text: text})
		}
	case "line":
		if l := r.line(); l != nil {
			l.Words = readingOrder(l.Words)
		}
	case "page":
		if p := r.page(); p != nil {
			dropEmpty(p)
		}
	}
	return nil
}

func (r *layoutParser) page() *Page {
	if len(r.pages) == 0 {
		return nil
	}
	return &r.pages[len(r.pages)-1]
}

func (r *layoutParser) block() *Block {
	if p := r.page(); p != nil && len(p.Blocks) > 0 {
		return &p.Blocks[len(p.Blocks)-1]
	}
	return nil
}

func (r *layoutParser) line() *Line {
	if b := r.block(); b != nil && len(b.Lines) > 0 {
		return &b.Lines[len(b.Lines)-1]
	}
	return nil
}

// A letter is one character of a line, and the index of its word.
type letter struct {
	text string
	word int
}

// readingOrder puts a line into reading order: poppler writes letters from left to right, whatever the direction of the script.
func readingOrder(words []Word) []Word {
	if slices.ContainsFunc(words, func(w Word) bool { return strings.ContainsFunc(w.Text, runsLeft) }) {
		slices.SortStableFunc(words, func(a, b Word) int { return cmp.Compare(a.Box.X, b.Box.X) })
	}
	var line []letter
	for i, w := range words {
		if i > 0 {
			line = append(line, letter{" ", i})
		}
		for _, r := range w.Text {
			if text := visibleText(string(r)); text != "" {
				line = append(line, letter{text, i})
			}
		}
	}
	var out []Word
	var text strings.Builder
	at := 0
	finish := func() {
		for _, part := range strings.Fields(compose(text.String())) {
			out = append(out, Word{Box: words[at].Box, Text: part})
		}
		text.Reset()
	}
	for _, l := range logical(line, func(l letter) string { return l.text }) {
		if l.text == " " {
			finish()
			continue
		}
		if text.Len() == 0 {
			at = l.word
		}
		text.WriteString(l.text)
	}
	finish()
	return out
}

func runsLeft(r rune) bool { return direction(string(r)) == leftward }

func dropEmpty(p *Page) {
	for i := range p.Blocks {
		p.Blocks[i].Lines = slices.DeleteFunc(p.Blocks[i].Lines, func(l Line) bool { return len(l.Words) == 0 })
	}
	p.Blocks = slices.DeleteFunc(p.Blocks, func(b Block) bool { return len(b.Lines) == 0 })
}

func boxOf(e xml.StartElement) Box {
	x, y := attribute(e, "xMin"), attribute(e, "yMin")
	return Box{x, y, max(0, attribute(e, "xMax")-x), max(0, attribute(e, "yMax")-y)}
}

func attribute(e xml.StartElement, name string) float64 {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			if n, err := strconv.ParseFloat(a.Value, 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
				return n
			}
		}
	}
	return 0
}

// A cleaner replaces bytes that XML does not allow. Poppler does not remove them.
type cleaner struct{ from io.Reader }

func (c *cleaner) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	for i, b := range p[:n] {
		if b < 32 && !unicode.IsSpace(rune(b)) || b == '\v' || b == '\f' {
			p[i] = ' '
		}
	}
	return n, err
}
