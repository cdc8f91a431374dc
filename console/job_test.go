package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

func TestAJobShowsItsStateAndWhy(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	page := "/jobs/" + s.Failed[0].String()
	text := s.shows(page, "It failed for good", "Timeline", "Attempt 1", "Why", "Classified", "9007199254740993", "&#34;&#34;: &#34;an empty key&#34;",
		"holdfast retry "+s.Failed[0].String(), `/v1/jobs/`+s.Failed[0].String()+`/retry`, `data-key="r"`, `data-key="e"`, `data-key="d"`, `href="/breakers#b-gateway"`, `href="/failures/`)
	if strings.Contains(text, `data-key="c"`) {
		t.Error("a job that has failed offers to be cancelled")
	}
	s.shows("/jobs/"+s.Retrying[0].String(), "waits for retry", "The breaker of gateway is", "View breaker of gateway", `data-state="held"`, "backoff", `data-key="c"`)
	s.shows("/jobs/"+s.Waiting[0].String(), "No attempts yet", "there is nothing to retry", `data-key="e"`)
	s.shows("/jobs/"+s.Running[0].String(), "You can retry or edit it when its attempt has ended", `data-key="c"`)
	s.shows("/jobs/"+s.Complete[0].String(), "A complete job cannot be changed", "Returned value", "9007199254740993")
	s.shows("/jobs/"+s.Broken.String(), "Technical detail", "the parser gave up")
	for path, want := range map[string]int{"/jobs/" + holdfast.NewID().String(): 404, "/jobs/nothing": 404, page + "/other": 404, "/jobs/" + s.Complete[0].String() + "/edit": 409} {
		if status, _ := s.get(path); status != want {
			t.Errorf("%s: %d, not %d", path, status, want)
		}
	}
}

func TestAJobIsRetriedCancelledAndDiscarded(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	for _, c := range []struct {
		id         holdfast.ID
		verb, says string
		state      holdfast.State
	}{
		{s.Failed[0], "retry", "Retried. The job is queued", holdfast.Queued}, {s.Retrying[0], "cancel", "Cancelled.", holdfast.Cancelled},
		{s.Running[0], "cancel", "Stop requested", holdfast.Processing}, {s.Failed[1], "discard", "Discarded", holdfast.Failed},
		{s.Clash, "retry", "holds the unique key of job", holdfast.Failed}, {s.Complete[0], "retry", "only a failed job can be retried", holdfast.Complete},
	} {
		page := "/jobs/" + c.id.String()
		status, text := s.post(page+"/"+c.verb, url.Values{"back": {page}, "reason": {"because of it"}})
		if status != http.StatusOK || !strings.Contains(text, c.says) {
			t.Errorf("%s of a job: %d, and nothing says %q", c.verb, status, c.says)
		}
		job, err := s.Operator.Job(t.Context(), c.id)
		if err != nil || job.State != c.state {
			t.Errorf("%s left the job %s, %v", c.verb, job.State, err)
		}
	}
	story, err := s.Operator.Story(t.Context(), s.Failed[1])
	if err != nil || story[len(story)-1].Actor != "ada" || story[len(story)-1].Reason != "because of it" || story[len(story)-1].Request == "" {
		t.Errorf("the story does not say who and why: %+v, %v", story, err)
	}
}

var seenOnPage = regexp.MustCompile(`name="seen" value="([^"]*)"`)

func TestADeadLetterIsEditedWithTheDifferenceShownAndRetried(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	job, err := s.Operator.Job(t.Context(), s.Failed[0])
	if err != nil {
		t.Fatal(err)
	}
	path := "/jobs/" + job.ID.String() + "/edit"
	form := url.Values{
		"step": {"preview"}, "seen": {seenOnPage.FindStringSubmatch(s.shows(path, "9007199254740993"))[1]}, "args": {strings.Replace(string(job.Args), "convert-0.pdf", "repaired.pdf", 1)},
		"queue": {job.Queue}, "priority": {"0"}, "max_attempts": {"1"}, "reason": {"<b>typo</b>"}, "now": {"1"},
	}
	status, text := s.post(path, form)
	text = html.UnescapeString(text)
	if status != http.StatusOK || !strings.Contains(text, `<span class="diff-sign">-</span><code>  "document": "convert-0.pdf"`) || !strings.Contains(text, `<span class="diff-sign">+</span><code>  "document": "repaired.pdf"`) {
		t.Errorf("%d, and the difference is not shown", status)
	}
	if same, err := s.Operator.Job(t.Context(), job.ID); err != nil || same.Digest() != job.Digest() {
		t.Errorf("looking at the difference changed the job: %v", err)
	}
	form.Set("step", "do")
	if status, text := s.post(path, form); status != http.StatusOK || !strings.Contains(text, "Edited and retried") {
		t.Errorf("%d, and the job was not retried", status)
	}
	now, err := s.Operator.Job(t.Context(), job.ID)
	if err != nil || now.State != holdfast.Queued || now.Generation != 2 || !strings.Contains(string(now.Args), `"repaired.pdf"`) || !strings.Contains(string(now.Args), "9007199254740993") {
		t.Errorf("the job is %s in generation %d with %s, %v", now.State, now.Generation, now.Args, err)
	}
	if _, text := s.post(path, form); !strings.Contains(text, "has changed since you opened this form") || !strings.Contains(text, "repaired.pdf") || strings.Contains(text, "<b>typo</b>") {
		t.Error("an old form is not refused, or what was written in it is lost")
	}
	form.Set("args", "{")
	if status, text := s.post(path, form); status != http.StatusOK || !strings.Contains(text, "line 1 is not JSON") {
		t.Errorf("%d for arguments that are not JSON", status)
	}
}

