package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/ledger"
	"github.com/holdfastdev/holdfast/apps/fetchbox/view"
	"github.com/holdfastdev/holdfast/apps/fetchbox/work"
	"github.com/holdfastdev/holdfast/internal/pgtest"
)

// F9, 002 section 5: a simulated repeated download failure creates a dead letter.
func TestRepeatedDownloadFailureCreatesADeadLetter(t *testing.T) {
	s := newScene(t)
	job := s.submits("/status/503/a", "/ok/b")
	v := s.becomes(job, ledger.Partial)
	if v.ResourcesFailed != 1 || v.ResourcesComplete != 1 || v.Retries != 2 || v.LastError.Code != "DOWNLOAD_HTTP_5XX" {
		t.Errorf("%+v", v)
	}
	if n := s.origin.requests("/status/503/a"); n != 3 {
		t.Errorf("%d downloads, want download_retry_limit, 3", n)
	}
	letter := s.lettersOnce(1)[0]
	failed := s.resourcesOf(job)["/status/503/a"]
	if letter.GetFailureCode() != "DOWNLOAD_HTTP_5XX" || letter.GetAttempts() != 3 || letter.GetTaskId() != failed.ID.String() || letter.GetMetadata()["status"] != "503" || letter.GetFailureMessage() == "" {
		t.Errorf("%v", letter)
	}
	s.until("ledger and API point at it", func() bool {
		s.ask("GET", "/api/jobs/"+job.String(), "").is(t, http.StatusOK, &v)
		return v.DeadLetter == letter.Sequence && s.resourcesOf(job)["/status/503/a"].DeadLetter == letter.Sequence
	})
	if failed.Failure == nil || failed.Failure.Context["status"] != "503" || failed.Failure.Context["attempt"] != "3" || failed.Attempts != 3 {
		t.Errorf("%+v", failed)
	}
	var one view.Letter
	s.ask("GET", fmt.Sprintf("/api/dead-letters/%d", letter.Sequence), "").is(t, http.StatusOK, &one)
	if one.Code != "DOWNLOAD_HTTP_5XX" || !json.Valid(one.Task) {
		t.Errorf("%+v", one)
	}
}

func TestAFinalFailureIsADeadLetterAtOnce(t *testing.T) {
	s := newScene(t)
	job := s.submits("/status/404/a", "/ok/b")
	v := s.becomes(job, ledger.Failed) // 002 section 4: any that is never retried fails the job
	if n := s.origin.requests("/status/404/a"); n != 1 {
		t.Errorf("%d downloads", n)
	}
	if v.NeverRetried != 1 || v.LastError.Code != "DOWNLOAD_HTTP_4XX" || v.LastError.Context["status"] != "404" {
		t.Errorf("%+v", v)
	}
	s.lettersOnce(1)
}

// The limits of downloads and uploads are separate, and a resource is not downloaded again because its upload failed.
func TestAnUploadThatFailsCausesNoSecondDownload(t *testing.T) {
	s := newScene(t)
	folder := s.blocksUploads()
	job := s.submits("/flaky/2/a")
	path := "/flaky/2/a"
	s.until("its upload has failed", func() bool {
		r := s.resourcesOf(job)[path]
		return r.Failure != nil && strings.HasPrefix(r.Failure.Code, "UPLOAD_")
	})
	if r := s.resourcesOf(job)[path]; r.State == holdfast.Queued { // it is retried: repair the bucket
		if err := os.Remove(folder); err != nil {
			t.Fatal(err)
		}
		s.until("it is stored, or its attempts are used up", func() bool { return s.resourcesOf(job)[path].State.Terminal() })
	}
	if n := s.origin.requests(path); n != 3 {
		t.Errorf("%d downloads, want 3: two that failed and one", n)
	}
	s.until("its spool file is gone", func() bool { return s.transfer.spool.Usage().Files == 0 })
}

// blocksUploads puts a file where the folder of the first resource of a job must be, and returns it.
func (s *scene) blocksUploads() string {
	s.Helper()
	folder := filepath.Join(s.set.Bucket, "01") // the last two characters of its key
	if err := os.WriteFile(folder, []byte("in the way"), 0o600); err != nil {
		s.Fatal(err)
	}
	return folder
}

