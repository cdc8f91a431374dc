package pdf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apps/internal/pdf"
	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
)

func TestFilesThatAreNoPDFAreRefusedWithTheirReason(t *testing.T) {
	cases := map[string]struct {
		data []byte
		want error
	}{
		"nothing":                    {nil, pdf.ErrNotPDF},
		"text":                       {[]byte("I am no PDF.\n"), pdf.ErrNotPDF},
		"a header's start":           {[]byte("%PDF-"), pdf.ErrNotPDF},
		"a password":                 {pdftest.Locked(t, "secret", "x"), pdf.ErrLocked},
		"qpdf's password":            {rewritten(t, pdftest.Simple(t, "x"), "--encrypt", "secret", "owner", "256", "--"), pdf.ErrLocked},
		"qpdf's weak password":       {rewritten(t, pdftest.Simple(t, "x"), "--allow-weak-crypto", "--encrypt", "secret", "owner", "40", "--"), pdf.ErrLocked},
		"a bomb":                     {pdftest.Bomb(t, 1<<30), pdf.ErrTooMuch},
		"a ZIP around the PDF's end": {zipAround(t), pdf.ErrTwoFaced},
	}
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		for name, c := range cases {
			if _, err := reading(t, r, c.data, pdf.Limits{}); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want: %v", name, err, c.want)
			}
		}
	})
}

// zipAround is a PDF whose end lies in the comment of a ZIP archive.
func zipAround(t *testing.T) []byte {
	sound := pdftest.Simple(t, "Two faces")
	cut := bytes.LastIndex(sound, []byte("trailer"))
	rest := sound[cut:]
	record := append([]byte("% PK\x05\x06"), make([]byte, 16)...)
	record = append(record, byte(len(rest)+1), byte((len(rest)+1)>>8), '\n')
	return bytes.Join([][]byte{sound[:cut], record, rest}, nil)
}

func TestTwoFacedFilesAreRefused(t *testing.T) {
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		for name, data := range pdftest.Polyglots(t) {
			if _, err := reading(t, r, data, pdf.Limits{}); !errors.Is(err, pdf.ErrTwoFaced) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestDamagedFilesAreRefused(t *testing.T) {
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		for name, data := range pdftest.Damaged(t) {
			if _, err := reading(t, r, data, pdf.Limits{}); !errors.Is(err, pdf.ErrDamaged) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestACutFileIsNeverReadAsComplete cuts files of several producers at many positions.
func TestACutFileIsNeverReadAsComplete(t *testing.T) {
	base := pdftest.Simple(t, "One.", "Two.", "Three.")
	made := map[string][]byte{"by hand": base, "linearized": rewritten(t, base, "--linearize"), "object streams": rewritten(t, base, "--object-streams=generate"), "Chromium": printed(t, letter)}
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		for name, data := range made {
			whole := len(bytes.TrimRight(data, "\r\n"))
			for i := range 40 {
				cut := data[:whole*i/40]
				if _, err := reading(t, r, cut, pdf.Limits{}); !errors.Is(err, pdf.ErrDamaged) && !(i == 0 && errors.Is(err, pdf.ErrNotPDF)) {
					t.Errorf("%s, cut after %d of %d bytes: %v", name, len(cut), len(data), err)
				}
			}
		}
	})
}

func TestTrapsDoNotBlockTheReader(t *testing.T) {
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		for name, data := range pdftest.Traps(t) {
			doc, err := reading(t, r, data, pdf.Limits{})
			if err != nil && !refused(err) {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil && len(doc.Pages) > 1 {
				t.Errorf("%s: %d pages", name, len(doc.Pages))
			}
		}
	})
}

func TestLimitsHold(t *testing.T) {
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		ten := pdftest.Simple(t, manyPages(10)...)
		if _, err := reading(t, r, ten, pdf.Limits{Pages: 9}); !errors.Is(err, pdf.ErrTooMuch) {
			t.Errorf("ten pages where nine are allowed: %v", err)
		}
		if _, err := reading(t, r, ten, pdf.Limits{Pages: 10}); err != nil {
			t.Errorf("ten pages where ten are allowed: %v", err)
		}
		if _, err := reading(t, r, pdftest.Simple(t, strings.Repeat("word ", 200)), pdf.Limits{Text: 500}); !errors.Is(err, pdf.ErrTooMuch) {
			t.Errorf("a thousand bytes of text where 500 are allowed: %v", err)
		}
	})
}

func TestACancelledReadEnds(t *testing.T) {
	withBoth(t, func(t *testing.T, r pdf.Reader) {
		file, err := os.Open(pdftest.File(t, pdftest.Simple(t, "x")))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Read(ctx, file, pdf.Limits{}); !errors.Is(err, context.Canceled) {
			t.Errorf("it said %v", err)
		}
	})
}

func TestReadersThatAreNotThereAreNamed(t *testing.T) {
	if _, err := pdf.Find("typewriter"); !errors.Is(err, pdf.ErrNoReader) {
		t.Error(err)
	}
	t.Setenv("PATH", "")
	if _, err := pdf.Find("poppler"); !errors.Is(err, pdf.ErrNoPoppler) {
		t.Error(err)
	}
	r, err := pdf.Find("")
	if err != nil || r.Name() != "go" {
		t.Error(fmt.Sprint(r), err)
	}
}