func TestAQueuedJobIsEditedWhereItWaits(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	job, err := s.Operator.Job(t.Context(), s.Retrying[0])
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"step": {"do"}, "seen": {job.Digest()}, "args": {string(job.Args)}, "queue": {"slow"}, "priority": {"-3"}, "tags": {"one two"}, "now": {"1"}}
	if status, text := s.post("/jobs/"+job.ID.String()+"/edit", form); status != http.StatusOK || !strings.Contains(text, "Edited. It starts as soon as") {
		t.Errorf("%d, and the job was not edited", status)
	}
	now, err := s.Operator.Job(t.Context(), job.ID)
	if err != nil || now.Queue != "slow" || now.Priority != -3 || strings.Join(now.Tags, " ") != "one two" || now.DueAt.After(now.AsOf) || string(now.Args) != string(job.Args) {
		t.Errorf("the job is %+v, %v", now, err)
	}
}

func TestTheStoryOfAJobShowsWhatAnEditChangedAndRestoresIt(t *testing.T) {
	s := newScene(t, apikey.Operator, nil)
	id := s.Retrying[0]
	before, err := s.Operator.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	queue := "slow"
	if _, err := s.Operator.Edit(t.Context(), store.Edit{Intervention: store.Intervention{Job: id, Actor: "ada"}, Args: []byte(`{"n":null,"password":"new-word"}`), Queue: &queue}); err != nil {
		t.Fatal(err)
	}
	text := s.shows("/jobs/"+id.String(), `queue: &#34;`+before.Queue+`&#34; → &#34;slow&#34;`)
	if strings.Contains(text[strings.Index(text, `class="story"`):], "new-word") {
		t.Error("the story shows a secret")
	}
	path := html.UnescapeString(regexp.MustCompile(`href="([^"]*/edit\?restore=[^"]*)"`).FindStringSubmatch(text)[1])
	text = s.shows(path, `<ins class="diff-word">`+before.Queue+`</ins>`)
	form := url.Values{}
	for _, field := range regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`).FindAllStringSubmatch(text[strings.Index(text, `class="edit-do"`):strings.Index(text, "Edit further")], -1) {
		form.Set(field[1], html.UnescapeString(field[2]))
	}
	if status, text := s.post(strings.Split(path, "?")[0], form); status != http.StatusOK || !strings.Contains(text, "Edited. It waits as before.") {
		t.Errorf("%d, and the job was not restored", status)
	}
	now, err := s.Operator.Job(t.Context(), id)
	if err != nil || now.Digest() != before.Digest() {
		t.Errorf("the job is %+v, %v; it was %+v", now, err, before)
	}
	if status, _ := s.get("/jobs/" + id.String() + "/edit?restore=yesterday"); status != http.StatusBadRequest {
		t.Errorf("a time that is none: %d", status)
	}
}

func TestViewersReadAJobAndChangeNothing(t *testing.T) {
	s := newScene(t, apikey.Viewer, nil)
	page := "/jobs/" + s.Failed[0].String()
	if text := s.shows(page, "It failed for good"); strings.Contains(text, `action="`+page) || strings.Contains(text, "holdfast retry") {
		t.Error("a viewer is offered what only operators may do")
	}
	for _, verb := range []string{"retry", "cancel", "discard", "edit"} {
		if status, _ := s.post(page+"/"+verb, url.Values{"reason": {"x"}}); status != http.StatusForbidden {
			t.Errorf("%s by a viewer: %d", verb, status)
		}
	}
	if status, _ := s.get(page + "/edit"); status != http.StatusForbidden {
		t.Errorf("the form for a viewer: %d", status)
	}
}

func TestHostileTextsOfJobsAreInert(t *testing.T) {
	s := newScene(t, apikey.Operator, func(column, text string) string {
		switch column {
		case "worker", "version", "tag", "unique_key":
			return text
		}
		return text + `"'><script>alert(1)</script>`
	})
	for _, id := range []holdfast.ID{s.Failed[0], s.Broken, s.Clash, s.Retrying[0], s.Complete[0]} {
		for _, path := range []string{"/jobs/" + id.String(), "/jobs/" + id.String() + "/edit"} {
			if _, text := s.get(path); strings.Contains(text, "<script>alert") {
				t.Errorf("%s runs hostile text", path)
			}
		}
	}
}
