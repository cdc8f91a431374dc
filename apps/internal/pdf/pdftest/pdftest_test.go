package pdftest_test

import (
	"bytes"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/api"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"

	"github.com/holdfastdev/holdfast/apps/internal/pdf/pdftest"
)

func TestTheSamplesAreValidForOtherPrograms(t *testing.T) {
	api.DisableConfigDir()
	for name, data := range map[string][]byte{
		"simple":    pdftest.Simple(t, "Hello, world (and \\ all)", "Grüße\nfür Jürgen"),
		"unicode":   pdftest.Simple(t, "שלום עולם 123", "Ελληνικά и русский"),
		"described": pdftest.Described(t, map[string]string{"Title": "A title", "CreationDate": "D:20240229133000+01'00'", "Lang": "en"}, "Text"),
		"rotated":   pdftest.Rotated(t, 90, "Turned"),
		"columns":   pdftest.Columns(t, "left\nside", "right\nside"),
		"table":     pdftest.Table(t, []string{"a", "b"}, []string{"c", "d"}),
		"form":      pdftest.Form(t, pdftest.Field{Name: "person.name", Kind: "text", Value: "Ada"}, pdftest.Field{Name: "person.age", Kind: "choice", Value: "36"}),
		"scan":      pdftest.Scan(t),
	} {
		t.Run(name, func(t *testing.T) {
			if err := api.Validate(bytes.NewReader(data), model.NewDefaultConfiguration()); err != nil {
				t.Error(err)
			}
		})
	}
}
