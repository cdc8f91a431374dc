package gateway

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
)

// made returns the XML of a document.
func made(t *testing.T, m mapping, d *pdf.Document) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := m.writeTo(&text, d); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// words makes a line of words side by side, each letter 5 points wide.
func words(x, y float64, texts ...string) (l pdf.Line) {
	for _, text := range texts {
		width := 5 * float64(len(text))
		l.Words = append(l.Words, pdf.Word{Box: pdf.Box{X: x, Y: y, Width: width, Height: 10}, Text: text, Font: "Helvetica", Size: 10})
		x += width + 3
	}
	l.Box = pdf.Box{X: l.Words[0].Box.X, Y: y, Width: x - 3 - l.Words[0].Box.X, Height: 10}
	return l
}

func block(lines ...pdf.Line) pdf.Block { return pdf.Block{Box: lines[0].Box, Lines: lines} }

// oddDocument has hostile values in every field.
func oddDocument() *pdf.Document {
	evil := "\x00\x01\x1f<a href=\"x\">&amp;]]>\xff\xc0\xaf\ufffe\U0010ffff\r\n\t '"
	return &pdf.Document{
		Version: evil,
		About:   pdf.About{Title: evil, Author: "]]>", Subject: " ", Keywords: evil, Created: "yesterday", Modified: "0000-01-01T00:00:00Z", Language: evil},
		Fields:  []pdf.Field{{Name: evil, Kind: evil, Value: evil, Page: -3}, {Kind: "checkbox", Value: ""}},
		Pages: []pdf.Page{
			{Number: 1, Width: math.NaN(), Height: math.Inf(1), Rotation: -90, Blocks: []pdf.Block{
				{Box: pdf.Box{X: math.Inf(-1), Y: 1e300, Width: -5, Height: math.NaN()}},
				{Lines: []pdf.Line{{}, {Words: []pdf.Word{{Text: evil, Font: evil, Size: math.NaN()}, {Text: ""}, {Text: "a", Size: 1e-9}}}}},
			}},
			{Number: 2, Width: -1, Rotation: 44},
		},
	}
}

func TestTheXMLIsValidForAnyPDF(t *testing.T) {
	for _, m := range builtin {
		t.Run(m.Name, func(t *testing.T) {
			text := made(t, m, oddDocument())
			valid(t, m.schema, text)
			if !bytes.Equal(text, made(t, m, oddDocument())) {
				t.Error("the same document became two different texts")
			}
			valid(t, m.schema, made(t, m, &pdf.Document{}))
		})
	}
}

func TestTextIsPagesAndParagraphs(t *testing.T) {
	d := &pdf.Document{Version: "1.4", Pages: []pdf.Page{
		{Number: 1, Blocks: []pdf.Block{block(words(10, 10, "Fish", "&", "chips"), words(10, 22, "are", "deli\u00ad"), words(10, 34, "cious."))}},
		{Number: 2},
	}}
	want := `<?xml version="1.0" encoding="UTF-8"?>
<document xmlns="urn:holdfast:convert:text" pdf="1.4" pages="2">
  <page number="1">
    <paragraph>Fish &amp; chips are delicious.</paragraph>
  </page>
  <page number="2"/>
</document>
`
	if got := string(made(t, builtin[0], d)); got != want {
		t.Errorf("it became\n%s\nnot\n%s", got, want)
	}
}

func TestLayoutHasPositionsAndFontsOfWords(t *testing.T) {
	d := &pdf.Document{Version: "1.4", Pages: []pdf.Page{{Number: 1, Width: 595.276, Height: 842, Rotation: 90, Blocks: []pdf.Block{block(words(10.004, 20.5, "Hi"))}}}}
	want := `<?xml version="1.0" encoding="UTF-8"?>
<document xmlns="urn:holdfast:convert:layout" pdf="1.4" pages="1">
  <page number="1" width="595.28" height="842" rotation="90">
    <block x="10" y="20.5" width="10" height="10">
      <line x="10" y="20.5" width="10" height="10">
        <word x="10" y="20.5" width="10" height="10" font="Helvetica" size="10">Hi</word>
      </line>
    </block>
  </page>
</document>
`
	got := made(t, builtin[1], d)
	if string(got) != want {
		t.Errorf("it became\n%s\nnot\n%s", got, want)
	}
	valid(t, layoutSchema, got)
}

func TestFieldsHasFormFieldsAndMetadata(t *testing.T) {
	d := &pdf.Document{Version: "2.0", Pages: make([]pdf.Page, 3),
		About:  pdf.About{Title: "A & B", Producer: "ACME", Created: "2024-02-29T13:30:00+01:00"},
		Fields: []pdf.Field{{Name: "person.name", Kind: "text", Value: "Ada", Page: 1}, {Name: "agreed", Kind: "checkbox"}, {Name: "new", Kind: "hologram", Value: "x"}}}
	want := `<?xml version="1.0" encoding="UTF-8"?>
<document xmlns="urn:holdfast:convert:fields" pdf="2.0" pages="3">
  <metadata>
    <title>A &amp; B</title>
    <producer>ACME</producer>
    <created>2024-02-29T13:30:00+01:00</created>
  </metadata>
  <form>
    <field name="person.name" kind="text" page="1">Ada</field>
    <field name="agreed" kind="checkbox"/>
    <field name="new" kind="other">x</field>
  </form>
</document>
`
	got := made(t, builtin[2], d)
	if string(got) != want {
		t.Errorf("it became\n%s\nnot\n%s", got, want)
	}
	valid(t, fieldsSchema, got)
}

// fullDisk takes some bytes and then no more.
type fullDisk int

var errFull = errors.New("no space left")

func (f *fullDisk) Write(p []byte) (int, error) {
	if *f -= fullDisk(len(p)); *f < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestAWriteErrorIsReturned(t *testing.T) {
	long := &pdf.Document{Pages: []pdf.Page{{Number: 1, Blocks: []pdf.Block{block(words(0, 0, strings.Repeat("x", 300_000)))}}}}
	for _, m := range builtin[:2] {
		for _, left := range []fullDisk{0, 70_000, 299_000} {
			if err := m.writeTo(&left, long); !errors.Is(err, errFull) {
				t.Errorf("%s was written to a full disk without a word: %v", m.Name, err)
			}
		}
	}
}
