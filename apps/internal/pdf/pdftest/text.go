package pdftest

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/bidi"
)

const (
	linesOnPage = 50
	leading     = 14
)

// Simple creates a PDF with a page for each text, in Helvetica, 12 points. A text of more than 50 lines continues on another page. All scripts are supported: characters
// outside Windows-1252 use a font with a ToUnicode map, and right-to-left text is drawn from the right.
func Simple(t testing.TB, texts ...string) []byte {
	t.Helper()
	d := begin()
	d.write(t, texts)
	return d.bytes()
}

// Described creates the same PDF as Simple with metadata: Title, Author, Subject, Keywords, Creator, Producer, and CreationDate and ModDate in the form of PDF
// (D:20240229133000+01'00'). Lang becomes the document's language.
func Described(t testing.TB, about map[string]string, texts ...string) []byte {
	t.Helper()
	d := begin()
	d.write(t, texts)
	info := "<<"
	for _, name := range sortedNames(about) {
		if name == "Lang" {
			d.catalog += " /Lang " + wide(about[name])
			continue
		}
		info += " /" + name + " " + wide(about[name])
	}
	d.trailer = fmt.Sprintf("/Info %d 0 R", d.add(info+" >>"))
	return d.bytes()
}

// Rotated creates a page with a rotation in degrees.
func Rotated(t testing.TB, degrees int, text string) []byte {
	t.Helper()
	d := begin()
	f := d.fonts(t, []string{text})
	d.page(f.resources, f.lines(t, 72, 770, strings.Split(text, "\n")), fmt.Sprintf("/Rotate %d", degrees))
	return d.bytes()
}

// Columns creates one page with the texts in columns, as in a newspaper. Lines must be short: with two columns about 30 characters.
func Columns(t testing.TB, texts ...string) []byte {
	t.Helper()
	d := begin()
	f := d.fonts(t, texts)
	content := ""
	for i, text := range texts {
		content += f.lines(t, 50+float64(i)*500/float64(len(texts)), 770, strings.Split(text, "\n"))
	}
	d.page(f.resources, content, "")
	return d.bytes()
}

// Table creates one page with rows of cells.
func Table(t testing.TB, rows ...[]string) []byte {
	t.Helper()
	d := begin()
	var all []string
	for _, row := range rows {
		all = append(all, row...)
	}
	f := d.fonts(t, all)
	content := ""
	for i, row := range rows {
		for j, cell := range row {
			content += f.lines(t, 50+float64(j)*500/float64(len(row)), 770-float64(i)*2*leading, []string{cell})
		}
	}
	d.page(f.resources, content, "")
	return d.bytes()
}

func (d *draft) write(t testing.TB, texts []string) {
	t.Helper()
	f := d.fonts(t, texts)
	for _, text := range texts {
		for part := range slices.Chunk(strings.Split(text, "\n"), linesOnPage) {
			d.page(f.resources, f.lines(t, 72, 770, part), "")
		}
	}
}

// A fontSet is the fonts of a document: Helvetica, and a font of all characters if Helvetica lacks some.
type fontSet struct {
	resources string
	codes     map[rune]int // in the font of all characters
}

func (d *draft) fonts(t testing.TB, texts []string) fontSet {
	t.Helper()
	plain := d.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	f := fontSet{resources: fmt.Sprintf("/Font << /F1 %d 0 R >>", plain), codes: map[rune]int{}}
	seen := map[rune]bool{}
	for _, text := range texts {
		for _, r := range text {
			if _, ok := charmap.Windows1252.EncodeRune(r); !ok && r != '\n' {
				seen[r] = true
			}
		}
	}
	if len(seen) == 0 {
		return f
	}
	for _, text := range texts {
		for _, r := range text {
			seen[r] = true
		}
	}
	all := make([]rune, 0, len(seen))
	for r := range seen {
		all = append(all, r)
	}
	slices.Sort(all)
	cmap := "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapName /Made def\n/CMapType 2 def\n1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n"
	for part := range slices.Chunk(all, 100) {
		cmap += fmt.Sprintf("%d beginbfchar\n", len(part))
		for _, r := range part {
			f.codes[r] = len(f.codes) + 1
			cmap += fmt.Sprintf("<%04X> <%s>\n", f.codes[r], hexWide(string(r)))
		}
		cmap += "endbfchar\n"
	}
	cmap += "endcmap\nCMapName currentdict /CMap defineresource pop\nend\nend\n"
	toUnicode := d.add(Deflated("", strings.NewReader(cmap)))
	descriptor := d.add("<< /Type /FontDescriptor /FontName /ABCDEF+Everything /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>")
	descendant := d.add(fmt.Sprintf("<< /Type /Font /Subtype /CIDFontType2 /BaseFont /ABCDEF+Everything /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor %d 0 R /DW 600 /CIDToGIDMap /Identity >>", descriptor))
	wideFont := d.add(fmt.Sprintf("<< /Type /Font /Subtype /Type0 /BaseFont /ABCDEF+Everything /Encoding /Identity-H /DescendantFonts [%d 0 R] /ToUnicode %d 0 R >>", descendant, toUnicode))
	f.resources = fmt.Sprintf("/Font << /F1 %d 0 R /F2 %d 0 R >>", plain, wideFont)
	return f
}

// lines returns the content that draws lines of text, the first with its baseline at x, y.
func (f fontSet) lines(t testing.TB, x, y float64, lines []string) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "BT\n%d TL\n%g %g Td\n", leading, x, y)
	for _, line := range lines {
		narrow, err := charmap.Windows1252.NewEncoder().String(line)
		if err == nil {
			fmt.Fprintf(&b, "/F1 12 Tf\n(%s) Tj\nT*\n", escape(narrow))
			continue
		}
		b.WriteString("/F2 12 Tf\n<")
		for _, r := range visual(line) {
			fmt.Fprintf(&b, "%04X", f.codes[r])
		}
		b.WriteString("> Tj\nT*\n")
	}
	b.WriteString("ET\n")
	return b.String()
}

// visual returns a line in visual order, from left to right. If the line begins from the right, its parts are reversed.
func visual(line string) string {
	var p bidi.Paragraph
	if _, err := p.SetString(line); err != nil {
		return line
	}
	order, err := p.Order()
	if err != nil {
		return line
	}
	var parts []string
	for i := range order.NumRuns() {
		run := order.Run(i)
		text := run.String()
		if run.Direction() == bidi.RightToLeft {
			text = bidi.ReverseString(text)
		}
		parts = append(parts, text)
	}
	if beginsRight(line) {
		slices.Reverse(parts)
	}
	return strings.Join(parts, "")
}

func beginsRight(line string) bool {
	for _, r := range line {
		props, _ := bidi.LookupRune(r)
		switch props.Class() {
		case bidi.L:
			return false
		case bidi.R, bidi.AL:
			return true
		}
	}
	return false
}

func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `(`, `\(`, `)`, `\)`, "\r", `\r`).Replace(s)
}

// wide returns a PDF string in UTF-16.
func wide(s string) string { return "<FEFF" + hexWide(s) + ">" }

func hexWide(s string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(s)) {
		fmt.Fprintf(&b, "%04X", unit)
	}
	return b.String()
}

func sortedNames(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
