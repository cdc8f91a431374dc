// Package pdf reads PDFs: the words and their positions, the form and the metadata. PDFs are untrusted input, so run it in a separate process with limits: see Confine.
package pdf

import "errors"

// The reasons for which a PDF is refused. Any other error is an error of the reader.
var (
	ErrNotPDF    = errors.New("this is not a PDF")
	ErrDamaged   = errors.New("this PDF is damaged")
	ErrLocked    = errors.New("this PDF needs a password")
	ErrTooMuch   = errors.New("this PDF is too large: it has too many pages, or too much content")
	ErrTwoFaced  = errors.New("this PDF is also another format: it has bytes before its beginning or after its end")
	ErrNoReader  = errors.New("there is no such reader")
	ErrNoPoppler = errors.New("poppler's programs (pdftotext, pdfinfo) are not installed")
)

// A Document is the content of a PDF.
type Document struct {
	Version string // "1.7"
	About   About
	Pages   []Page
	Fields  []Field // the form fields, in the order of the form
}

// About is the metadata of a document. A missing value is empty.
type About struct {
	Title, Author, Subject, Keywords, Creator, Producer string
	Created, Modified                                   string // RFC 3339
	Language                                            string
}

// A Page has its blocks in reading order.
type Page struct {
	Number        int     // from 1
	Width, Height float64 // as shown, after rotation
	Rotation      int     // 0, 90, 180, 270
	Blocks        []Block
}

// A Block is lines that belong together: a paragraph, a part of a column, a cell.
type Block struct {
	Box   Box
	Lines []Line
}

// A Line is words on one baseline in reading order, which is from right to left for some scripts.
type Line struct {
	Box   Box
	Words []Word
}

// A Word is text without white space.
type Word struct {
	Box  Box
	Text string
	Font string  // without the prefix of a subset; "" when unknown
	Size float64 // in points; 0 when unknown
}

// A Box is a position on the page, in points from the upper left corner.
type Box struct{ X, Y, Width, Height float64 }

// A Field is a form field.
type Field struct {
	Name  string // fully qualified: parent.child
	Kind  string // text, checkbox, radio, choice, button, signature
	Value string
	Page  int // 0 when unknown
}
