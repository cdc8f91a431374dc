package pdf_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
)

// TestBothReadersFindTheSameWordsOnEachPage: issue 7, real PDFs from several producers.
func TestBothReadersFindTheSameWordsOnEachPage(t *testing.T) {
	first, err := pdf.Find("poppler")
	if err != nil {
		t.Fatal(err)
	}
	second, err := pdf.Find("go")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			a, b := mustRead(t, first, s.data), mustRead(t, second, s.data)
			if len(a.Pages) != len(s.pages) || len(b.Pages) != len(s.pages) {
				t.Fatalf("poppler found %d pages, go %d; there are %d", len(a.Pages), len(b.Pages), len(s.pages))
			}
			for i, want := range s.pages {
				for _, doc := range []*pdf.Document{a, b} {
					if got := strings.Join(strings.Fields(pageText(doc.Pages[i])), " "); !strings.HasPrefix(got, want) {
						t.Errorf("page %d says\n%s\nand should begin\n%s", i+1, got, want)
					}
				}
				if diff := cmp.Diff(sortedWords(a.Pages[i]), sortedWords(b.Pages[i])); diff != "" {
					t.Errorf("page %d, poppler - go +:\n%s", i+1, diff)
				}
			}
		})
	}
}

func sortedWords(p pdf.Page) []string {
	words := strings.Fields(pageText(p))
	slices.Sort(words)
	return words
}

func TestWordsHaveTheirPositions(t *testing.T) {
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		for _, s := range samples(t) {
			doc := mustRead(t, r, s.data)
			for _, p := range doc.Pages {
				for _, b := range p.Blocks {
					for _, l := range b.Lines {
						checkLine(t, s.name, p, l)
					}
				}
			}
		}
		doc := mustRead(t, r, pdftest.Simple(t, "Hello"))
		got := doc.Pages[0].Blocks[0].Lines[0].Words[0]
		near := func(a, b float64) bool { return a-b < 0.1 && b-a < 0.1 }
		if !near(got.Box.X, 72) || !near(got.Box.Y, 842-770-0.718*12) || !near(got.Box.Width, 27.336) || got.Font != "Helvetica" || got.Size != 12 {
			t.Errorf("Hello is %+v", got)
		}
	})
}

func checkLine(t *testing.T, name string, p pdf.Page, l pdf.Line) {
	t.Helper()
	if len(l.Words) == 0 {
		t.Errorf("%s: a line without words", name)
	}
	for _, w := range l.Words {
		if w.Text == "" || strings.ContainsAny(w.Text, " \n\t") {
			t.Errorf("%s: %q is no word", name, w.Text)
		}
		if w.Box.X < -1 || w.Box.Y < -1 || w.Box.X+w.Box.Width > p.Width+1 || w.Box.Y+w.Box.Height > p.Height+1 {
			t.Errorf("%s: %q is at %+v on a page of %g x %g", name, w.Text, w.Box, p.Width, p.Height)
		}
		if w.Font == "" || w.Size <= 0 {
			t.Errorf("%s: %q has the font %q of %g points", name, w.Text, w.Font, w.Size)
		}
	}
}

func TestColumnsAreReadOneAfterTheOtherAndRowsOfATableAcross(t *testing.T) {
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		columns := mustRead(t, r, pdftest.Columns(t, "a b\nc d\ne f", "g h\ni j\nk l"))
		if got, want := pageText(columns.Pages[0]), "a b\nc d\ne f\n\ng h\ni j\nk l"; got != want {
			t.Errorf("columns:\n%s", got)
		}
		table := mustRead(t, r, pdftest.Table(t, []string{"Name", "Amount"}, []string{"Apples", "12.50"}))
		if got, want := pageText(table.Pages[0]), "Name\n\nAmount\n\nApples\n\n12.50"; got != want {
			t.Errorf("a table:\n%s", got)
		}
	})
}

func TestRightToLeftTextIsInReadingOrder(t *testing.T) {
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		lines := []string{"שלום עולם 123", "مرحبا بالعالم", "abc שלום עולם def", "מחיר 12.50 לכל"}
		doc := mustRead(t, r, pdftest.Simple(t, lines...))
		for i, want := range lines {
			if got := pageText(doc.Pages[i]); got != want {
				t.Errorf("read %q, want %q", got, want)
			}
		}
	})
}

