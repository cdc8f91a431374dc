package console_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/console"
)

func TestTheErrorOfWhoIsShownAndLogged(t *testing.T) {
	s := emptyScene(t)
	var log bytes.Buffer
	s.site = s.serve(console.Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Who: func(*http.Request) (console.Visitor, error) {
		return console.Visitor{}, errors.New("sign in to the <shop> first")
	}})
	status, page := s.get("/overview")
	if status != http.StatusForbidden || !strings.Contains(page, "Sign in to the &lt;shop&gt; first.") || strings.Contains(page, "could not be shown") {
		t.Errorf("status %d:\n%s", status, page)
	}
	if logged := log.String(); !strings.Contains(logged, "visitor_refused") || !strings.Contains(logged, "sign in to the <shop> first") {
		t.Errorf("the log says %q", logged)
	}
}
