package pdf_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/api"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"

	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
)

// A sample is a sound PDF, and words that have to be on its pages in this order.
type sample struct {
	name  string
	data  []byte
	pages []string
}

const letter = `<h1>Invoice 4711</h1><p>Dear Ms Lovelace, we thank you for your order of <b>three engines</b> and <i>one difference</i>.</p>
<table border=1><tr><td>Engine<td>3<td>1,200.00 €<tr><td>Difference<td>1<td>99.50 €</table><p>With kind regards, flawless efficiency office.</p>`

const hebrew = `<div dir=rtl style="font-family:sans-serif"><p>שלום עולם, זה מסמך לדוגמה</p><p>המספר הוא 4711 והמילה</p></div>`

const drawing = `<text x="20" y="40" font-size="24" font-family="DejaVu Sans">Cairo drew this</text><text x="20" y="80" font-size="12">and this line below</text>
<g transform="translate(300,200) rotate(90)"><text font-size="12">turned aside</text></g>`

const program = `%!PS
/Helvetica findfont 18 scalefont setfont 72 700 moveto (Ghostscript wrote this) show
/Times-Roman findfont 12 scalefont setfont 72 670 moveto (with two fonts on one page) show showpage
/Courier findfont 10 scalefont setfont 72 700 moveto (and a second page) show showpage
`

const pdfcpuPage = `{"paper":"A4P","origin":"UpperLeft","fonts":{"body":{"name":"Helvetica","size":12}},
"pages":{"1":{"content":{"text":[{"value":"Made by pdfcpu itself","pos":[72,72],"font":{"name":"$body"}},{"value":"in another place","pos":[72,200],"font":{"name":"$body"}}]}}}}`

var (
	once sync.Once
	made []sample
)

// samples are made by different programs, once for all tests.
func samples(t testing.TB) []sample {
	t.Helper()
	once.Do(func() { made = makeSamples(t) })
	if len(made) == 0 {
		t.Fatal("the samples could not be made; the test that tried first says why")
	}
	return made
}

func makeSamples(t testing.TB) []sample {
	t.Helper()
	five := manyPages(500)
	base := pdftest.Simple(t, "The first page\nwith two lines", "The second page")
	two := []string{"The first page with two lines", "The second page"}
	letterText := []string{"Invoice 4711 Dear Ms Lovelace, we thank you for your order of three engines and one difference."}
	return []sample{
		{"by hand", base, two},
		{"Latin letters", pdftest.Simple(t, "Grüße aus Köln – “quoted” naïve façade €"), []string{"Grüße aus Köln – “quoted” naïve façade €"}},
		{"Greek and Russian", pdftest.Simple(t, "Ελληνικά и русский"), []string{"Ελληνικά и русский"}},
		{"columns", pdftest.Columns(t, "one two\nthree four\nfive six", "seven eight\nnine ten\neleven"), []string{"one two three four five six seven eight nine ten eleven"}},
		{"a table", pdftest.Table(t, []string{"Name", "Amount"}, []string{"Apples", "12.50"}, []string{"Pears", "3.00"}), []string{"Name Amount Apples 12.50 Pears 3.00"}},
		{"a form", pdftest.Form(t, pdftest.Field{Name: "name", Kind: "text", Value: "Ada"}), []string{"name Ada"}},
		{"a turned page", pdftest.Rotated(t, 90, "Turned by a quarter\nof a circle"), []string{"Turned by a quarter of a circle"}},
		{"a page upside down", pdftest.Rotated(t, 180, "Upside down"), []string{"Upside down"}},
		{"right to left", pdftest.Simple(t, "שלום עולם 123"), []string{"שלום עולם 123"}},
		{"a scan", pdftest.Scan(t), []string{""}},
		{"500 pages", pdftest.Simple(t, five...), five},
		{"encrypted with an empty password", pdftest.Locked(t, "", "Open to all"), []string{"Open to all"}},
		{"pdfcpu", created(t), []string{"Made by pdfcpu itself in another place"}},
		{"Chromium", printed(t, letter), letterText},
		{"Chromium right to left", printed(t, hebrew), []string{"שלום עולם, זה מסמך לדוגמה המספר הוא 4711 והמילה"}},
		{"Chromium columns", printed(t, `<div style="columns:2;column-gap:60px;width:600px">`+strings.Repeat("<p>alpha beta gamma delta epsilon zeta eta theta iota kappa lambda.</p>", 6)+"</div>"), []string{"alpha beta gamma"}},
		{"cairo", drawn(t, drawing), []string{"Cairo drew this and this line below turned aside"}},
		{"Ghostscript", distilled(t, program), []string{"Ghostscript wrote this with two fonts on one page", "and a second page"}},
		{"qpdf linearized", rewritten(t, base, "--linearize"), two},
		{"qpdf with object streams", rewritten(t, base, "--object-streams=generate", "--stream-data=compress"), two},
		{"qpdf encrypted with 256 bits", rewritten(t, base, "--encrypt", "", "owner", "256", "--"), two},
		{"qpdf encrypted with 128 bits", rewritten(t, base, "--encrypt", "", "owner", "128", "--use-aes=y", "--"), two},
		{"qpdf encrypted with 40 bits", rewritten(t, base, "--allow-weak-crypto", "--encrypt", "", "owner", "40", "--"), two},
		{"qpdf in letters only", rewritten(t, printed(t, letter), "--qdf", "--object-streams=disable"), letterText},
		{"a table with wrong places", wrongPlaces(base), two},
	}
}

func manyPages(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("This is page %d of %d", i+1, n)
	}
	return all
}

// created has pdfcpu make a page of a description.
func created(t testing.TB) []byte {
	t.Helper()
	api.DisableConfigDir()
	var out bytes.Buffer
	if err := api.Create(nil, strings.NewReader(pdfcpuPage), &out, model.NewDefaultConfiguration()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// wrongPlaces moves all objects by a byte, so that the table is wrong but there.
func wrongPlaces(data []byte) []byte {
	moved := bytes.Replace(data, []byte("\n1 0 obj"), []byte("\n\n\n\n1 0 obj"), 1)
	table := bytes.LastIndex(moved, []byte("\nxref\n")) + 1
	i := bytes.LastIndex(moved, []byte("startxref\n")) + len("startxref\n")
	return append(moved[:i:i], fmt.Appendf(nil, "%d\n%%%%EOF\n", table)...)
}
