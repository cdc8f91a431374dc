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

// The namespaces of the built-in mappings' XML. They are in the schemas as well.
const (
	textSpace   = "urn:holdfast:convert:text"
	layoutSpace = "urn:holdfast:convert:layout"
	fieldsSpace = "urn:holdfast:convert:fields"
)

// document begins the root that all built-in mappings have.
func (w *writer) document(space string, d *pdf.Document) {
	w.open("document", attribute{"xmlns", space}, attribute{"pdf", d.Version}, attribute{"pages", strconv.Itoa(len(d.Pages))})
}

// writeText writes what is said, and on which page: each block is a paragraph.
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

// paragraph is a block's text. A word that was divided at a line's end with a hyphen that only serves for that is made whole.
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

// writeLayout writes where everything stands, and in which font.
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

// farthest is farther, in points, than any page reaches: about 350 metres.
const farthest = 1e6

// points is a length to a hundredth of a point, which is finer than print. What a broken document makes no number of is 0, and nothing is farther than farthest.
func points(v float64) string {
	v = math.Round(min(max(v, -farthest), farthest)*100) / 100
	if math.IsNaN(v) || v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// kinds are those of form fields. The schema names them.
var kinds = []string{"text", "checkbox", "radio", "choice", "button", "signature"}

// writeFields writes what the document tells of itself, and its form.
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

// aboutNames are what a document can tell of itself, in the order of the schema.
var aboutNames = []string{"title", "author", "subject", "keywords", "creator", "producer", "created", "modified", "language"}

// aboutValue is what it tells, or "". An instant that is none is not told.
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

// instant lets through what a schema takes for one: no year before the first.
func instant(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1 {
		return ""
	}
	return text
}
