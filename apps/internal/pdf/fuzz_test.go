package pdf_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
)

// FuzzNoInputCrashesTheReader: whatever the bytes, the reader ends, and with a document or with one of its own refusals.
func FuzzNoInputCrashesTheReader(f *testing.F) {
	for _, data := range [][]byte{
		pdftest.Simple(f, "Hello (world) \\ and", "more"), pdftest.Simple(f, "שלום עולם 123", "Ελληνικά"), pdftest.Columns(f, "a\nb", "c\nd"), pdftest.Rotated(f, 90, "x"),
		pdftest.Form(f, pdftest.Field{Name: "a.b", Kind: "text", Value: "v"}, pdftest.Field{Name: "c", Kind: "checkbox", Value: "Yes"}), pdftest.Scan(f), pdftest.NoPages(f),
		pdftest.Described(f, map[string]string{"Title": "t", "CreationDate": "D:2024"}, "x"), pdftest.Locked(f, "", "x"), pdftest.Locked(f, "secret", "x"),
	} {
		f.Add(data)
	}
	for _, some := range []map[string][]byte{pdftest.Polyglots(f), pdftest.Damaged(f), pdftest.Traps(f)} {
		for _, data := range some {
			if len(data) < 64<<10 {
				f.Add(data)
			}
		}
	}
	r, err := pdf.Find("go")
	if err != nil {
		f.Fatal(err)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		// What was changed seldom keeps its end, without which nothing further is looked at.
		for i, one := range [][]byte{data, append(bytes.Clone(data), "\nstartxref\n9\n%%EOF\n"...)} {
			file, err := os.OpenFile(filepath.Join(dir, "one.pdf"), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.Write(one); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			doc, err := r.Read(ctx, file, pdf.Limits{Pages: 50, Text: 1 << 20})
			cancel()
			if closeErr := file.Close(); closeErr != nil {
				t.Fatal(closeErr)
			}
			if err != nil && !refused(err) {
				t.Errorf("%d: %v", i, err)
			}
			if errors.Is(err, context.DeadlineExceeded) || err == nil && doc == nil {
				t.Errorf("%d: %v, %v", i, doc, err)
			}
		}
	})
}
