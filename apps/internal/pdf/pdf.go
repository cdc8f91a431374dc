// Package pdf reads what a PDF says: its words and where they stand, its form and what it tells of itself. It takes PDFs from strangers, so it is to be
// run in a process of its own, under limits: see Confine.
package pdf

import "errors"

// What a PDF can be refused for. Other errors are failures of the reader.
var (
	ErrNotPDF    = errors.New("this is not a PDF")
	ErrDamaged   = errors.New("this PDF is damaged")
	ErrLocked    = errors.New("this PDF needs a password")
	ErrTooMuch   = errors.New("this PDF holds more than is read: too many pages, or too much in them")
	ErrTwoFaced  = errors.New("this PDF is something else as well: bytes before its beginning or behind its end")
	ErrNoReader  = errors.New("there is no such reader")
	ErrNoPoppler = errors.New("poppler's programs (pdftotext, pdfinfo) are not installed")
)

// A Document is what a PDF says, whoever read it.
type Document struct {
	Version string // "1.7"
	About   About
	Pages   []Page
	Fields  []Field // of its form, in the form's order
}

// About is what a document tells of itself. Empty: it does not.
type About struct {
	Title, Author, Subject, Keywords, Creator, Producer string
	Created, Modified                                   string // RFC 3339
	Language                                            string
}

// A Page has its blocks in the order in which people read them.
type Page struct {
	Number        int     // from 1
	Width, Height float64 // as it is shown, turned
	Rotation      int     // 0, 90, 180, 270
	Blocks        []Block
}

// A Block is a paragraph, a column's part, a cell: lines that belong together.
type Block struct {
	Box   Box
	Lines []Line
}

// A Line is words on one baseline, in the order in which people read them, right to left where the script is.
type Line struct {
	Box   Box
	Words []Word
}

// A Word is text without space in it.
type Word struct {
	Box  Box
	Text string
	Font string  // its name without the subset's prefix; "" when unknown
	Size float64 // in points; 0 when unknown
}

// A Box is where something stands, in points from the page's upper left corner.
type Box struct{ X, Y, Width, Height float64 }

// A Field is one of a form.
type Field struct {
	Name  string // fully qualified: parent.child
	Kind  string // text, checkbox, radio, choice, button, signature
	Value string
	Page  int // 0 when unknown
}
