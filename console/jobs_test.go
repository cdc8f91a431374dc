package console_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

var (
	rowOnPage  = regexp.MustCompile(`<tr data-row="([0-9a-f-]{36})"`)
	nextOnPage = regexp.MustCompile(`href="([^"]*)" rel="next"`)
)

// rows are the ids of the jobs that a page lists.
func rows(text string) (ids []string) {
	for _, found := range rowOnPage.FindAllStringSubmatch(text, -1) {
		ids = append(ids, found[1])
	}
	return ids
}

// listed walks through all pages of a list.
func (s *scene) listed(path string) (ids []string) {
	s.t.Helper()
	for path != "" {
		text := s.shows(path)
		ids = append(ids, rows(text)...)
		next := nextOnPage.FindStringSubmatch(text)
		if path = ""; next != nil {
			path = html.UnescapeString(next[1])
		}
	}
	return ids
}

func TestJobsAreFoundByQualifiers(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	dead, err := s.Operator.Job(t.Context(), s.Failed[0])
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{
		"state:failed kind:convert": len(s.Failed), "is:retrying": len(s.Retrying), "state:complete kind:mail tag:weekly": len(s.Complete),
		"state:processing worker:worker-b/1": len(s.Running), "is:dead code:" + dead.LastFailure.Code: len(s.Failed), "kind:convert age:>1h": 0, "category:dependency is:dead": len(s.Failed),
	} {
		if got := s.listed("/jobs?q=" + url.QueryEscape(query)); len(got) != want {
			t.Errorf("%s: %d jobs, not %d", query, len(got), want)
		}
	}
	s.shows("/jobs?q="+url.QueryEscape("is:retrying"), `aria-current="true">Retrying`, "breaker gateway", `data-state="held"`)
	s.shows("/jobs?q="+url.QueryEscape("kind:convert owner:nobody"), "No jobs match", "Without ", "q=kind%3Aconvert", "q=owner%3Anobody")
	text := s.shows("/jobs?q="+url.QueryEscape(`kind:fetch ><script>alert(1)</script>`), "Free text is not searched", `aria-invalid="true"`)
	if len(rows(text)) > 0 || strings.Contains(text, "<script>alert") {
		t.Error("a search that cannot be read lists jobs, or what was written comes back as it was")
	}
	for _, path := range []string{"/jobs?cursor=nonsense", "/jobs?q=kind%3A%ff%00x", "/jobs?limit=-7&columns=none"} {
		s.shows(path)
	}
}

func TestAJobsIDIsFollowed(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Get(s.site.URL + "/jobs?q=" + s.Broken.String())
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if to := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || to != "/jobs/"+s.Broken.String() {
		t.Error(response.StatusCode, to)
	}
}

