package pdftest

import (
	"bytes"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/api"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/model"
)

// Locked creates the same PDF as Simple and encrypts it. With an empty password it can be read by all programs but not changed. The bytes differ from call to call.
func Locked(t testing.TB, password string, texts ...string) []byte {
	t.Helper()
	api.DisableConfigDir()
	var b bytes.Buffer
	if err := api.Encrypt(bytes.NewReader(Simple(t, texts...)), &b, model.NewAESConfiguration(password, "the owner's own", 256)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
