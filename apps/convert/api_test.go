package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// 000 section 2C and 5, C4, C5, C8: each route has one answer for each caller and each state of the job.
func TestEveryRouteAnswersTheOwnerAndRefusesOthers(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick)
		at := s.served()
		mine, other := newCaller(t, at), newCaller(t, at)
		s.works()
		purged := mine.has(s, 0)
		s.becomes(purged, holdfast.Complete)
		s.purges(purged)
		complete := mine.has(s, 1)
		s.becomes(complete, holdfast.Complete)
		s.gateway.says(http.StatusNotAcceptable, `{"code":"INVALID_MAPPING","message":"Unsupported mapping."}`)
		failed := mine.has(s, 2)
		s.becomes(failed, holdfast.Failed)
		refusal := mine.refused(s)
		s.becomes(refusal, holdfast.Failed)
		s.gateway.hangs()
		processing := mine.has(s, 3)
		s.becomes(processing, holdfast.Processing)

		for _, c := range []struct {
			id                               string
			who                              *caller
			get, download, preview, retry    int
			code, downloadCode, retryRefused string
		}{
			{complete.String(), mine, 200, 200, 200, 409, "", "", "NOT_READY"},
			{processing.String(), mine, 200, 409, 409, 409, "", "NOT_READY", "NOT_READY"},
			{failed.String(), mine, 200, 409, 409, 202, "", "NOT_READY", ""},
			{refusal.String(), mine, 200, 409, 409, 404, "", "NOT_READY", "EXPIRED"},
			{purged.String(), mine, 404, 404, 404, 404, "EXPIRED", "EXPIRED", "EXPIRED"},
			{complete.String(), other, 403, 403, 403, 403, "FORBIDDEN", "FORBIDDEN", "FORBIDDEN"},
			{failed.String(), other, 403, 403, 403, 403, "FORBIDDEN", "FORBIDDEN", "FORBIDDEN"},
			{purged.String(), other, 403, 403, 403, 403, "FORBIDDEN", "FORBIDDEN", "FORBIDDEN"},
			{holdfast.NewID().String(), mine, 404, 404, 404, 404, "UNKNOWN", "UNKNOWN", "UNKNOWN"},
			{"not-an-id", mine, 404, 404, 404, 404, "UNKNOWN", "UNKNOWN", "UNKNOWN"},
			{"..%2f..%2fetc%2fpasswd", mine, 404, 404, 404, 404, "UNKNOWN", "UNKNOWN", "UNKNOWN"},
			{strings.ToUpper(complete.String()) + "%00", mine, 404, 404, 404, 404, "UNKNOWN", "UNKNOWN", "UNKNOWN"},
		} {
			c.who.asks("GET", "/api/jobs/"+c.id).is(c.get, c.code)
			c.who.asks("GET", "/api/jobs/"+c.id+"/download").is(c.download, c.downloadCode)
			c.who.asks("GET", "/api/jobs/"+c.id+"/preview").is(c.preview, c.downloadCode)
			c.who.asks("POST", "/api/jobs/"+c.id+"/retry").is(c.retry, c.retryRefused)
		}
		got := mine.asks("GET", "/api/jobs/"+processing.String()+"/download")
		if got.header.Get("Retry-After") == "" {
			t.Error("the answer 409 has no Retry-After")
		}
	})
}

