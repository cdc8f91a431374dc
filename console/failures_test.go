package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

// fingerprintOf returns the fingerprint of the error group of a dead letter.
func (s *scene) fingerprintOf(id holdfast.ID) string {
	s.t.Helper()
	job, err := s.Operator.Job(s.t.Context(), id)
	if err != nil || job.LastFailure == nil {
		s.t.Fatalf("%s has no failure: %v", id, err)
	}
	return job.LastFailure.Fingerprint
}

func (s *scene) statusOf(fingerprint string) store.ErrorGroup {
	s.t.Helper()
	found, err := s.Operator.ErrorGroup(s.t.Context(), fingerprint)
	if err != nil {
		s.t.Fatal(err)
	}
	return found.Group
}

func TestErrorsShowProblemsWithLinks(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	gateway := s.fingerprintOf(s.Failed[0])
	s.shows("/failures", "gateway is unavailable", "dead letters.", "Redrive all", "/redrives/new", "/failures/"+gateway, "DEPENDENCY_DOWN",
		"is%3Adead&#43;fingerprint%3A"+gateway, "new error groups in the last 24 hours", "9 dead letters")
	s.shows("/failures?sort=dead&status=all&span=7d", gateway)
	if text := s.shows("/failures?kind=fetch", "NOT_FOUND"); strings.Contains(text, "DEPENDENCY_DOWN</a>") {
		t.Error("a list of one kind shows another")
	}
	s.shows("/failures?status=ignored", "No error groups match")
	s.shows("/failures/"+gateway+"?span=1h", "9 jobs", "Differences", "Check the service", "/jobs/"+s.Failed[0].String(), "/redrives/new?fingerprint="+gateway, "HTTP status 503")
}

func TestInvalidQueriesOfErrorsAreRefused(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	for path, want := range map[string]int{
		"/failures?status=sad": 400, "/failures?sort=no": 400, "/failures?span=9y": 400, "/failures?cursor=%21": 400, "/failures?code=%ff": 400,
		"/failures/nobody": 404, "/failures/nobody?span=x": 400, "/overview?span=2s": 400,
	} {
		if status, _ := s.get(path); status != want {
			t.Errorf("%s: %d, not %d", path, status, want)
		}
	}
}

func TestOperatorsTriageErrorGroups(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	gateway := s.fingerprintOf(s.Failed[0])
	say := func(verb string, form url.Values, want string) {
		t.Helper()
		if status, text := s.post("/failures/"+gateway+"/"+verb, form); status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d, and it does not say %q", verb, status, want)
		}
	}
	say("ignore", url.Values{"for": {"24h"}, "count": {"5"}, "reason": {"known"}, "back": {"/failures"}}, "ignored for 1 d, or until 5 more failures")
	if g := s.statusOf(gateway); g.Status != store.StatusIgnored || g.UntilCount != g.Failures+5 || g.Until.IsZero() || g.Actor != "ada" || g.Reason != "known" {
		t.Errorf("ignored: %+v", g)
	}
	say("ignore", url.Values{"for": {"soon"}, "back": {"/failures"}}, "use a duration such as 24h")
	say("ignore", url.Values{"count": {"-1"}, "back": {"/failures"}}, "use a number such as 100")
	say("reopen", url.Values{"back": {"/failures"}}, "reopened")
	say("acknowledge", url.Values{"back": {"/failures/" + gateway}}, "Error group acknowledged")
	say("resolve", url.Values{"version": {"1.5.0"}, "back": {"/failures?status=resolved"}}, gateway)
	if g := s.statusOf(gateway); g.Status != store.StatusResolved || g.ResolvedIn != "1.5.0" {
		t.Errorf("resolved: %+v", g)
	}
	say("note", url.Values{"reason": {"it was the <proxy>"}}, "it was the &lt;proxy&gt;")
	say("note", url.Values{"reason": {" "}}, "The note is empty")
}

func TestViewersCannotTriage(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	gateway := s.fingerprintOf(s.Failed[0])
	for _, path := range []string{"/failures", "/failures/" + gateway} {
		if text := s.shows(path); strings.Contains(text, gateway+"/resolve") || strings.Contains(text, gateway+"/note") {
			t.Errorf("%s offers a viewer what they may not do", path)
		}
	}
	for _, verb := range []string{"resolve", "ignore", "acknowledge", "reopen", "note"} {
		if status, _ := s.post("/failures/"+gateway+"/"+verb, url.Values{"reason": {"x"}}); status != http.StatusForbidden {
			t.Errorf("%s: %d", verb, status)
		}
	}
	if g := s.statusOf(gateway); g.Status != store.StatusOpen {
		t.Errorf("a viewer made it %s", g.Status)
	}
}

func TestErrorsShowHostileTextAsText(t *testing.T) {
	const bad = `"><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}`
	s := newScene(t, apikey.Operator, func(column, text string) string {
		switch column {
		case "message", "detail", "reason", "stack", "worker":
			return bad
		}
		return text
	})
	for _, path := range []string{"/overview", "/failures", "/failures/" + s.fingerprintOf(s.Failed[0]), "/failures/" + s.fingerprintOf(s.Broken)} {
		if text := s.shows(path, "&lt;script&gt;"); strings.Contains(text, "<script>alert") || strings.Contains(text, "<img src=x") {
			t.Errorf("%s lets a text be a tag", path)
		}
	}
}
