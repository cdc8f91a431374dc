package pdftest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
)

// Bomb creates a small PDF whose content decompresses to n zero bytes. A reader must refuse it as too large.
func Bomb(t testing.TB, size int64) []byte {
	t.Helper()
	content := Deflated("", io.LimitReader(zeros{}, size))
	return onePage("/Contents 4 0 R", content)
}

// Scan creates a page with only an image, as a scanner does.
func Scan(t testing.TB) []byte {
	t.Helper()
	d := begin()
	const side = 64
	dots := make([]byte, side*side)
	for i := range dots {
		dots[i] = byte(i * 7)
	}
	image := d.add(Deflated(fmt.Sprintf("/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8", side, side), bytes.NewReader(dots)))
	d.page(fmt.Sprintf("/XObject << /Im1 %d 0 R >>", image), "q 595 0 0 842 0 0 cm /Im1 Do Q\n", "")
	return d.bytes()
}

// NoPages creates a valid PDF without pages.
func NoPages(t testing.TB) []byte {
	t.Helper()
	return Assemble("", "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 0 /Kids [] >>")
}

// Polyglots returns files that are a PDF and also another format. A reader must refuse each with ErrTwoFaced or ErrNotPDF.
func Polyglots(t testing.TB) map[string][]byte {
	t.Helper()
	sound := Simple(t, "I am a PDF.")
	page := []byte("<!doctype html><script>alert(1)</script>\n")
	return map[string][]byte{
		"HTML before":          join(page, sound),
		"HTML behind":          join(sound, page),
		"ZIP behind":           join(sound, archive(t)),
		"ZIP before":           join(archive(t), sound),
		"a script before":      join([]byte("#!/bin/sh\nexit 0\n"), sound),
		"an image before":      join([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), sound),
		"a program before":     join([]byte("MZ\x90\x00"), sound),
		"one byte before":      join([]byte("x"), sound),
		"a line before":        join([]byte("\n"), sound),
		"one byte behind":      join(sound, []byte("x")),
		"zeros and ZIP behind": join(sound, make([]byte, 4096), archive(t)),
	}
}

// Damaged returns PDFs that were cut off or overwritten beyond repair. A reader must refuse each with ErrDamaged.
func Damaged(t testing.TB) map[string][]byte {
	t.Helper()
	sound := Simple(t, "One.", "Two.", "Three.")
	table := bytes.LastIndex(sound, []byte("xref\n0 "))
	return map[string][]byte{
		"only the header":      sound[:9],
		"cut after 100 bytes":  sound[:100],
		"cut in half":          sound[:len(sound)/2],
		"cut before its table": sound[:table],
		"cut in its table":     sound[:table+40],
		"cut in its trailer":   sound[:bytes.LastIndex(sound, []byte("trailer"))+12],
		"cut in its last line": sound[:len(sound)-4],
		"header and rubbish":   join([]byte("%PDF-1.7\n"), bytes.Repeat([]byte("rubbish "), 500)),
		"rubbish and an end":   join([]byte("%PDF-1.7\n"), bytes.Repeat([]byte("rubbish "), 500), []byte("\nstartxref\n9\n%%EOF\n")),
		"no catalog":           bytes.Replace(sound, []byte("/Root 1 0 R"), []byte("/Root 9 9 R"), 1),
		"a catalog of nothing": Assemble("", "<< >>"),
	}
}

// Traps returns small PDFs that make a careless reader run for ever or crash. A reader must refuse or read each within a short time.
func Traps(t testing.TB) map[string][]byte {
	t.Helper()
	form := func(body string) string {
		return Stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9] "+body, []byte("/X Do"))
	}
	return map[string][]byte{
		"the pages' tree is a ring":    Assemble("", "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] >>", "<< /Type /Pages /Count 1 /Parent 2 0 R /Kids [2 0 R] >>"),
		"the pages' tree is itself":    Assemble("", "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [2 0 R] >>"),
		"a boast of pages":             Assemble("", "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 2147483647 /Kids [3 0 R] >>", "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"),
		"deep arrays":                  onePage("/Deep "+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000), "null"),
		"deep dictionaries":            onePage("/Deep "+strings.Repeat("<</A ", 100_000)+"1"+strings.Repeat(">>", 100_000), "null"),
		"deep arrays in the content":   onePage("/Contents 4 0 R", Stream("", []byte("BT "+strings.Repeat("[", 1_000_000)+" TJ ET"))),
		"open strings":                 onePage("/Contents 4 0 R", Stream("", []byte("BT "+strings.Repeat("(", 1_000_000)+" Tj ET"))),
		"a drawing that draws itself":  onePage("/Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >>", Stream("", []byte("/X Do")), form("/Resources << /XObject << /X 5 0 R >> >>")),
		"drawings that draw twice":     doubling(30),
		"a length that is itself":      onePage("/Contents 4 0 R", "<< /Length 4 0 R >>\nstream\nBT ET\nendstream"),
		"a table that leads to itself": withPrevious(t),
		"a form that is a ring":        Assemble("", "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [4 0 R] >> >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] >>", "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>", "<< /T (a) /Kids [4 0 R] >>"),
		"saved states without end":     onePage("/Contents 4 0 R", Stream("", bytes.Repeat([]byte("q "), 1_000_000))),
		"a size beyond all numbers":    onePage("/Contents 4 0 R", Stream("", []byte("BT 1e308 0 0 1e308 1e308 1e308 Tm /F 99999999999999999999999 Tf (x) Tj ET"))),
		"a table of two thousand million": Assemble("", "<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] >>", "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>",
			Stream("/Type /ObjStm /N 2147483647 /First 2147483647", []byte("1 0"))),
	}
}

// Hostile returns all files that a reader must refuse or read within a short time, by name: Polyglots, Damaged, Traps, a Bomb and files that are no PDF.
func Hostile(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{
		"nothing":          {},
		"one byte":         {'%'},
		"text":             []byte("I am no PDF.\n"),
		"HTML":             []byte("<!doctype html><p>%PDF-1.7"),
		"ZIP":              archive(t),
		"a header's start": []byte("%PDF"),
		"a bomb":           Bomb(t, 256<<20),
	}
	maps.Copy(all, Polyglots(t))
	maps.Copy(all, Damaged(t))
	maps.Copy(all, Traps(t))
	return all
}

// onePage creates a PDF with one page, object 3, with additional entries. The objects of the caller follow from number 4.
func onePage(entries string, objects ...string) []byte {
	return Assemble("", append([]string{"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] " + entries + " >>"}, objects...)...)
}

// doubling creates form XObjects that each draw the next one twice: 2^n drawings.
func doubling(depth int) []byte {
	objects := []string{Stream("", []byte("/X Do"))}
	for i := range depth {
		objects = append(objects, Stream(fmt.Sprintf("/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X %d 0 R >> >>", 6+i), []byte("/X Do /X Do")))
	}
	objects = append(objects, Stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9]", []byte("0 g")))
	return onePage("/Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >>", objects...)
}

func withPrevious(t testing.TB) []byte {
	t.Helper()
	sound := Simple(t, "Round and round.")
	table := bytes.LastIndex(sound, []byte("xref\n0 "))
	return bytes.Replace(sound, []byte("/Root 1 0 R"), fmt.Appendf(nil, "/Root 1 0 R /Prev %d", table), 1)
}

func archive(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("evil.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("evil")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
