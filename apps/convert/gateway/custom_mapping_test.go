package gateway

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
)

// A cell is a text and its position, in points from the upper left corner.
type cell struct {
	x, y float64
	text string
}

// invoiceCells are the texts of the invoice in docs/mappings.md.
var invoiceCells = []cell{
	{50, 60, "Invoice No. A-4711"}, {400, 60, "Date 29.02.2024"},
	{50, 110, "Customer M\xfcller & S\xf6hne"}, {50, 125, "Am Markt 1"}, {50, 140, "12345 Musterstadt"},
	{50, 250, "P100"}, {120, 250, "Pens, blue"}, {350, 250, "12"}, {420, 250, "3.50"},
	{50, 270, "B7"}, {120, 270, "Binder < 5 cm"}, {350, 270, "2"}, {420, 270, "12.00"},
	{50, 300, "Total EUR 66.00"},
	{50, 350, "Note: payable within"}, {50, 364, "ten days. Thank you!"},
}

// printed returns a PDF of cells in Helvetica, 12 points, with the author Ada.
func printed(cells ...cell) []byte {
	content := "BT /F1 12 Tf\n"
	for _, c := range cells {
		content += fmt.Sprintf("1 0 0 1 %g %g Tm (%s) Tj\n", c.x, 842-c.y, c.text)
	}
	return pdftest.Assemble("/Info 6 0 R",
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 5 0 R >> >> /Contents 4 0 R >>",
		pdftest.Stream("", []byte(content+"ET")),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
		"<< /Author (Ada) >>")
}

const invoiceXML = `<?xml version="1.0" encoding="UTF-8"?>
<invoice xmlns="https://example.com/invoice" currency="EUR">
  <number>A-4711</number>
  <date day="29" month="02" year="2024"/>
  <customer>
    <name>Müller &amp; Söhne</name>
    <city>
      <code>12345</code>
      <place>Musterstadt</place>
    </city>
  </customer>
  <item>
    <article>P100</article>
    <what>Pens, blue</what>
    <amount>12</amount>
    <price>3.50</price>
  </item>
  <item>
    <article>B7</article>
    <what>Binder &lt; 5 cm</what>
    <amount>2</amount>
    <price>12.00</price>
  </item>
  <total>66.00</total>
  <note>payable within ten days</note>
  <paid>no</paid>
  <made>
    <by>Ada</by>
    <with>Holdfast</with>
  </made>
</invoice>
`