// Many jobs are enqueued in one call: their ids share milliseconds.
func TestNoJobIsLeftOutBetweenPages(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	drafts := make([]holdfast.Draft, 140)
	for i := range drafts {
		drafts[i] = holdfast.Draft{Kind: "same-instant", Queue: "aside"}
	}
	if _, err := s.Store.Enqueue(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
	got := s.listed("/jobs?q=kind:same-instant&limit=25")
	slices.Sort(got)
	if n := len(slices.Compact(got)); len(got) != 140 || n != 140 {
		t.Errorf("%d rows, %d jobs", len(got), n)
	}
	s.shows("/jobs?limit=25&columns=tags&columns=worker", "columns=tags%2Cworker", `data-label="Worker"`)
	if text := s.shows("/jobs"); strings.Contains(text, `name="job"`) || strings.Contains(text, "data-selection") {
		t.Error("a viewer can select jobs")
	}
}

func TestValuesAreOffered(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	for name, want := range map[string]string{"kind": "convert", "queue": "fetch", "owner": "grace", "code": "VALIDATION_ERROR", "dependency": "gateway", "worker": "worker-a/1", "tag": "weekly", "category": "timeout"} {
		_, text := s.get("/jobs/complete?name=" + name + "&value=" + strings.ToLower(want[1:3]))
		var answer struct{ Values []string }
		if err := json.Unmarshal([]byte(text), &answer); err != nil || !slices.Contains(answer.Values, want) || len(answer.Values) > 20 {
			t.Errorf("%s: %s (%v)", name, text, err)
		}
	}
	if _, text := s.get("/jobs/complete?name=nothing"); text != `{"values":[]}` {
		t.Error(text)
	}
}

func (s *scene) selection(verb string, ids ...holdfast.ID) url.Values {
	form := url.Values{"verb": {verb}, "back": {"/jobs?q=is%3Adead"}}
	for _, id := range ids {
		form.Add("job", id.String())
	}
	return form
}

func (s *scene) state(id holdfast.ID) holdfast.State {
	s.t.Helper()
	job, err := s.Operator.Job(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return job.State
}

func TestManyJobsAreRetriedAfterAPreview(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	chosen := s.selection("retry", s.Failed[0], s.Failed[1], s.Complete[0], holdfast.NewID())
	s.shows("/jobs/bulk?"+chosen.Encode(), "Retry 2 jobs", "1 is complete, 1 no longer exists", `name="job" value="`+s.Failed[1].String())
	if s.state(s.Failed[0]) != holdfast.Failed {
		t.Fatal("a preview did something")
	}
	status, text := s.post("/jobs/bulk", s.selection("retry", s.Failed[0], s.Failed[1]))
	if status != http.StatusOK || !strings.Contains(text, "2 jobs retried.") || s.state(s.Failed[0]) != holdfast.Queued {
		t.Error(status, s.state(s.Failed[0]))
	}
}

func TestSkippedJobsStaySelectedWithTheirReason(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	// One is retried by another person between preview and action; one lost its unique key to another job.
	if _, err := s.Operator.Retry(t.Context(), store.Intervention{Job: s.Failed[0], Actor: "grace"}); err != nil {
		t.Fatal(err)
	}
	status, text := s.post("/jobs/bulk", s.selection("retry", s.Failed[0], s.Failed[1], s.Clash, holdfast.NewID()))
	if status != http.StatusOK {
		t.Fatal(status)
	}
	for _, word := range []string{
		"1 job retried, 3 skipped: 1 is already queued, 1 has a unique key that another job holds, 1 no longer exists.",
		"holds the unique key of job", `value="` + s.Clash.String() + `" checked`, `href="/jobs?q=is%3Adead"`,
	} {
		if !strings.Contains(text, word) {
			t.Errorf("the summary does not say %q", word)
		}
	}
	if s.state(s.Clash) != holdfast.Failed || s.state(s.Failed[1]) != holdfast.Queued {
		t.Error(s.state(s.Clash), s.state(s.Failed[1]))
	}
}

func TestAllThatMatchAreActedOn(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	drafts := make([]holdfast.Draft, 230)
	for i := range drafts {
		drafts[i] = holdfast.Draft{Kind: "many", Queue: "aside"}
	}
	receipts, err := s.Store.Enqueue(t.Context(), drafts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Operator.Cancel(t.Context(), store.Intervention{Job: receipts[7].ID, Actor: "grace"}); err != nil {
		t.Fatal(err)
	}
	all := url.Values{"verb": {"cancel"}, "all": {"1"}, "q": {"kind:many"}, "back": {"/jobs?q=kind%3Amany"}}
	s.shows("/jobs/bulk?"+all.Encode(), "Cancel 229 jobs", "1 is cancelled", `name="all" value="1"`)
	_, text := s.post("/jobs/bulk", all)
	if want := "229 jobs cancelled, 1 skipped: 1 is cancelled."; !strings.Contains(text, want) {
		t.Errorf("not said: %q", want)
	}
	if left, err := s.Operator.Count(t.Context(), store.Filter{Kind: "many", State: holdfast.Queued}); err != nil || left != 0 {
		t.Error(left, err)
	}
	if s.state(s.Waiting[0]) != holdfast.Queued {
		t.Error("a job that does not match was cancelled")
	}
}

func TestDiscardingNeedsAReason(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	form := s.selection("discard", s.Failed...)
	if _, text := s.post("/jobs/bulk", form); !strings.Contains(text, "Nothing was changed") || !strings.Contains(text, fmt.Sprintf("Discard %d jobs", len(s.Failed))) {
		t.Error("discarded without a reason, or the selection is lost")
	}
	form.Set("reason", "the customer left")
	if _, text := s.post("/jobs/bulk", form); !strings.Contains(text, fmt.Sprintf("%d jobs discarded.", len(s.Failed))) {
		t.Error("not discarded")
	}
	job, err := s.Operator.Job(t.Context(), s.Failed[0])
	if err != nil || !job.Discarded {
		t.Error(job.Discarded, err)
	}
}

func TestInvalidBulkActionsAreRefused(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	for path, want := range map[string]int{
		"/jobs/bulk?verb=retry": http.StatusBadRequest, "/jobs/bulk?verb=eat&job=" + s.Broken.String(): http.StatusBadRequest, "/jobs/bulk?verb=retry&job=7": http.StatusBadRequest,
		"/jobs/bulk?verb=retry&all=1&q=timeout": http.StatusBadRequest, "/jobs/bulk?outcome=" + holdfast.NewID().String(): http.StatusNotFound,
	} {
		if status, _ := s.get(path); status != want {
			t.Errorf("%s: %d, not %d", path, status, want)
		}
	}
	v := newScene(t, apikey.Viewer, nil)
	if status, _ := v.post("/jobs/bulk", v.selection("retry", v.Failed[0])); status != http.StatusForbidden || v.state(v.Failed[0]) != holdfast.Failed {
		t.Errorf("a viewer retried jobs: %d", status)
	}
	if status, _ := v.get("/jobs/bulk?" + v.selection("retry", v.Failed[0]).Encode()); status != http.StatusForbidden {
		t.Errorf("a viewer is shown what they may not do: %d", status)
	}
}

// One request changes a limited number of jobs. Further requests continue until all are changed.
func TestABulkActionContinuesBeyondOneRequest(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	const many = 2050
	drafts := make([]holdfast.Draft, many)
	for i := range drafts {
		drafts[i] = holdfast.Draft{Kind: "crowd", Queue: "aside"}
	}
	for some := range slices.Chunk(drafts, 500) {
		if _, err := s.Store.Enqueue(t.Context(), some); err != nil {
			t.Fatal(err)
		}
	}
	s.shows("/jobs/bulk?verb=cancel&all=1&q=kind:crowd", "Cancel up to 2,000 jobs", "there are more")
	form := url.Values{"verb": {"cancel"}, "all": {"1"}, "q": {"kind:crowd state:queued"}, "back": {"/jobs"}}
	hidden := regexp.MustCompile(`name="cursor" value="([^"]*)"`)
	presses := 0
	for more := true; more; presses++ {
		_, text := s.post("/jobs/bulk", form)
		on := hidden.FindStringSubmatch(text)
		if more = on != nil; more {
			form.Set("cursor", html.UnescapeString(on[1]))
		}
	}
	left, err := s.Operator.Count(t.Context(), store.Filter{Kind: "crowd", State: holdfast.Queued})
	if err != nil || left != 0 || presses < 2 {
		t.Errorf("%d are left after %d presses: %v", left, presses, err)
	}
}
