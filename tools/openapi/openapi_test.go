// Package openapi asks somebody else whether our OpenAPI document is sound. It is a room of the tools' module, so that nobody who uses Holdfast
// carries what it leans on.
package openapi

import (
	"os"
	"testing"

	"github.com/speakeasy-api/openapi/openapi"
)

func TestTheDocumentIsSoundOpenAPI(t *testing.T) {
	file, err := os.Open("../../internal/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	document, wrong, err := openapi.Unmarshal(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range wrong {
		t.Error(problem)
	}
	if document.GetOpenAPI() != "3.1.0" || document.GetPaths().Len() < 60 {
		t.Errorf("it is OpenAPI %s with %d paths", document.GetOpenAPI(), document.GetPaths().Len())
	}
}
