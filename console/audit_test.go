package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func TestAuditShowsActorActionAndReason(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	s.sequence()
	text := s.shows("/audit", "the vendor is on it", `href="/breakers/gateway"`, "hold on queue bulk", `href="/queues#q-bulk"`, "sent by hand", "End of the log.")
	if strings.Index(text, "schedule sweep") > strings.Index(text, "sent by hand") {
		t.Error("the newest entry is not the first")
	}
	s.shows("/audit?subject=breaker%2Fgateway", "open", "All stored entries of this subject")
	if text := s.shows("/audit?actor=nobody"); !strings.Contains(text, "No entries match") {
		t.Error("entries of other actors are shown")
	}
	s.shows("/audit?subject=" + holdfast.NewID().String())
	for _, bad := range []string{"/audit?since=soon", "/audit?cursor=x", "/audit?cursor=-1"} {
		if status, _ := s.get(bad); status != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, status)
		}
	}
}

// sequence numbers all events, as a worker would.
func (s *scene) sequence() {
	s.t.Helper()
	for {
		n, err := s.Store.Sequence(s.t.Context(), 1000)
		if err != nil {
			s.t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

var auditOlder = regexp.MustCompile(`href="([^"]*)" rel="next"`)

func TestAuditPagesLeadBackToTheFirstEntry(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	const entries = 120
	for n := range entries {
		by := ops.Actor{Name: "grace", Reason: fmt.Sprintf("reason %03d.", n)}
		if err := s.Operator.SetShare(t.Context(), ops.Share{Owner: "ada", Weight: float64(n + 2)}, by); err != nil {
			t.Fatal(err)
		}
	}
	s.sequence()
	seen, at := map[string]bool{}, "/audit?actor=grace"
	for range 20 {
		text := s.shows(at)
		for n := range entries {
			reason := fmt.Sprintf("reason %03d.", n)
			if strings.Contains(text, reason) {
				if seen[reason] {
					t.Errorf("%s is there twice", reason)
				}
				seen[reason] = true
			}
		}
		next := auditOlder.FindStringSubmatch(text)
		if next == nil {
			break
		}
		at = html.UnescapeString(next[1])
	}
	if len(seen) != entries {
		t.Errorf("%d of %d entries are reached", len(seen), entries)
	}
}

func TestAnActionOnManyJobsIsOneEntry(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	for _, id := range s.Failed[:3] {
		if _, err := s.Operator.Retry(t.Context(), store.Intervention{Job: id, Actor: "grace", Reason: "all of them"}); err != nil {
			t.Fatal(err)
		}
	}
	s.sequence()
	if text := s.shows("/audit?actor=grace", "and 2 more"); strings.Count(text, "all of them") != 1 {
		t.Error("every job has a line")
	}
}

func TestHostileTextStaysTextOnSystemPages(t *testing.T) {
	const evil = `"><img src=x onerror=alert(1)>`
	s := newScene(t, apikey.Operator, func(_, text string) string { return text + evil })
	s.sequence()
	for _, path := range []string{"/audit", "/audit?actor=", "/audit?subject=", "/policies?kind=", "/policies?error=", "/policies?owner=", "/policies?tab=codes&find=", "/health", "/settings"} {
		if strings.HasSuffix(path, "=") {
			path += url.QueryEscape(evil)
		}
		if text := s.shows(path); strings.Contains(text, "<img src=x") {
			t.Errorf("%s: text became markup", path)
		}
	}
	if text := s.computed("/analytics"); strings.Contains(text, "<img src=x") {
		t.Error("analytics: text became markup")
	}
}
