package console_test

import (
	"net/http"
	"testing"

	"github.com/holdfastdev/holdfast/apikey"
)

func TestAnUnknownPageIsNotFound(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	if status, _ := s.get("/no-such-page"); status != http.StatusNotFound {
		t.Errorf("a page that does not exist: %d", status)
	}
}