// Issue 7: JSON fields named as in document 000; absent values are null, never missing.
func TestAJobHasTheFieldsOfTheDocument(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		at := s.served()
		c := newCaller(t, at)
		id := c.has(s, 1)
		var fields map[string]any
		if err := json.Unmarshal([]byte(c.asks("GET", "/api/jobs/"+id.String()).is(200, "").body), &fields); err != nil {
			t.Fatal(err)
		}
		want := strings.Fields(`id status filename mapping bytes sha256 attempt_count max_attempts manual_retry_count retry_after last_attempt_at error_code error_message
			created_at queued_at started_at completed_at failed_at updated_at source result source_expires_at result_expires_at result_bytes result_sha256 can_retry retry_hint held download_url`)
		for _, name := range want {
			if _, ok := fields[name]; !ok {
				t.Errorf("%s is missing", name)
			}
			delete(fields, name)
		}
		if len(fields) > 0 {
			t.Errorf("unexpected fields: %v", fields)
		}

		v := c.get(id)
		if v.Status != "queued" || v.Filename != "file-1.pdf" || v.Mapping != "text" || v.AttemptCount != 0 || v.MaxAttempts != 3 || v.Source != "available" || v.Result != "none" ||
			v.SourceExpiresAt == nil || v.StartedAt != nil || v.ErrorCode != nil || v.RetryAfter != nil || v.CanRetry || v.RetryHint == nil || v.DownloadURL != nil || v.SHA256 == "" {
			t.Errorf("queued: %+v", v)
		}
		s.gateway.says(http.StatusBadGateway, "")
		s.works()
		s.until("it waits for a retry", func() bool { j := s.job(id); return j.Failures == 1 && j.State == holdfast.Queued })
		v = c.get(id)
		if v.Status != "queued" || v.AttemptCount != 1 || *v.ErrorCode != "GW_5XX" || *v.ErrorMessage != "Converter service is having an issue. We’ll retry shortly." ||
			v.RetryAfter == nil || !v.RetryAfter.After(v.CreatedAt) || v.LastAttemptAt == nil || v.StartedAt == nil || !v.QueuedAt.After(v.CreatedAt) || v.UpdatedAt.Before(v.QueuedAt) {
			t.Errorf("awaiting a retry: %+v", v)
		}
		s.gateway.converts()
		// A manual retry by an operator goes before the automatic one.
		if _, err := s.operator.Retry(t.Context(), store.Intervention{Job: id, Actor: "operator"}); err != nil {
			t.Fatal(err)
		}
		s.becomes(id, holdfast.Complete)
		v = c.get(id)
		if v.Status != "complete" || v.ErrorCode != nil || v.ErrorMessage != nil || v.CompletedAt == nil || v.FailedAt != nil || v.Result != "available" || v.ResultBytes == nil || *v.ResultBytes == 0 ||
			v.ResultSHA256 == nil || v.ResultExpiresAt == nil || v.ManualRetryCount != 1 || v.AttemptCount != 1 || v.RetryAfter != nil || v.DownloadURL == nil || v.StartedAt.After(*v.LastAttemptAt) {
			t.Errorf("complete: %+v", v)
		}
		c.asks("GET", *v.DownloadURL).is(200, "")
	})
}

// 000 section 11: upload a bad type: job failed with NOT_PDF. The view is the same before and after the engine has run it.
func TestARefusedFileIsFailedFromTheFirstMoment(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		c := newCaller(t, s.served())
		id := c.refused(s)
		before := c.get(id)
		if before.Status != "failed" || *before.ErrorCode != "NOT_PDF" || *before.ErrorMessage != "Only PDF files are supported." || before.CanRetry || before.RetryHint == nil || before.FailedAt == nil || before.Filename != "cat.gif" {
			t.Errorf("%+v", before)
		}
		listed := func(status string) int {
			return strings.Count(c.asks("GET", "/api/jobs?status="+status).is(200, "").body, id.String())
		}
		for _, state := range []string{"", "failed"} {
			expect(t, "listed as "+state, listed(state), 1)
		}
		expect(t, "listed as queued", listed("queued"), 0)
		s.works()
		s.becomes(id, holdfast.Failed)
		after := c.get(id)
		a, _ := json.Marshal(before)
		b, _ := json.Marshal(after)
		expect(t, "the view afterwards", string(b), string(a))
		for _, state := range []string{"", "failed"} {
			expect(t, "listed as "+state, listed(state), 1)
		}
	})
}

