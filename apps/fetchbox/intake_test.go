package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/apps/fetchbox/intake"
	"github.com/holdfastdev/holdfast/apps/fetchbox/ledger"
	"github.com/holdfastdev/holdfast/apps/fetchbox/manifest"
	"github.com/holdfastdev/holdfast/apps/fetchbox/view"
	"github.com/holdfastdev/holdfast/apps/fetchbox/work"
	"github.com/holdfastdev/holdfast/internal/soak"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// total returns how many tasks and how many groups with members the store has.
func (s *scene) total() (tasks, jobs int) {
	s.Helper()
	tasks, err := s.store.Count(context.Background(), store.Filter{Kind: work.Task{}.Kind()}, 1_000_000)
	if err != nil {
		s.Fatal(err)
	}
	groups, _, err := s.store.Groups(context.Background(), store.GroupFilter{Limit: 200})
	if err != nil {
		s.Fatal(err)
	}
	for _, g := range groups {
		if g, err = s.store.Group(context.Background(), g.ID); err != nil {
			s.Fatal(err)
		}
		if g.Members.Total > 0 {
			jobs++
		}
	}
	return tasks, jobs
}

func TestAManifestIsAcceptedAndFetched(t *testing.T) {
	s := newScene(t)
	a := s.ask("POST", "/api/jobs", manifestOf(s.origin.URL, "/ok/a", "/ok/b"))
	var done intake.Accepted
	a.is(t, http.StatusAccepted, &done)
	if a.header.Get("Location") != "/api/jobs/"+done.Job.String() || done.Resources != 2 {
		t.Errorf("%s %+v", a.header.Get("Location"), done)
	}
	v := s.becomes(done.Job, ledger.Complete)
	if v.ResourcesComplete != 2 || v.LastError != nil {
		t.Errorf("%+v", v)
	}
	for path, r := range s.resourcesOf(done.Job) {
		if r.Result == nil || s.object(r.Result.Key) != contentOf(path) || r.Result.SHA256 != sumOf(contentOf(path)) || r.State != holdfast.Complete || r.Attempts != 1 {
			t.Errorf("%s: %+v", path, r)
		}
	}
	lines := s.ask("POST", "/api/jobs?name=lines", fmt.Sprintf("{\"url\":\"%s/ok/c\"}\n{\"url\":\"%s/ok/d\",\"key\":\"my/d.txt\"}\n", s.origin.URL, s.origin.URL), "Content-Type", "application/x-ndjson")
	lines.is(t, http.StatusAccepted, &done)
	if v := s.becomes(done.Job, ledger.Complete); v.Name != "lines" {
		t.Errorf("%+v", v)
	}
	if r := s.resourcesOf(done.Job)["/ok/d"]; !strings.HasSuffix(r.Key, "/my/d.txt") || s.object(r.Key) != contentOf("/ok/d") {
		t.Errorf("%+v", r)
	}
}

// A client that lists its jobs right after an answer finds the job, also if the ledger has not followed the feed meanwhile.
func TestAnAcceptedJobIsInTheListAtOnce(t *testing.T) {
	s := idleScene(t)
	for n := range 3 {
		job := s.submits(fmt.Sprintf("/ok/%d", n))
		var list struct{ Jobs []view.Job }
		s.ask("GET", "/api/jobs", "").is(t, http.StatusOK, &list)
		if len(list.Jobs) != n+1 || list.Jobs[0].ID != job || list.Jobs[0].Status != ledger.Queued || list.Jobs[0].Resources != 1 {
			t.Errorf("job %s is not the first of %+v", job, list.Jobs)
		}
	}
}

// F1: validation errors name every bad line, and nothing is accepted or retried.
func TestABadManifestIsRefusedWithEveryBadLine(t *testing.T) {
	s := idleScene(t)
	var no refused
	s.ask("POST", "/api/jobs", `{"resources":[{"url":"https://example.com/a"},{"key":"x"},{"url":"nonsense"},{"url":"https://example.com/","handler":"nosuch"},{"url":"https://example.com/","proxy":"nosuch"}]}`).is(t, http.StatusUnprocessableEntity, &no)
	var lines []int
	for _, p := range no.Error.Problems {
		lines = append(lines, p.Line)
		if !strings.HasPrefix(p.Code, "VALIDATION_") {
			t.Errorf("%+v", p)
		}
	}
	if fmt.Sprint(lines) != "[2 3 4 5]" || !strings.HasPrefix(no.Error.Code, "VALIDATION_") {
		t.Errorf("%+v", no)
	}
	if n := s.faulty.Calls("Enqueue") + s.faulty.Calls("CreateGroup"); n > 0 {
		t.Errorf("the store was called %d times", n)
	}
	s.ask("POST", "/api/jobs", "<xml/>", "Content-Type", "text/xml").is(t, http.StatusUnsupportedMediaType, nil)
}