func TestTheUploadLimitIsCountedFromTheDownload(t *testing.T) {
	s := newScene(t, "DOWNLOAD_RETRY_LIMIT", "3", "STORAGE_RETRY_LIMIT", "2")
	s.blocksUploads()
	job := s.submits("/flaky/2/a")
	s.until("it has failed for good", func() bool { return s.resourcesOf(job)["/flaky/2/a"].State == holdfast.Failed })
	r := s.resourcesOf(job)["/flaky/2/a"]
	var detail view.Resource
	s.ask("GET", "/api/jobs/"+job.String()+"/resources/"+r.ID.String(), "").is(t, http.StatusOK, &detail)
	var codes []string
	for _, a := range detail.History {
		codes = append(codes, code.Stage(a.Failure.Code))
	}
	want := []string{"DOWNLOAD_", "DOWNLOAD_", "UPLOAD_", "UPLOAD_"}
	if !code.Of(r.Failure.Code).Retryable {
		want = want[:3]
	}
	if !slices.Equal(codes, want) {
		t.Errorf("attempts %v, want %v (%s)", codes, want, r.Failure.Code)
	}
	s.lettersOnce(1)
}

func TestAManifestHasItsOwnLimits(t *testing.T) {
	s := newScene(t)
	job := s.submitsManifest(fmt.Sprintf(`{"download_retry_limit": 1, "resources": [{"url": "%s/status/500/a"}]}`, s.origin.URL))
	s.becomes(job, ledger.Failed)
	if n := s.origin.requests("/status/500/a"); n != 1 {
		t.Errorf("%d downloads, want 1", n)
	}
}

func TestARetryStoresWhatFailed(t *testing.T) {
	s := newScene(t)
	s.origin.down = true
	job := s.submits("/ok/a", "/ok/b")
	s.becomes(job, ledger.Failed)
	s.lettersOnce(2)
	s.origin.mu.Lock()
	s.origin.down = false
	s.origin.mu.Unlock()
	one := s.resourcesOf(job)["/ok/a"]
	s.ask("POST", "/api/jobs/"+job.String()+"/resources/"+one.ID.String()+"/retry", "").is(t, http.StatusAccepted, nil)
	s.becomes(job, ledger.Partial)
	s.ask("POST", "/api/jobs/"+job.String()+"/retry", "").is(t, http.StatusAccepted, nil)
	s.becomes(job, ledger.Complete)
	for request, want := range map[string]string{
		"/retry": "No resource of this job is failed: there is nothing to retry.", "/cancel": "Every resource of this job has ended: there is nothing to cancel.",
		"/resources/" + one.ID.String() + "/retry": "This resource is complete: only a failed resource, or one that waits for its next attempt, can be retried.",
	} {
		var no refused
		s.ask("POST", "/api/jobs/"+job.String()+request, "").is(t, http.StatusConflict, &no)
		if no.Error.Code != "VALIDATION_CONFLICT" || no.Error.Message != want {
			t.Errorf("%s: %+v", request, no.Error)
		}
	}
}

// F3: a resource that did not change is neither downloaded nor stored again.
func TestAResourceIsStoredAgainOnlyIfItHasChanged(t *testing.T) {
	s := newScene(t)
	fetched := func(etag string) work.Stored {
		t.Helper()
		job := s.submitsManifest(fmt.Sprintf(`{"resources": [{"url": "%s/etag/a", "key": "a.txt", "etag": %q}]}`, s.origin.URL, etag))
		s.becomes(job, ledger.Complete)
		return *s.resourcesOf(job)["/etag/a"].Result
	}
	first := fetched("")
	if again := fetched(first.ETag); !again.NotChanged || again.Key != first.Key || again.ETag != first.ETag || again.Status != http.StatusNotModified {
		t.Errorf("%+v", again)
	}
	s.origin.mu.Lock()
	s.origin.edition = 1
	s.origin.mu.Unlock()
	second := fetched(first.ETag)
	if second.NotChanged || second.ETag == first.ETag || s.object(second.Key) != "edition 1\n" {
		t.Errorf("%+v", second)
	}
	if err := s.transfer.bucket.Delete(t.Context(), second.Key); err != nil {
		t.Fatal(err)
	}
	if third := fetched(second.ETag); third.NotChanged || s.object(third.Key) != "edition 1\n" {
		t.Errorf("the object was gone: %+v", third)
	}
	if n := s.origin.requests("/etag/a"); n != 4 {
		t.Errorf("%d requests", n)
	}
}

