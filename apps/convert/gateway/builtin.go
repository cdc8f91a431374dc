package gateway

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
)

// The namespaces of the built-in mappings. The schemas contain them too.
const (
	textSpace   = "urn:holdfast:convert:text"
	layoutSpace = "urn:holdfast:convert:layout"
	fieldsSpace = "urn:holdfast:convert:fields"
)

// document opens the root element of the built-in mappings.
func (w *writer) document(space string, d *pdf.Document) {
	w.open("document", attribute{"xmlns", space}, attribute{"pdf", d.Version}, attribute{"pages", strconv.Itoa(len(d.Pages))})
}

// writeText writes the text of each page: each block is a paragraph.
func writeText(w *writer, d *pdf.Document) error {
	w.document(textSpace, d)
	for _, p := range d.Pages {
		number := attribute{"number", strconv.Itoa(p.Number)}
		if len(p.Blocks) == 0 {
			w.leaf("page", "", number)
			continue
		}
		w.open("page", number)
		for _, b := range p.Blocks {
			w.leaf("paragraph", paragraph(b))
		}
		w.close("page")
	}
	w.close("document")
	return nil
}

// paragraph returns the text of a block. A word that a soft hyphen divides at the end of a line is joined.
func paragraph(b pdf.Block) string {
	var text []byte
	for _, l := range b.Lines {
		if whole, divided := bytes.CutSuffix(text, []byte(softHyphen)); divided {
			text = whole
		} else if len(text) > 0 {
			text = append(text, ' ')
		}
		text = append(text, lineText(l)...)
	}
	return string(text)
}

const softHyphen = "\u00ad"

func lineText(l pdf.Line) string {
	words := make([]string, len(l.Words))
	for i, w := range l.Words {
		words[i] = w.Text
	}
	return strings.Join(words, " ")
}

// writeLayout writes the position and font of every word.
func writeLayout(w *writer, d *pdf.Document) error {
	w.document(layoutSpace, d)
	for _, p := range d.Pages {
		w.open("page", attribute{"number", strconv.Itoa(p.Number)}, attribute{"width", points(max(0, p.Width))}, attribute{"height", points(max(0, p.Height))}, attribute{"rotation", strconv.Itoa((p.Rotation%360 + 360) % 360 / 90 * 90)})
		for _, b := range p.Blocks {
			w.open("block", place(b.Box)...)
			for _, l := range b.Lines {
				w.open("line", place(l.Box)...)
				for _, word := range l.Words {
					w.word(word)
				}
				w.close("line")
			}
			w.close("block")
		}
		w.close("page")
	}
	w.close("document")
	return nil
}

func (w *writer) word(word pdf.Word) {
	about := append(place(word.Box), attribute{"font", word.Font})
	if word.Size > 0 {
		about = append(about, attribute{"size", points(word.Size)})
	}
	w.leaf("word", word.Text, about...)
}

func place(b pdf.Box) []attribute {
	return []attribute{{"x", points(b.X)}, {"y", points(b.Y)}, {"width", points(max(0, b.Width))}, {"height", points(max(0, b.Height))}}
}

// maxPoints is larger than any page, in points: about 350 metres.
const maxPoints = 1e6

// points formats a length in hundredths of a point. NaN, as from a broken document, becomes 0, and the value is limited to maxPoints.
func points(v float64) string {
	v = math.Round(min(max(v, -maxPoints), maxPoints)*100) / 100
	if math.IsNaN(v) || v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// kinds are the kinds of form fields in the schema.
var kinds = []string{"text", "checkbox", "radio", "choice", "button", "signature"}

// writeFields writes the metadata and the form fields of a document.
func writeFields(w *writer, d *pdf.Document) error {
	w.document(fieldsSpace, d)
	w.open("metadata")
	for _, name := range aboutNames {
		if value := aboutValue(d, name); value != "" {
			w.leaf(name, value)
		}
	}
	w.close("metadata")
	w.open("form")
	for _, f := range d.Fields {
		kind := f.Kind
		if !slices.Contains(kinds, kind) {
			kind = "other"
		}
		about := []attribute{{"name", f.Name}, {"kind", kind}}
		if f.Page > 0 {
			about = append(about, attribute{"page", strconv.Itoa(f.Page)})
		}
		w.leaf("field", f.Value, about...)
	}
	w.close("form")
	w.close("document")
	return nil
}

// aboutNames are the names of metadata, in the order of the schema.
var aboutNames = []string{"title", "author", "subject", "keywords", "creator", "producer", "created", "modified", "language"}

// aboutValue returns one value of the metadata, or "". An invalid date is "".
func aboutValue(d *pdf.Document, name string) string {
	a := d.About
	switch name {
	case "title":
		return a.Title
	case "author":
		return a.Author
	case "subject":
		return a.Subject
	case "keywords":
		return a.Keywords
	case "creator":
		return a.Creator
	case "producer":
		return a.Producer
	case "created":
		return instant(a.Created)
	case "modified":
		return instant(a.Modified)
	case "language":
		return a.Language
	case "version":
		return d.Version
	case "pages":
		return strconv.Itoa(len(d.Pages))
	}
	return ""
}

// instant returns a date and time if it is valid for the schema (the year is 1 or later), otherwise "".
func instant(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1 {
		return ""
	}
	return text
}