func TestAListHoldsTheOwnersJobsNewestFirstPageByPage(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		at := s.served()
		mine, other := newCaller(t, at), newCaller(t, at)
		var want []string
		for n := range 7 {
			want = append(want, mine.has(s, n).String())
			other.has(s, n)
		}
		slices.Reverse(want)
		type page struct {
			Jobs       []view
			NextCursor *string `json:"next_cursor"`
		}
		var got []string
		for cursor := ""; ; {
			var p page
			if err := json.Unmarshal([]byte(mine.asks("GET", "/api/jobs?limit=3&cursor="+cursor).is(200, "").body), &p); err != nil {
				t.Fatal(err)
			}
			for _, v := range p.Jobs {
				got = append(got, v.ID)
			}
			if p.NextCursor == nil {
				break
			}
			cursor = *p.NextCursor
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		s.works(queueConvert)
		for _, id := range want {
			known, _ := holdfast.ParseID(id)
			s.becomes(known, holdfast.Complete)
		}
		expect(t, "queued", strings.Count(mine.asks("GET", "/api/jobs?status=queued").is(200, "").body, `"id"`), 0)
		expect(t, "complete", strings.Count(mine.asks("GET", "/api/jobs?status=complete").is(200, "").body, `"id"`), 7)
		for _, query := range []string{"limit=0", "limit=201", "limit=x", "status=lost", "cursor=%2e%2e", "cursor=" + strings.Repeat("A", 5000)} {
			mine.asks("GET", "/api/jobs?"+query).is(400, "UNKNOWN")
		}
	})
}

// 001 section 6: manual retry works only for owners and only when the source exists. E11: never twice, however many ask.
func TestAManualRetryHappensOnceAndOnlyWithItsSource(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick)
		at := s.served()
		c := newCaller(t, at)
		s.gateway.says(http.StatusBadRequest, "")
		work := s.works()
		id, gone := c.has(s, 1), c.has(s, 2)
		s.becomes(id, holdfast.Failed)
		s.becomes(gone, holdfast.Failed)
		work.stop()
		s.gateway.converts()

		s.loses(gone, artifactSource)
		v := c.get(gone)
		if v.CanRetry || v.Source != "expired" || v.RetryHint == nil || !strings.Contains(*v.RetryHint, "upload it again") {
			t.Errorf("without its source: %+v", v)
		}
		c.asks("POST", "/api/jobs/"+gone.String()+"/retry").is(404, "EXPIRED")

		if v := c.get(id); !v.CanRetry || v.RetryHint != nil || *v.ErrorCode != "GW_4XX" {
			t.Errorf("failed: %+v", v)
		}
		var mu sync.Mutex
		count := map[int]int{}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				got := c.asks("POST", "/api/jobs/"+id.String()+"/retry")
				mu.Lock()
				defer mu.Unlock()
				count[got.status]++
				if v := got.job(); got.status == 202 && (v.Status != "queued" || v.QueuePosition != 1 || v.ManualRetryCount != 1 || v.ErrorCode != nil || v.AttemptCount != 0) {
					t.Errorf("after a retry: %+v", v)
				}
			})
		}
		all.Wait()
		if count[202] != 1 || count[409] != 19 {
			t.Errorf("twenty concurrent requests are answered %v", count)
		}
		s.works()
		s.becomes(id, holdfast.Complete)
		expect(t, "manual_retry_count", c.get(id).ManualRetryCount, 1)
		history, err := s.store.History(t.Context(), id)
		if err != nil || !slices.ContainsFunc(history.Events, func(e store.Event) bool { return e.Name == "manual retry" && e.Actor == c.owner && e.Request != "" }) {
			t.Errorf("the retry is not in the history: %+v, %v", history.Events, err)
		}
	})
}

func TestARetryOfAFileThatWasUploadedAgainNamesTheOtherJob(t *testing.T) {
	s := newScene(t, "", quick)
	c := newCaller(t, s.served())
	key := func(d *holdfast.Draft) { d.Owner, d.UniqueKey, d.UniqueDone = c.owner, "the same", true }
	s.gateway.says(http.StatusBadRequest, "")
	s.works()
	first := s.enters(1, key)
	s.becomes(first, holdfast.Failed)
	s.gateway.converts()
	second := s.enters(1, key)
	s.becomes(second, holdfast.Complete)
	got := c.asks("POST", "/api/jobs/"+first.String()+"/retry").is(409, "NOT_READY")
	if !strings.Contains(got.body, second.String()) {
		t.Errorf("the other job is not named: %s", got.body)
	}
}
