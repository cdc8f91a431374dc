package pdf_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
	"github.com/holdfastdev/holdfast/internal/testprograms"
)

// confinedEnv makes the test's own program into one that confines itself and then misbehaves.
const confinedEnv = "PDF_TEST_CONFINED"

func TestMain(m *testing.M) {
	if how := os.Getenv(confinedEnv); how != "" {
		misbehave(how)
	}
	if _, err := testprograms.Poppler.Ensure(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// tool runs a third-party program. The test fails if the program does.
func tool(t testing.TB, p testprograms.Program, arguments ...string) {
	t.Helper()
	path, err := p.Ensure()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, path, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", p.Name, err, out)
	}
}

// printed has Chromium print a page of HTML.
func printed(t testing.TB, html string) []byte {
	t.Helper()
	dir := t.TempDir()
	page, out := filepath.Join(dir, "page.html"), filepath.Join(dir, "page.pdf")
	put(t, page, []byte("<!doctype html><meta charset=utf-8>"+html))
	tool(t, testprograms.Chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", "--user-data-dir="+filepath.Join(dir, "profile"), "--print-to-pdf="+out, "file://"+page)
	return bytesOf(t, out)
}

// drawn has cairo, behind librsvg, make a PDF of a drawing.
func drawn(t testing.TB, svg string) []byte {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.svg"), filepath.Join(dir, "out.pdf")
	put(t, in, []byte(`<svg xmlns="http://www.w3.org/2000/svg" width="500" height="300">`+svg+`</svg>`))
	tool(t, testprograms.Rsvg, "-f", "pdf", "-o", out, in)
	return bytesOf(t, out)
}

// rewritten lets qpdf rewrite a PDF in another form.
func rewritten(t testing.TB, data []byte, arguments ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.pdf"), filepath.Join(dir, "out.pdf")
	put(t, in, data)
	tool(t, testprograms.Qpdf, append(arguments, in, out)...)
	return bytesOf(t, out)
}

// distilled has Ghostscript make a PDF of a program in PostScript.
func distilled(t testing.TB, program string) []byte {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.ps"), filepath.Join(dir, "out.pdf")
	put(t, in, []byte(program))
	tool(t, testprograms.Ghostscript, "-q", "-dBATCH", "-dNOPAUSE", "-dSAFER", "-sDEVICE=pdfwrite", "-sOutputFile="+out, in)
	return bytesOf(t, out)
}

func put(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func bytesOf(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// reading reads a PDF and answers with what came of it.
func reading(t testing.TB, r pdf.Reader, data []byte, l pdf.Limits) (*pdf.Document, error) {
	t.Helper()
	file, err := os.Open(pdftest.File(t, data))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	return r.Read(ctx, file, l)
}

func mustRead(t testing.TB, r pdf.Reader, data []byte) *pdf.Document {
	t.Helper()
	doc, err := reading(t, r, data, pdf.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// withBoth runs a law with each reader.
func withBoth(t *testing.T, law func(t *testing.T, r pdf.Reader)) {
	t.Helper()
	for _, name := range []string{"poppler", "go"} {
		r, err := pdf.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { law(t, r) })
	}
}

// pageText is a page with its lines as lines, and an empty line between blocks.
func pageText(p pdf.Page) string {
	var blocks []string
	for _, b := range p.Blocks {
		var lines []string
		for _, l := range b.Lines {
			var words []string
			for _, w := range l.Words {
				words = append(words, w.Text)
			}
			lines = append(lines, strings.Join(words, " "))
		}
		blocks = append(blocks, strings.Join(lines, "\n"))
	}
	return strings.Join(blocks, "\n\n")
}

func refused(err error) bool {
	for _, known := range []error{pdf.ErrNotPDF, pdf.ErrDamaged, pdf.ErrLocked, pdf.ErrTooMuch, pdf.ErrTwoFaced} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
