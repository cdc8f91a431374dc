package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// fields are the hidden fields of the form that a page sends to an address.
func (s *scene) fields(text, action string) url.Values {
	s.t.Helper()
	_, form, found := strings.Cut(text, `action="`+action+`"`)
	if !found {
		s.t.Fatalf("the page has no form that leads to %s", action)
	}
	form, _, _ = strings.Cut(form, "</form>")
	values := url.Values{}
	for _, field := range regexp.MustCompile(`type="hidden" name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
		values.Add(field[1], field[2])
	}
	return values
}

func (s *scene) redrives() []redrive.Progress {
	s.t.Helper()
	list, err := s.Operator.Redrives(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

func (s *scene) jobOf(id holdfast.ID) holdfast.Job {
	s.t.Helper()
	job, err := s.Operator.Job(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return job
}

func TestDeadLettersAreListedAndLeadToTheWizard(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	text := s.shows("/dead-letters", "By error group", "A service is not available.", "/redrives/new?all=true", s.Failed[0].String())
	if strings.Contains(text, s.Waiting[0].String()) {
		t.Error("a job that waits is among the dead letters")
	}
	s.shows("/dead-letters?kind=fetch&older=1h", "No dead letters match")
	text = s.shows("/dead-letters?kind=fetch", s.Broken.String(), "/redrives/new?kind=fetch")
	if strings.Contains(text, s.Failed[0].String()) {
		t.Error("the filter lets another kind through")
	}
	for _, bad := range []string{"older=soon", "cursor=%3F", "group=7", "owner=%00"} {
		if status, _ := s.get("/dead-letters?" + bad); status != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, status)
		}
	}
}

func TestTheWizardLeadsToARedriveOnce(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	s.shows("/redrives/new", "Select dead letters")
	s.shows("/redrives/new?kind=convert&step=select", "<strong>9</strong> match now")
	s.shows("/redrives/new?kind=convert", `>9</a></p><p>dead letters would be redriven`, "The breaker of gateway is open", "Not failed", "/redrives/new?kind=convert&amp;step=pace")
	s.shows("/redrives/new?kind=convert&step=pace&rate=3", "about <strong>3.0 s</strong>", `name="kind" value="convert"`)
	text := s.shows("/redrives/new?kind=convert&step=confirm&rate=3&canary=2", `data-confirm-count="9"`, "2 go first")
	form := s.fields(text, "/redrives")
	form.Set("count", "8")
	if _, text := s.post("/redrives", form); !strings.Contains(text, "give a reason") {
		t.Error("it was started without a reason")
	}
	form.Set("reason", "the gateway is back")
	if _, text := s.post("/redrives", form); !strings.Contains(text, "9 match now") || !strings.Contains(text, `value="the gateway is back"`) {
		t.Error("a wrong number was not refused, or the reason is lost")
	}
	if len(s.redrives()) != 0 {
		t.Fatal("a redrive was started that nobody confirmed")
	}
	form.Set("count", "9")
	for range 2 {
		if _, text := s.post("/redrives", form); !strings.Contains(text, "Failed again") {
			t.Error("the wizard does not lead to the redrive")
		}
	}
	list := s.redrives()
	if len(list) != 1 {
		t.Fatalf("one form started %d redrives", len(list))
	}
	if o := list[0].Spec; o.Filter.Kind != "convert" || o.PerSecond != 3 || o.Canary != 2 || o.Actor != "ada" || o.Reason != "the gateway is back" {
		t.Errorf("the order is %+v", o)
	}
}

func TestTheWizardSaysWhatItCannotRead(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	for query, words := range map[string]string{
		"older=soon":                      "is invalid: use 90m",
		"kind=convert&step=pace&rate=x":   "is not a number",
		"all=true&step=confirm&rate=9999": "give a rate up to 1000",
		"step=confirm":                    "Select dead letters: fill in a field",
		"job=7":                           "is not an id",
		"kind=%00&step=preview":           "kind",
	} {
		if status, text := s.get("/redrives/new?" + query); status != http.StatusOK || !strings.Contains(text, words) || !strings.Contains(text, `role="alert"`) {
			t.Errorf("%s: %d, without %q", query, status, words)
		}
	}
	if status, _ := s.get("/redrives/7"); status != http.StatusNotFound {
		t.Errorf("a redrive that does not exist: %d", status)
	}
}

func TestChosenJobsGoOneByOne(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	chosen := url.Values{"job": {s.Failed[0].String(), s.Clash.String(), s.Waiting[0].String()}, "step": {"confirm"}}
	form := s.fields(s.shows("/redrives/new?"+chosen.Encode(), "Redrive 2 dead letters?", "1 not failed"), "/redrives")
	form.Set("count", "2")
	form.Set("reason", "mended")
	_, text := s.post("/redrives", form)
	if !strings.Contains(text, "1 dead letter queued again") || !strings.Contains(text, "1 other failed:") {
		t.Error("there is no summary")
	}
	if !regexp.MustCompile(`value="` + s.Clash.String() + `"[^>]* checked`).MatchString(text) {
		t.Error("what did not work is not selected any more")
	}
	if s.jobOf(s.Failed[0]).State != holdfast.Queued || s.jobOf(s.Clash).State != holdfast.Failed {
		t.Error("the jobs are not where they should be")
	}
	gone := url.Values{"job": {s.Broken.String()}, "discard": {"true"}, "step": {"confirm"}}
	form = s.fields(s.shows("/redrives/new?"+gone.Encode(), "Discard 1 dead letter?"), "/redrives")
	form.Set("count", "1")
	form.Set("reason", "nobody needs it")
	if s.post("/redrives", form); !s.jobOf(s.Broken).Discarded {
		t.Error("the job is not discarded")
	}
}

func TestARedriveIsPausedResumedAndCancelled(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	id, err := s.Operator.StartRedrive(t.Context(), redrive.Spec{Filter: store.Filter{Kind: "convert"}, Canary: 2, Actor: "ada", Reason: "<i>mended</i>"})
	if err != nil {
		t.Fatal(err)
	}
	at := "/redrives/" + id.String()
	text := s.shows(at, "the first 2 jobs go first", "&lt;i&gt;mended&lt;/i&gt;", "Stops above 50 %", at+"/pause")
	if strings.Contains(text, "<i>mended") {
		t.Error("the reason is not escaped")
	}
	s.shows("/redrives", id.String(), "running")
	for _, word := range []struct{ verb, state string }{{"pause", "paused"}, {"resume", "running"}, {"cancel", "cancelled"}} {
		s.post(at+"/"+word.verb, url.Values{"reason": {"so"}})
		if got := s.redrives()[0].State; string(got) != word.state {
			t.Errorf("after %s it is %s", word.verb, got)
		}
	}
	if _, text := s.post(at+"/resume", nil); !strings.Contains(text, "Cannot resume redrive") {
		t.Error("it is not said why it cannot be resumed")
	}
}

func TestViewersStartNothing(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	s.shows("/dead-letters", "Dead letters")
	if text := s.shows("/redrives/new?kind=convert&step=confirm", "you need the scope operator"); strings.Contains(text, "data-count>") {
		t.Error("a viewer is asked to confirm")
	}
	for _, path := range []string{"/redrives", "/redrives/" + holdfast.NewID().String() + "/pause", "/breakers/gateway/close"} {
		if status, _ := s.post(path, url.Values{"reason": {"x"}}); status != http.StatusForbidden {
			t.Errorf("%s: %d", path, status)
		}
	}
	if b, err := s.Operator.Breaker(t.Context(), "gateway"); err != nil || !b.State.Refuses() {
		t.Errorf("the breaker is %s, %v", b.State, err)
	}
}

func TestBreakersHaveCardsAndActions(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	s.shows("/breakers", `id="b-gateway"`, "1 of 1 open", "the vendor is on it", "Jobs held", "state%3Aqueued", "Opened once in the last 15 min")
	s.shows("/breakers/gateway", "History", "Stays open", "the last 20 calls")
	if status, _ := s.get("/breakers/nobody"); status != http.StatusNotFound {
		t.Errorf("a breaker that does not exist: %d", status)
	}
	if _, text := s.post("/breakers/gateway/close", url.Values{"back": {"/breakers"}}); !strings.Contains(text, "give a reason") {
		t.Error("no reason was needed")
	}
	for _, word := range []struct{ verb, state string }{{"close", "recovering"}, {"open", "open"}, {"force-open", "forced-open"}, {"auto", ""}, {"force-closed", "forced-closed"}} {
		s.post("/breakers/gateway/"+word.verb, url.Values{"reason": {"so"}})
		b, err := s.Operator.Breaker(t.Context(), "gateway")
		if err != nil || word.state != "" && string(b.State) != word.state {
			t.Errorf("after %s it is %s, %v", word.verb, b.State, err)
		}
	}
	s.shows("/breakers", "forced closed", "Set to automatic")
	if err := s.Operator.OpenBreaker(t.Context(), "gateway", ops.Actor{Name: "eve", Reason: "</script><b>x"}); err != nil {
		t.Fatal(err)
	}
	if text := s.shows("/breakers"); strings.Contains(text, "<b>x") {
		t.Error("a reason is not escaped")
	}
}
