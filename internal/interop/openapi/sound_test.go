package openapi

import (
	"strings"
	"testing"

	"github.com/speakeasy-api/openapi/openapi"

	"github.com/holdfastdev/holdfast/internal/api"
)

func TestTheDocumentIsSoundOpenAPI(t *testing.T) {
	document, wrong, err := openapi.Unmarshal(t.Context(), strings.NewReader(api.Document))
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
