package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast/apikey"
)

func TestTheIntegrityCheckRunsOnRequest(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	s.shows("/health", "No check since", "Workers alive", "Retention")
	status, text := s.post("/health/check", url.Values{"back": {"/health"}})
	if status != http.StatusOK || !strings.Contains(text, "No problems found") {
		t.Errorf("%d: no result", status)
	}
	s.shows("/health", "by ada", "No problems found")
}

func TestHealthDutiesArePausedRunAndResumed(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	if status, text := s.post("/health/duties/promote/pause", url.Values{"back": {"/health"}, "for": {"1h"}, "reason": {"<i>quiet</i>"}}); status != http.StatusOK || !strings.Contains(text, "paused in every worker for 1 h") {
		t.Errorf("pause: %d", status)
	}
	s.shows("/health", "Paused by ada", "&lt;i&gt;quiet&lt;/i&gt;")
	if _, text := s.post("/health/duties/promote/resume", url.Values{"back": {"/health"}}); !strings.Contains(text, "Duty promote resumed") {
		t.Error("it is not resumed")
	}
	for path, form := range map[string]url.Values{"/health/duties/promote/resume": {}, "/health/duties/promote/pause": {"for": {"soon"}}, "/health/duties/claim/pause": {}, "/health/duties/nothing/run": {}} {
		form.Set("back", "/health")
		if _, text := s.post(path, form); !strings.Contains(text, `role="alert"`) {
			t.Errorf("%s is not refused", path)
		}
	}
}

func TestViewersCannotChangeHealth(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	if text := s.shows("/health"); strings.Contains(text, "Check now") {
		t.Error("a viewer is offered a check")
	}
	for _, path := range []string{"/health/check", "/health/duties/promote/pause", "/health/duties/promote/run"} {
		if status, _ := s.post(path, url.Values{}); status != http.StatusForbidden {
			t.Errorf("%s: %d", path, status)
		}
	}
}