func TestACancelledJobEnds(t *testing.T) {
	s := newScene(t, "RETRY_BASE_DELAY_MS", "3600000")
	job := s.submits("/status/503/a", "/status/503/b")
	s.until("both wait for a retry", func() bool {
		var v view.Job
		s.ask("GET", "/api/jobs/"+job.String(), "").is(t, http.StatusOK, &v)
		return v.Retries == 2
	})
	s.ask("POST", "/api/jobs/"+job.String()+"/cancel", "").is(t, http.StatusAccepted, nil)
	if v := s.becomes(job, ledger.Cancelled); v.ResourcesCancelled != 2 {
		t.Errorf("%+v", v)
	}
}

func TestTheManifestOfResultsHasEveryResource(t *testing.T) {
	s := newScene(t)
	job := s.submits("/ok/a", "/status/404/b", "/ok/c")
	s.becomes(job, ledger.Failed)
	s.lettersOnce(1)
	var list []view.Resource
	s.ask("GET", "/api/jobs/"+job.String()+"/results", "").is(t, http.StatusOK, &list)
	rows, err := csv.NewReader(strings.NewReader(string(s.ask("GET", "/api/jobs/"+job.String()+"/results?format=csv", "").body))).ReadAll()
	if err != nil || len(list) != 3 || len(rows) != 4 {
		t.Fatalf("%d %d %v", len(list), len(rows), err)
	}
	for i, r := range list {
		row := rows[i+1]
		if row[0] != fmt.Sprint(r.Index) || row[3] != string(r.State) || r.Result != nil && row[7] != r.Result.SHA256 || r.Failure != nil && row[9] != r.Failure.Code {
			t.Errorf("%v and %+v", row, r)
		}
	}
}