// What could never be downloaded is refused with the manifest, and every line of it is named.
func TestAResourceThatNoDownloadCouldFetchIsRefusedWithTheManifest(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("pools:\n  eu:\n    - {url: \"http://proxy.example:3128\", region: de}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := idleScene(t, "CONFIG", config, "ALLOW_PRIVATE", "off")
	var no refused
	s.ask("POST", "/api/jobs", `{"proxy":"eu","resources":[{"url":"https://example.com/a"},{"url":"http://127.0.0.1/"},{"url":"http://[::ffff:10.0.0.1]/"},{"url":"https://example.com/","headers":{"If-None-Match":"x"}},
		{"url":"https://example.com/","region":"fr"},{"url":"https://example.com/","etag":"x"},{"url":"https://example.com/","headers":{"Expect":"100-continue"}},{"url":"http://127.0.0.1/","key":".."}]}`).is(t, http.StatusUnprocessableEntity, &no)
	var got []string
	for _, p := range no.Error.Problems {
		got = append(got, fmt.Sprint(p.Line, " ", p.Field))
	}
	slices.Sort(got)
	if want := []string{"2 url", "3 url", "4 headers", "5 region", "6 etag", "7 headers", "8 key"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// F1: authorization errors are never retried.
func TestRequestsWithoutTheRightAreRefused(t *testing.T) {
	s := idleScene(t)
	viewer := s.newKey(apikey.Request{Name: "viewer", Scope: apikey.Viewer})
	body := manifestOf("https://example.com", "/a")
	for name, try := range map[string]struct {
		key    string
		status int
		code   string
	}{
		"no key": {"", 401, "AUTH_MISSING"}, "nonsense": {"nonsense", 401, "AUTH_INVALID"}, "unknown": {apikeyText(t), 401, "AUTH_INVALID"}, "read-only": {viewer, 403, "AUTH_FORBIDDEN"},
	} {
		var no refused
		client{s.at, try.key}.ask(t, "POST", "/api/jobs", body).is(t, try.status, &no)
		if no.Error.Code != try.code {
			t.Errorf("%s: %+v", name, no)
		}
	}
	if n := s.faulty.Calls("Enqueue") + s.faulty.Calls("CreateGroup"); n > 0 {
		t.Errorf("the store was called %d times", n)
	}
	client{s.at, viewer}.ask(t, "GET", "/api/jobs", "").is(t, http.StatusOK, nil)
}

func apikeyText(t *testing.T) string {
	t.Helper()
	return idleScene(t).newKey(apikey.Request{Name: "of another store", Scope: apikey.Operator})
}

// F9, 002 section 5: storage transient error triggers internal retry before returning 503.
func TestAStorageTransientErrorIsRetriedInsideBefore503(t *testing.T) {
	s := idleScene(t)
	body := manifestOf("https://example.com", "/a", "/b")
	for _, verb := range []string{"CreateGroup", "Enqueue"} {
		for _, after := range []bool{false, true} { // after: the store did it, and its answer is lost
			before, jobsBefore := s.total()
			s.faulty.Plan(storetest.Fault{Verb: verb, After: after})
			s.ask("POST", "/api/jobs", body).is(t, http.StatusAccepted, nil)
			s.faulty.Plan()
			tasks, jobs := s.total()
			if tasks != before+2 || jobs != jobsBefore+1 {
				t.Errorf("%s fails once, after: %v: %d tasks and %d jobs were %d and %d", verb, after, tasks, jobs, before, jobsBefore)
			}
		}
		before, jobsBefore := s.total()
		s.faulty.Plan(storetest.Fault{Verb: verb, Always: true})
		a := s.ask("POST", "/api/jobs", body)
		calls := s.faulty.Calls(verb)
		s.faulty.Plan()
		var no refused
		a.is(t, http.StatusServiceUnavailable, &no)
		if no.Error.Code != "STORAGE_UNAVAILABLE" || a.header.Get("Retry-After") == "" {
			t.Errorf("%+v, Retry-After %q", no, a.header.Get("Retry-After"))
		}
		if calls != 3 {
			t.Errorf("%s was tried %d times, want 3", verb, calls)
		}
		if tasks, jobs := s.total(); tasks != before || jobs != jobsBefore {
			t.Errorf("something was accepted: %d tasks and %d jobs were %d and %d", tasks, jobs, before, jobsBefore)
		}
	}
}

// An acknowledged or lost manifest with an idempotency key can be sent again.
func TestAnIdempotencyKeyMakesOneJob(t *testing.T) {
	s := idleScene(t)
	body := manifestOf("https://example.com", "/a", "/b", "/c")
	var sent sync.WaitGroup
	ids := make([]holdfast.ID, 12)
	for i := range ids {
		sent.Go(func() {
			a, err := client{s.at, s.key}.try("POST", "/api/jobs", body, "Idempotency-Key", "monday")
			var done intake.Accepted
			if err == nil && a.status == http.StatusServiceUnavailable { // more at once than MAX_INTAKES allows
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			a.is(t, http.StatusAccepted, &done)
			ids[i] = done.Job
		})
	}
	sent.Wait()
	var again intake.Accepted
	s.ask("POST", "/api/jobs", body, "Idempotency-Key", "monday").is(t, http.StatusAccepted, &again)
	for _, id := range ids {
		if !id.IsZero() && id != again.Job {
			t.Errorf("two jobs: %s and %s", id, again.Job)
		}
	}
	if tasks, jobs := s.total(); tasks != 3 || jobs != 1 || !again.Existing {
		t.Errorf("%d tasks, %d jobs, %+v", tasks, jobs, again)
	}
	var no refused
	s.ask("POST", "/api/jobs", manifestOf("https://example.com", "/other"), "Idempotency-Key", "monday").is(t, http.StatusConflict, &no)
	if no.Error.Code != "VALIDATION_CONFLICT" {
		t.Errorf("%+v", no)
	}
	other := s.newKey(apikey.Request{Name: "other", Scope: apikey.Operator})
	var theirs intake.Accepted
	client{s.at, other}.ask(t, "POST", "/api/jobs", body, "Idempotency-Key", "monday").is(t, http.StatusAccepted, &theirs)
	if theirs.Existing {
		t.Error("an idempotency key reaches another owner's job")
	}
}

// The answer is lost at every call of the store in turn; the client sends the manifest again.
func TestAManifestExistsAsAWholeWhicheverCallFails(t *testing.T) {
	body := manifestOf("https://example.com", "/a", "/b", "/c")
	for n := 1; ; n++ {
		fired := 0
		for _, after := range []bool{false, true} {
			s := idleScene(t)
			s.faulty.Plan(storetest.Fault{N: n, After: after})
			a := s.ask("POST", "/api/jobs", body, "Idempotency-Key", "k")
			fired += s.faulty.Fired()
			s.faulty.Plan()
			if a.status != http.StatusAccepted && a.status < 500 {
				t.Errorf("call %d: %d %s", n, a.status, a.body)
			}
			s.ask("POST", "/api/jobs", body, "Idempotency-Key", "k").is(t, http.StatusAccepted, nil)
			if tasks, jobs := s.total(); tasks != 3 || jobs != 1 {
				t.Errorf("call %d, after %v: %d tasks, %d jobs", n, after, tasks, jobs)
			}
		}
		if fired == 0 {
			return
		}
	}
}

func TestALargeManifestIsAccepted(t *testing.T) {
	s := idleScene(t)
	n := soak.Pick("resources of one manifest", 5000, manifest.MaxResources)
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "{\"url\":\"https://example.com/%d\"}\n", i)
	}
	var done intake.Accepted
	s.ask("POST", "/api/jobs", lines.String(), "Content-Type", "application/x-ndjson").is(t, http.StatusAccepted, &done)
	if tasks, _ := s.total(); tasks != n || done.Resources != n {
		t.Errorf("%d tasks, %+v", tasks, done)
	}
	group, err := s.store.Group(t.Context(), done.Job)
	if err != nil || group.Members.Total != n || group.State == holdfast.GroupOpen {
		t.Errorf("%+v %v", group, err)
	}
}
