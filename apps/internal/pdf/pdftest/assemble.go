// Package pdftest creates PDFs for tests: valid, unusual and hostile ones. It needs no other program.
package pdftest

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// File writes a file to a temporary folder of the test and returns its path.
func File(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sample.pdf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Assemble creates a PDF from objects in their PDF syntax. They are numbered from 1; the first is the catalog. The cross-reference table and the trailer, with extra
// among its entries, are added.
func Assemble(extra string, objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
	at := make([]int, len(objects))
	for i, object := range objects {
		at[i] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	table := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, offset := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", offset)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, extra, table)
	return b.Bytes()
}

// Stream returns a stream object with uncompressed data.
func Stream(entries string, data []byte) string {
	return fmt.Sprintf("<< %s /Length %d >>\nstream\n%s\nendstream", entries, len(data), data)
}

// Deflated returns a stream object with compressed data.
func Deflated(entries string, data io.Reader) string {
	var b bytes.Buffer
	w, _ := zlib.NewWriterLevel(&b, zlib.BestCompression)
	if _, err := io.Copy(w, data); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return Stream(entries+" /Filter /FlateDecode", b.Bytes())
}

// A draft is a PDF under construction: the catalog is object 1, the page tree object 2.
type draft struct {
	objects []string
	pages   []int
	catalog string // further entries
	trailer string
}

func begin() *draft { return &draft{objects: make([]string, 2)} }

func (d *draft) add(object string) int {
	d.objects = append(d.objects, object)
	return len(d.objects)
}

// page adds a page of A4 with resources and content.
func (d *draft) page(resources, content, more string) int {
	stream := d.add(Stream("", []byte(content)))
	n := d.add(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << %s >> /Contents %d 0 R %s >>", resources, stream, more))
	d.pages = append(d.pages, n)
	return n
}

func (d *draft) bytes() []byte {
	var kids bytes.Buffer
	for _, n := range d.pages {
		fmt.Fprintf(&kids, "%d 0 R ", n)
	}
	d.objects[0] = "<< /Type /Catalog /Pages 2 0 R " + d.catalog + " >>"
	d.objects[1] = fmt.Sprintf("<< /Type /Pages /Count %d /Kids [ %s] >>", len(d.pages), kids.String())
	return Assemble(d.trailer, d.objects...)
}
