package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// smallPDF is a PDF of one empty page, whose cross-references are wrong, which does not matter here.
const smallPDF = "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n" +
	"3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>\nendobj\nxref\n0 4\n0000000000 65535 f \ntrailer\n<</Size 4/Root 1 0 R/ID[<00ff><00ff>]>>\nstartxref\n170\n%%EOF\n"

// zipOf is an archive of one file, with a comment at its end.
func zipOf(t testing.TB, comment string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("a.txt")
	if err == nil {
		_, err = io.WriteString(f, "hello")
	}
	if err = errors.Join(err, w.SetComment(comment), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// judge reads a file through a shape, in pieces of so many bytes.
func judge(file string, piece int) error {
	s := &pdfChecker{from: strings.NewReader(file)}
	_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{s}, make([]byte, piece))
	return err
}

func TestPDFsPassTheCheck(t *testing.T) {
	body := strings.TrimSuffix(smallPDF, "%%EOF\n")
	long := strings.Replace(smallPDF, "xref\n", "4 0 obj\n<</Length 300000>>\nstream\n"+strings.Repeat("x", 300_000)+"\nendstream\nendobj\nxref\n", 1)
	attached := strings.Replace(smallPDF, "xref\n", "4 0 obj\n<</Length 1>>\nstream\n"+zipOf(t, "")+"\nendstream\nendobj\nxref\n", 1)
	for name, file := range map[string]string{
		"as it is":                 smallPDF,
		"no line end":              body + "%%EOF",
		"CR":                       body + "%%EOF\r",
		"CR LF":                    body + "%%EOF\r\n",
		"padded with NUL":          body + "%%EOF\n" + strings.Repeat("\x00", 4096),
		"padded with lines":        body + "%%EOF" + strings.Repeat("\r\n", 2000) + " \t",
		"no space before the end":  body + "170%%EOF",
		"linearised or updated":    smallPDF + "4 0 obj\n<<>>\nendobj\nstartxref\n9\n%%EOF\n",
		"of version 2.0":           strings.Replace(smallPDF, "%PDF-1.7", "%PDF-2.0", 1),
		"more in the first line":   strings.Replace(smallPDF, "%PDF-1.7", "%PDF-1.4 %made by hand", 1),
		"longer than what is kept": long,
		"an archive attached":      attached,
		"markup in a string":       strings.Replace(smallPDF, "/Type/Catalog", "/Type/Catalog/T(<html><script>)", 1),
		"metadata":                 strings.Replace(smallPDF, "xref\n", "4 0 obj\n<<>>stream\n<?xpacket begin?><x:xmpmeta/><?xml ?>\nendstream\nendobj\nxref\n", 1),
	} {
		if err := judge(file, 512); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFilesThatAreNoPDFOrAlsoAnotherFormatAreRefused(t *testing.T) {
	for name, file := range hostileFiles(t) {
		if err := judge(file, 512); !errors.As(err, new(notPDF)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// hostileFiles are files that are no PDFs, or something else besides.
func hostileFiles(t testing.TB) map[string]string {
	body := strings.TrimSuffix(smallPDF, "%%EOF\n")
	behind := zipOf(t, "")
	tar := "%PDF-1.7\n" + strings.Repeat(" ", 248) + "ustar\x0000" + strings.Repeat("\x00", 247) + smallPDF
	return map[string]string{
		"empty":                                "",
		"one byte":                             "%",
		"seven bytes":                          "%PDF-1.",
		"only the header":                      "%PDF-1.7",
		"only the end":                         "%%EOF",
		"text":                                 "Dear Sir or Madam,\n",
		"zeros":                                strings.Repeat("\x00", 100_000),
		"white space":                          strings.Repeat(" \n", 100_000),
		"a picture":                            "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"a program":                            "MZ\x90\x00\x03",
		"PostScript":                           "%!PS-Adobe-3.0\n%%EOF\n",
		"no version":                           strings.Replace(smallPDF, "1.7", "x.y", 1),
		"a lower-case header":                  strings.Replace(smallPDF, "%PDF", "%pdf", 1),
		"a byte before the header":             "\n" + smallPDF,
		"a byte order mark before the header":  "\ufeff" + smallPDF,
		"UTF-16":                               "\xff\xfe%\x00P\x00D\x00F\x00-\x001\x00.\x007\x00",
		"HTML, then a PDF":                     "<!DOCTYPE html><html></html>\n" + smallPDF,
		"a PDF, then HTML":                     smallPDF + "<html><script>alert(1)</script></html>",
		"HTML between two ends":                smallPDF + "<html></html>\n%%EOF\n",
		"HTML behind the header":               strings.Replace(smallPDF, "\n", "\n<HTML><body>", 1),
		"a script behind the header":           strings.Replace(smallPDF, "\n", "\n%<ScRiPt>", 1),
		"PHP behind the header":                strings.Replace(smallPDF, "\n", "\n<?php system('id'); ?>", 1),
		"an archive, then a PDF":               behind + smallPDF,
		"a PDF, then an archive":               smallPDF + behind,
		"an archive behind the header":         strings.Replace(smallPDF, "\n", "\n"+behind+"\n", 1),
		"an archive whose comment ends a PDF":  body + zipOf(t, "\n%%EOF\n"),
		"an archive whose comment is a PDF":    "%PDF-1.7\n" + zipOf(t, smallPDF),
		"a long comment that ends a PDF":       body + zipOf(t, strings.Repeat(" ", 65_000)+"endobj\n%%EOF\n"),
		"an archive behind the last object":    body + behind + "\n%%EOF\n",
		"a tar archive":                        tar,
		"cut off":                              smallPDF[:len(smallPDF)/2],
		"cut off before the last byte":         strings.TrimRight(smallPDF, "F\n"),
		"cut off in its second half, updated":  smallPDF + "4 0 obj\n<<>>\nendobj\nstartx",
		"more white space than any file needs": body + "%%EOF" + strings.Repeat(" ", tailBytes),
	}
}

func TestAWrongHeaderIsFoundBeforeTheRestIsRead(t *testing.T) {
	s := &pdfChecker{from: io.MultiReader(strings.NewReader("GIF89a; not one of ours"), iotest.ErrReader(errors.New("read on")))}
	if _, err := io.Copy(io.Discard, s); !errors.As(err, new(notPDF)) {
		t.Error(err)
	}
}

func TestAReadErrorIsNotReportedAsNotPDF(t *testing.T) {
	broken := errors.New("broken")
	s := &pdfChecker{from: io.MultiReader(strings.NewReader(smallPDF), iotest.ErrReader(broken))}
	if _, err := io.Copy(io.Discard, s); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// FuzzPDFCheck: whatever a file is, the verdict does not depend on how it is cut into reads, and nothing is lost on the way of one that passes.
func FuzzPDFCheck(f *testing.F) {
	f.Add([]byte(smallPDF), uint16(1))
	for _, file := range hostileFiles(f) {
		f.Add([]byte(file), uint16(7))
	}
	f.Fuzz(func(t *testing.T, file []byte, piece uint16) {
		whole := judge(string(file), len(file)+1)
		pieces := judge(string(file), int(piece%4096)+1)
		s := &pdfChecker{from: iotest.DataErrReader(bytes.NewReader(file))}
		got, together := io.ReadAll(s)
		if (whole == nil) != (pieces == nil) || whole != nil && (whole.Error() != pieces.Error() || together == nil || whole.Error() != together.Error()) {
			t.Fatalf("as a whole: %v; in pieces of %d: %v; with its end: %v", whole, piece%4096+1, pieces, together)
		}
		if whole == nil && !bytes.Equal(got, file) {
			t.Fatal("something was lost on the way")
		}
	})
}

func TestFileNamesAreMadeSafeToShow(t *testing.T) {
	for given, want := range map[string]string{
		"report.pdf": "report.pdf", "": unnamed, ".": unnamed, "..": unnamed, " . . ": unnamed, "/": unnamed, `C:\Users\me\a.pdf`: "a.pdf", "../../etc/passwd": "passwd",
		"a/b/../c.pdf": "c.pdf", "x\x00y.pdf": "xy.pdf", "a\r\nSet-Cookie: b.pdf": "aSet-Cookie: b.pdf", "\u202efdp.exe": "fdp.exe", "\u2067a\u2069.pdf": "a.pdf", "..\u200e": unnamed,
		"  a.pdf  ": "a.pdf", "\xff\xfea.pdf": "\ufffda.pdf", "naïve 文件 🙂.pdf": "naïve 文件 🙂.pdf", "می\u200cخواهم.pdf": "می\u200cخواهم.pdf", "CON": "CON", "\ufeffa.pdf": "a.pdf",
		strings.Repeat("é", 200) + ".pdf": strings.Repeat("é", 125) + ".pdf", strings.Repeat("a", 300): strings.Repeat("a", 255),
	} {
		if got := cleanName(given); got != want {
			t.Errorf("%q became %q, not %q", given, got, want)
		}
	}
}

// FuzzCleanName: whatever a client calls its file, the name is short, whole and printable, leads nowhere, and stays as it is once it is clean.
func FuzzCleanName(f *testing.F) {
	for _, seed := range []string{"a.pdf", "../x", "\u202e", strings.Repeat("語", 100) + ".pdf", "\xff", strings.Repeat("a", 250) + "   .pdf", ".", "a\\b", strings.Repeat(" .", 200) + "é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, given string) {
		name := cleanName(given)
		if name == "" || name == "." || name == ".." || len(name) > 255 || !utf8.ValidString(name) || strings.ContainsAny(name, "/\\\x00\r\n\u202e") || strings.TrimSpace(name) != name {
			t.Fatalf("%q became %q", given, name)
		}
		if again := cleanName(name); again != name {
			t.Fatalf("%q became %q, and that %q", given, name, again)
		}
	})
}