// parse parses a custom mapping.
func parse(t *testing.T, text string) mapping {
	t.Helper()
	m, err := parseMapping("own.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestACustomMappingReadsAnInvoiceWithEveryReader(t *testing.T) {
	for _, r := range pdf.Readers() {
		t.Run(r.Name(), func(t *testing.T) {
			s := serve(t, Config{Mappings: "testdata", Reader: r.Name()})
			got := s.convert(t, "invoice", printed(invoiceCells...))
			s.valid(t, "invoice", got)
			if string(got.body) != invoiceXML {
				t.Errorf("it became\n%s\nnot\n%s", got.body, invoiceXML)
			}
		})
	}
}

func TestAPDFWithoutARequiredValueIsRefused(t *testing.T) {
	s := serve(t, Config{Mappings: "testdata"})
	got := s.convert(t, "invoice", printed(invoiceCells[5:]...))
	got.refused(t, 400, codeMissing)
	if !strings.Contains(string(got.body), "invoice/number") {
		t.Errorf("the answer does not say what is missing: %s", got.body)
	}
}

func TestThePageAboutMappingsShowsWhatIsTested(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "mappings.md"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join("testdata", "invoice.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{"```yaml\n" + string(file) + "```", "```xml\n" + invoiceXML + "```"} {
		if !strings.Contains(string(page), shown) {
			t.Errorf("the page should show\n%s", shown)
		}
	}
	for _, c := range invoiceCells {
		if text := strings.NewReplacer("\xfc", "ü", "\xf6", "ö").Replace(c.text); !strings.Contains(string(page), text) {
			t.Errorf("the page should show the cell %q", text)
		}
	}
}

// letter is a sample document: two pages, the first with two columns.
func letter() *pdf.Document {
	return &pdf.Document{
		Version: "1.7",
		About:   pdf.About{Title: "A letter"},
		Fields:  []pdf.Field{{Name: "a.b", Value: " yes  sir "}},
		Pages: []pdf.Page{
			{Number: 1, Width: 500, Height: 500, Blocks: []pdf.Block{
				block(words(10, 10, "left", "one"), words(10, 30, "left", "two")),
				block(words(300, 10, "right", "1"), words(300, 30, "right", "2")),
			}},
			{Number: 2, Width: 500, Height: 500, Blocks: []pdf.Block{block(words(10, 10, "last", "page"))}},
		},
	}
}

func TestEachWayToPickAValue(t *testing.T) {
	for _, c := range []struct{ law, rule, want string }{
		{"a row goes across columns, with a tab in the gap", `{element: v, find: '^left one\tright (\d)$'}`, `<v>1</v>`},
		{"a line does not", `{element: v, find: '^left one$', in: line}`, `<v>left one</v>`},
		{"a page has line ends, and empty lines between blocks", `{element: v, find: '(?s)two\n\n(right.*)', in: page}`, `<v>right 1 right 2</v>`},
		{"the first match counts", `{element: v, find: 'right \d'}`, `<v>right 1</v>`},
		{"the first pattern that matches counts", `{element: v, find: ['nothing', 'two', 'one']}`, `<v>two</v>`},
		{"each makes one of every match", `{element: v, find: '(left|right) \w+', each: true, in: row}`, `<v>left</v><v>right</v><v>left</v><v>right</v>`},
		{"each goes by the first pattern in every row", `{element: v, find: ['one', '\w+ \w+'], each: true, in: line, page: 1}`, `<v>one</v><v>left two</v><v>right 1</v><v>right 2</v>`},
		{"the last page", `{element: v, find: '\w+', page: last}`, `<v>last</v>`},
		{"a range of pages", `{element: v, find: '(\w+) page', page: 2-last}`, `<v>last</v>`},
		{"a page that is not there", `{element: v, find: '\w+', page: 3}`, ``},
		{"a region", `{element: v, region: {x: 290, y: 20, width: 200, height: 30}, page: 1}`, `<v>right 2</v>`},
		{"a pattern in a region", `{element: v, region: {x: 290, y: 0, width: 200, height: 100}, find: '\d', each: true}`, `<v>1</v><v>2</v>`},
		{"an element of a region", `{element: v, region: {x: 290, y: 0, width: 200, height: 100}, elements: [{element: w, find: '\w+ 2'}]}`, `<v><w>right 2</w></v>`},
		{"named groups become elements", `{element: v, find: '(?P<a>left) (?P<b>\w+)'}`, `<v><a>left</a><b>one</b></v>`},
		{"named groups become attributes", `{element: v, find: '(?P<a>left) (\w+)', groups: attributes}`, `<v a="left">one</v>`},
		{"a group that is empty is left out", `{element: v, find: '(?P<a>x)?(?P<b>left)'}`, `<v><b>left</b></v>`},
		{"what is inside sees only what was found", `{element: v, find: 'left \w+', each: true, elements: [{element: w, find: 'one|right'}]}`, `<v><w>one</w></v>`},
		{"a field", `{element: v, field: a.b}`, `<v>yes sir</v>`},
		{"a field that is not there", `{element: v, field: a.c, default: none}`, `<v>none</v>`},
		{"what the document tells", `{element: v, about: title}`, `<v>A letter</v>`},
		{"how many pages", `{element: v, about: pages}`, `<v>2</v>`},
		{"a fixed text", `{element: v, fixed: 007}`, `<v>007</v>`},
		{"an attribute of an element", `{element: v, find: one, elements: [{attribute: w, fixed: x}]}`, `<v w="x">one</v>`},
		{"an empty holder is left out", `{element: v, elements: [{element: w, find: nowhere}]}`, ``},
		{"an optional value is left out", `{element: v, find: nowhere}`, ``},
	} {
		t.Run(c.law, func(t *testing.T) {
			m := parse(t, "name: own\nroot: r\nelements:\n  - "+c.rule+"\n")
			text := made(t, m, letter())
			valid(t, m.schema, text)
			_, flat, _ := strings.Cut(strings.ReplaceAll(strings.ReplaceAll(string(text), "\n", ""), "  ", ""), `xmlns="urn:holdfast:mapping:own"`)
			want := ">" + c.want + "</r>"
			if c.want == "" {
				want = "/>"
			}
			if flat != want {
				t.Errorf("it became %s, not %s", flat, want)
			}
		})
	}
}

func TestARequiredValueIsNamedByItsPath(t *testing.T) {
	m := parse(t, `
name: own
root: r
elements:
  - element: part
    find: left \w+
    each: true
    elements:
      - {attribute: kind, find: one, required: true}
`)
	var why refusal
	if err := m.writeTo(new(strings.Builder), letter()); !errors.As(err, &why) || why.Code != codeMissing || !strings.Contains(why.Message, "r/part/@kind") {
		t.Errorf("the second part has no kind, and the answer is %v", err)
	}
}
