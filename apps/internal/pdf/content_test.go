package pdf_test

import (
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
)

// onPage is a page with this content. F1 is Helvetica, F2 has names of glyphs for its codes, F3 says what its codes of two bytes mean, X is a
// drawing of its own.
func onPage(content string) []byte {
	cmap := "begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange 2 beginbfrange <0001> <001A> <0061> <0020> <0021> [<00480069> <0021>] endbfrange 1 beginbfchar <0030> <FB01> endbfchar endcmap"
	return pdftest.Assemble("", "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F1 5 0 R /F2 6 0 R /F3 7 0 R >> /XObject << /X 10 0 R >> >> >>",
		pdftest.Deflated("", strings.NewReader(content)),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding << /Type /Encoding /Differences [1 /fi /eacute /Scaron /uni20AC /A.alt] >> >>",
		"<< /Type /Font /Subtype /Type0 /BaseFont /ABCDEF+Some /Encoding /Identity-H /DescendantFonts [8 0 R] /ToUnicode 9 0 R >>",
		"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /ABCDEF+Some /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /DW 500 /W [1 [600 600] 3 10 550] >>",
		pdftest.Stream("", []byte(cmap)),
		pdftest.Stream("/Type /XObject /Subtype /Form /BBox [0 0 200 200] /Matrix [1 0 0 1 100 100] /Resources << /Font << /F1 5 0 R >> >>", []byte("BT /F1 12 Tf 10 10 Td (inside a drawing) Tj ET")))
}

func TestTheLanguageOfPagesIsUnderstood(t *testing.T) {
	cases := map[string]struct{ content, want string }{
		"strings with escapes":        {`BT /F1 12 Tf 50 700 Td (a\(b\)c \101\102 (nested) \\) Tj ET`, `a(b)c AB (nested) \`},
		"strings in hexadecimal":      {`BT /F1 12 Tf 50 700 Td <48656C6C6F 2> Tj ET`, `Hello`},
		"kerning is no space":         {`BT /F1 12 Tf 50 700 Td [(K) 40 (ern) -20 (ed)] TJ ET`, `Kerned`},
		"a wide kern is a space":      {`BT /F1 12 Tf 50 700 Td [(two) -300 (words)] TJ ET`, `two words`},
		"lines by every operator":     {"BT /F1 12 Tf 14 TL 50 700 Td (one) Tj T* (two) Tj (three) ' 0 0 (four) \" 0 -14 TD (five) Tj 1 0 0 1 50 630 Tm (six) Tj ET", "one\ntwo\nthree\nfour\nfive\nsix"},
		"widened letters stay a word": {`BT /F1 12 Tf 0.6 Tc 50 700 Td (spaced) Tj ET`, `spaced`},
		"narrowed text":               {`BT /F1 12 Tf 50 Tz 50 700 Td (narrow text) Tj ET`, `narrow text`},
		"a scaled page":               {`q .24 0 0 -.24 0 800 cm BT /F1 50 Tf 1 0 0 -1 200 400 Tm (scaled) Tj ET Q`, `scaled`},
		"names of glyphs":             {`BT /F2 12 Tf 50 700 Td <0102030405> Tj ET`, `fiéŠ€A`},
		"codes of two bytes":          {`BT /F3 12 Tf 50 700 Td <000100020003> Tj <0020> Tj <00210030> Tj ET`, `abcHi!fi`},
		"a drawing":                   {`/X Do`, `inside a drawing`},
		"what text says of itself":    {`BT /F1 12 Tf 50 700 Td /Span << /ActualText (truth) >> BDC (lie) Tj EMC ET`, `truth`},
		"an image in the content":     {"q BI /W 4 /H 1 /BPC 8 /CS /G ID \x01EI\x02 EI Q BT /F1 12 Tf 50 700 Td (behind it) Tj ET", `behind it`},
		"letters drawn twice":         {`BT /F1 12 Tf 50 700 Td (bold) Tj 0.3 0 Td (bold) Tj ET`, `bold`},
		"letters one by one":          {`BT /F1 12 Tf 50 700 Td (o) Tj 6.672 0 Td (n) Tj 6.672 0 Td (e) Tj ET`, `one`},
		"invisible text of a scanner": {`BT 3 Tr /F1 12 Tf 50 700 Td (found by sight) Tj ET`, `found by sight`},
		"text beside the page":        {`BT /F1 12 Tf 50 700 Td (here) Tj 2000 0 Td (far) Tj ET`, `here`},
		"a page upwards":              {`BT /F1 12 Tf 0 1 -1 0 300 100 Tm (upwards we go) Tj ET`, `upwards we go`},
	}
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		for name, c := range cases {
			doc, err := reading(t, r, onPage(c.content), pdf.Limits{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got := pageText(doc.Pages[0]); got != c.want {
				t.Errorf("%s: read %q, want %q", name, got, c.want)
			}
		}
	})
}