// F6: the ledger of a running FetchBox can be lost.
func TestARebuiltLedgerOfARealRunEqualsTheOld(t *testing.T) {
	s := newScene(t)
	for n := range 4 {
		s.submits(fmt.Sprintf("/ok/%d", n), fmt.Sprintf("/status/404/%d", n), fmt.Sprintf("/flaky/1/%d", n))
	}
	s.lettersOnce(4)
	s.until("all have ended", func() bool {
		jobs, err := s.ledger.Jobs("", holdfast.ID{}, 100)
		return err == nil && len(jobs) == 4 && !slices.ContainsFunc(jobs, func(j ledger.JobSnapshot) bool {
			return j.ResourcesQueued+j.ResourcesRunning > 0 || j.DeadLetter == 0
		})
	})
	s.stop()
	if _, _, err := s.ledger.Step(t.Context(), s.store); err != nil {
		t.Fatal(err)
	}
	before, err := s.ledger.Jobs("", holdfast.ID{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ledger.Clear(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.ledger.Step(t.Context(), s.store); err != nil {
		t.Fatal(err)
	}
	after, err := s.ledger.Jobs("", holdfast.ID{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(before)
	b, _ := json.Marshal(after)
	if string(a) != string(b) {
		t.Errorf("rebuilt:\n%s\nbefore:\n%s", b, a)
	}
	for _, j := range after { // the pointer resolves
		letter, err := s.stream.Get(context.Background(), j.DeadLetter)
		if err != nil || letter.GetJobId() != j.ID.String() {
			t.Errorf("job %s points at %d: %v %v", j.ID, j.DeadLetter, letter, err)
		}
	}
}

// F7 through the API: what a dead letter is about is fetched once the origin has recovered.
func TestAReplayThroughTheAPI(t *testing.T) {
	s := newScene(t)
	s.origin.down = true
	job := s.submits("/ok/a", "/ok/b")
	s.becomes(job, ledger.Failed)
	s.lettersOnce(2)
	s.origin.mu.Lock()
	s.origin.down = false
	s.origin.mu.Unlock()
	var preview struct{ Letters, Eligible int }
	s.ask("POST", "/api/replays", `{"filter":{"code":"DOWNLOAD_"},"dry_run":true}`).is(t, http.StatusOK, &preview)
	if preview.Letters != 2 || preview.Eligible != 2 {
		t.Errorf("%+v", preview)
	}
	stranger := s.newKey(apikey.Request{Name: "stranger", Scope: apikey.Operator})
	client{s.at, stranger}.ask(t, "POST", "/api/replays", `{"dry_run":true}`).is(t, http.StatusOK, &preview)
	if preview.Letters != 0 {
		t.Errorf("another owner can replay %+v", preview)
	}
	s.ask("POST", "/api/replays", `{"filter":{"code":"DOWNLOAD_HTTP_5XX"},"canary":1,"reason":"repaired"}`).is(t, http.StatusAccepted, nil)
	s.becomes(job, ledger.Complete)
	var list struct{ Replays []map[string]any }
	s.ask("GET", "/api/replays", "").is(t, http.StatusOK, &list)
	if r := list.Replays[0]; len(list.Replays) != 1 || r["reason"] != "repaired" || r["canary"] != 1.0 || r["filter"].(map[string]any)["code"] != "DOWNLOAD_HTTP_5XX" || r["spec"] != nil {
		t.Errorf("replays: %v", list.Replays)
	}
	s.lettersOnce(2)
}

// What belongs to another owner does not exist for a client.
func TestOwnersSeeOnlyTheirOwn(t *testing.T) {
	s := newScene(t)
	job := s.submits("/status/404/a")
	s.becomes(job, ledger.Failed)
	s.lettersOnce(1)
	resource := s.resourcesOf(job)["/status/404/a"]
	stranger := s.newKey(apikey.Request{Name: "stranger", Scope: apikey.Operator})
	at := "/api/jobs/" + job.String()
	for _, try := range []string{"GET " + at, "GET " + at + "/resources", "GET " + at + "/resources/" + resource.ID.String(), "GET " + at + "/results", "GET " + at + "/events", "POST " + at + "/cancel", "POST " + at + "/retry",
		"POST " + at + "/resources/" + resource.ID.String() + "/retry", "GET /api/dead-letters/1"} {
		method, path, _ := strings.Cut(try, " ")
		var no refused
		client{s.at, stranger}.ask(t, method, path, "").is(t, http.StatusNotFound, &no)
		if no.Error.Code != "VALIDATION_NOT_FOUND" {
			t.Errorf("%s: %+v", try, no)
		}
	}
	var list struct{ Jobs []view.Job }
	client{s.at, stranger}.ask(t, "GET", "/api/jobs", "").is(t, http.StatusOK, &list)
	var letters struct {
		Letters []view.Letter `json:"dead_letters"`
	}
	client{s.at, stranger}.ask(t, "GET", "/api/dead-letters", "").is(t, http.StatusOK, &letters)
	if len(list.Jobs)+len(letters.Letters) > 0 {
		t.Errorf("%+v %+v", list, letters)
	}
	admin := s.newKey(apikey.Request{Name: "admin", Scope: apikey.Admin})
	client{s.at, admin}.ask(t, "GET", at, "").is(t, http.StatusOK, nil)
}

// The stream is down while resources fail: nothing is lost, and each is published once it is back.
func TestDeadLettersWaitForTheStream(t *testing.T) {
	s := newScene(t)
	s.server.Close()
	job := s.submits("/status/404/a", "/status/404/b", "/ok/c")
	s.until("all have ended", func() bool {
		counts := map[holdfast.State]int{}
		for _, r := range s.resourcesOf(job) {
			counts[r.State]++
		}
		return counts[holdfast.Failed] == 2 && counts[holdfast.Complete] == 1
	})
	var ready struct {
		Status string `json:"status"`
	}
	client{s.at, ""}.ask(t, "GET", "/readyz", "").is(t, http.StatusOK, &ready)
	if ready.Status != "degraded" {
		t.Errorf("while the stream is down it is %q", ready.Status)
	}
	s.stream.Close()
	s.server = nil
	if err := s.openStream(); err != nil {
		t.Fatal(err)
	}
	s.outbox.Stream, s.replays.Stream = s.stream, s.stream
	s.lettersOnce(2)
}

// A pool without a usable proxy: the resource waits and spends no attempt, unless the settings say so.
func TestWithoutAUsableProxyAResourceWaits(t *testing.T) {
	for setting, spends := range map[string]bool{"wait": false, "attempt": true} {
		t.Run(setting, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(config, []byte("pools:\n  dead:\n    - {url: \"http://127.0.0.1:1\"}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			s := newScene(t, "CONFIG", config, "PROXY_EXHAUSTED", setting, "DOWNLOAD_RETRY_LIMIT", "50", "RETRY_BASE_DELAY_MS", "1")
			job := s.submitsManifest(fmt.Sprintf(`{"proxy": "dead", "resources": [{"url": "%s/ok/a"}]}`, s.origin.URL))
			var r view.Resource
			s.until("no proxy is usable", func() bool {
				r = s.resourcesOf(job)["/ok/a"]
				return r.Failure != nil && r.Failure.Code == code.DownloadProxyExhausted && r.State == holdfast.Queued
			})
			var detail view.Resource
			s.ask("GET", "/api/jobs/"+job.String()+"/resources/"+r.ID.String(), "").is(t, http.StatusOK, &detail)
			tried := 0
			for _, a := range detail.History {
				if a.Failure != nil && a.Failure.Code == code.DownloadProxyError {
					tried++
				}
			}
			if spent := r.Attempts > tried; spent != spends {
				t.Errorf("%d attempts, %d of them reached a proxy: %+v", r.Attempts, tried, detail.History)
			}
			if r.NextTry == nil {
				t.Error("it does not say when it is tried again")
			}
		})
	}
}

func TestWhatAHandlerRefusesIsADeadLetterAtOnce(t *testing.T) {
	s := newScene(t)
	job := s.submitsManifest(fmt.Sprintf(`{"resources": [{"url": "%s/ok/a", "handler": "image"}, {"url": "%s/ok/b", "handler": "raw"}]}`, s.origin.URL, s.origin.URL))
	v := s.becomes(job, ledger.Failed)
	if v.LastError.Code != code.HandlerNotAnImage || v.ResourcesComplete != 1 || v.Retries != 0 {
		t.Errorf("%+v", v)
	}
	if letter := s.lettersOnce(1)[0]; letter.GetFailureCode() != code.HandlerNotAnImage || letter.GetAttempts() != 1 {
		t.Errorf("%v", letter)
	}
	s.until("the dead letter is counted", func() bool {
		metrics := string(client{s.at, ""}.ask(t, "GET", "/metrics", "").body)
		return strings.Contains(metrics, `fetchbox_dead_letters_total{code="HANDLER_NOT_AN_IMAGE"} 1`)
	})
}

func TestEventsOfAJobArriveAsTheyHappen(t *testing.T) {
	s := idleScene(t)
	job := s.submits("/ok/a", "/status/404/b")
	other := s.submits("/ok/c")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.at+"/api/jobs/"+job.String()+"/events?after=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	s.works()
	seen := map[string]bool{}
	lines := bufio.NewScanner(response.Body)
	for !(seen["job.complete"] && seen["job.failed"] && seen["job.dead_letter"]) && lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			seen[name] = true
		}
		if strings.Contains(lines.Text(), other.String()) {
			t.Errorf("an event of another job: %s", lines.Text())
		}
	}
	if len(seen) < 3 {
		t.Errorf("the stream ended with %v: %v", seen, lines.Err())
	}
}

func TestFetchBoxOnPostgreSQL(t *testing.T) {
	s := newScene(t, "DATABASE_URL", pgtest.Database(t))
	job := s.submits("/ok/a", "/flaky/1/b", "/status/404/c")
	v := s.becomes(job, ledger.Failed)
	if v.ResourcesComplete != 2 || v.ResourcesFailed != 1 {
		t.Errorf("%+v", v)
	}
	s.lettersOnce(1)
	s.ask("POST", "/api/replays", `{"filter":{"code":"DOWNLOAD_"}}`).is(t, http.StatusAccepted, nil)
	if letters := s.lettersOnce(2); letters[1].GetGeneration() != 2 {
		t.Errorf("%v", letters)
	}
}
