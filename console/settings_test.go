package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apikey"
)

func TestSettingsAreKeptInACookieAlsoByAViewer(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	s.shows("/settings", "Time zone", "viewer: may read everything")
	status, text := s.post("/settings", url.Values{"theme": {"dark"}, "density": {"compact"}, "clock": {"absolute"}, "zone": {"Europe/Berlin"}, "back": {"/settings"}})
	if status != http.StatusOK || !strings.Contains(text, `data-theme="dark"`) || !strings.Contains(text, `data-density="compact"`) || !strings.Contains(text, `value="Europe/Berlin"`) || !strings.Contains(text, "Settings saved in this browser.") {
		t.Errorf("%d: not kept", status)
	}
}

func TestInvalidSettingsAreRefusedAsAWhole(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	for _, form := range []url.Values{{"theme": {"dark"}, "zone": {"Mars/Olympus"}}, {"zone": {"Local"}}, {"zone": {"../../etc/passwd"}}, {"theme": {"dark"}, "density": {"loud"}}} {
		status, text := s.post("/settings", form)
		if status != http.StatusOK || !strings.Contains(text, `role="alert"`) || strings.Contains(text, `data-theme="dark"`) {
			t.Errorf("%v: %d", form, status)
		}
	}
}