func TestMetadataIsRead(t *testing.T) {
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		data := pdftest.Described(t, map[string]string{"Title": "Ein Titel – mit Strich", "Author": "Ada", "Subject": "Engines", "Keywords": "a, b", "Creator": "by hand", "Producer": "pdftest",
			"CreationDate": "D:20240229133000+01'00'", "ModDate": "D:20240301", "Lang": "de-AT"}, "x")
		want := pdf.About{Title: "Ein Titel – mit Strich", Author: "Ada", Subject: "Engines", Keywords: "a, b", Creator: "by hand", Producer: "pdftest",
			Created: "2024-02-29T13:30:00+01:00", Modified: "2024-03-01T00:00:00Z", Language: "de-AT"}
		doc := mustRead(t, r, data)
		if diff := cmp.Diff(want, doc.About); diff != "" {
			t.Error(diff)
		}
		if doc.Version != "1.7" {
			t.Errorf("version %q", doc.Version)
		}
	})
}

func TestXMPMetadataIsRead(t *testing.T) {
	packet := `<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:CreateDate="2024-05-06T07:08:09+02:00">
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">From the packet</rdf:li></rdf:Alt></dc:title><dc:creator><rdf:Seq><rdf:li>Grace</rdf:li></rdf:Seq></dc:creator></rdf:Description></rdf:RDF></x:xmpmeta>`
	data := pdftest.Assemble("", "<< /Type /Catalog /Pages 2 0 R /Metadata 4 0 R >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] >>", "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>",
		pdftest.Stream("/Type /Metadata /Subtype /XML", []byte(packet)))
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		want := pdf.About{Title: "From the packet", Author: "Grace", Created: "2024-05-06T07:08:09+02:00"}
		if diff := cmp.Diff(want, mustRead(t, r, data).About); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFieldsOfAFormHaveTheirFullNamesKindsValuesAndPages(t *testing.T) {
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		doc := mustRead(t, r, pdftest.Form(t, pdftest.Field{Name: "person.name", Kind: "text", Value: "Ada Lovelace"}, pdftest.Field{Name: "person.city.zip", Kind: "text", Value: "1010"},
			pdftest.Field{Name: "agree", Kind: "checkbox", Value: "Yes"}, pdftest.Field{Name: "news", Kind: "checkbox"}, pdftest.Field{Name: "colour", Kind: "radio", Value: "red"},
			pdftest.Field{Name: "country", Kind: "choice", Value: "Österreich"}, pdftest.Field{Name: "send", Kind: "button"}, pdftest.Field{Name: "sign", Kind: "signature"}))
		want := []pdf.Field{{"person.name", "text", "Ada Lovelace", 1}, {"person.city.zip", "text", "1010", 1}, {"agree", "checkbox", "Yes", 1}, {"news", "checkbox", "", 1},
			{"colour", "radio", "red", 1}, {"country", "choice", "Österreich", 1}, {"send", "button", "", 1}, {"sign", "signature", "", 1}}
		if diff := cmp.Diff(want, doc.Fields); diff != "" {
			t.Error(diff)
		}
	})
}

func TestARotatedPageHasItsShownSize(t *testing.T) {
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		for degrees, want := range map[int][2]float64{0: {595, 842}, 90: {842, 595}, 180: {595, 842}, 270: {842, 595}, -90: {842, 595}} {
			p := mustRead(t, r, pdftest.Rotated(t, degrees, "Turned")).Pages[0]
			if p.Width != want[0] || p.Height != want[1] || p.Rotation != (degrees+360)%360 || pageText(p) != "Turned" {
				t.Errorf("%d: %g x %g, turned by %d: %q", degrees, p.Width, p.Height, p.Rotation, pageText(p))
			}
		}
	})
}

func TestPagesWithoutTextAreNoError(t *testing.T) {
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		doc := mustRead(t, r, pdftest.Scan(t))
		if len(doc.Pages) != 1 || len(doc.Pages[0].Blocks) != 0 {
			t.Errorf("%+v", doc.Pages)
		}
	})
}
