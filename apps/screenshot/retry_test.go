package main

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/soak"
)

// retry asks for a manual retry.
func (s *scene) retry(id holdfast.ID) answer {
	s.Helper()
	return s.call("POST", "/api/v1/screenshots/"+id.String()+"/retry", map[string]string{"requestedBy": "user123"})
}

// submitHTML asks for a shot of a document, which fails if a request of it fails.
func (s *scene) submitHTML(html string) (job service.Job) {
	s.Helper()
	a := s.call("POST", "/api/v1/screenshots", map[string]any{"html": html, "width": 320, "height": 200, "failOnRequestErrors": true, "allowBlank": true})
	if a.Status != 202 {
		s.Fatalf("%d %s", a.Status, a.Body)
	}
	a.into(s, &job)
	return job
}

// requests returns how often a path of the origin was asked for.
func (o *origin) requests(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[path]
}

// The four scenarios of the specification.

func TestScenario1AWorkerFailureIsRetriedAutomaticallyAndFreely(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.works()
		job := s.submit("/flaky/2/page")
		done := s.ended(job.ID, service.Completed)
		if done.RetryCount != 2 || done.RetryType != "AUTOMATIC" || done.NextRetryAt != nil || s.origin.requests("/flaky/2/page") != 3 {
			s.Errorf("%+v after %d requests", done, s.origin.requests("/flaky/2/page"))
		}
		s.has(99, 0, 1)
		s.until("the log says so", func() bool { return strings.Contains(s.logged.String(), "Job failed but scheduled for retry") })
		s.sound()
	})
}

func TestScenario2AFailedShotIsRetriedByHandAndPaidOnce(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.works()
		s.origin.setDown(true)
		job := s.submit("/page")
		s.ended(job.ID, service.Failed)
		s.has(100, 0, 0)
		s.origin.setDown(false)
		a := s.retry(job.ID)
		var done struct {
			JobID         holdfast.ID
			Message       string
			QueuePosition int
		}
		a.into(s, &done)
		if a.Status != 200 || done.JobID != job.ID || done.Message != "Job queued for manual retry" || done.QueuePosition != 1 {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		if again := s.ended(job.ID, service.Completed); again.RetryType != "MANUAL" || again.RetryCount != 0 {
			s.Errorf("%+v", again)
		}
		s.has(99, 0, 1)
		story := string(s.call("GET", "/api/v1/screenshots/"+job.ID.String()+"/story", nil).Body)
		for _, want := range []string{"manual retry", "requested by user123", "admin@localhost (API key first)", `"kind":"release"`, `"kind":"capture"`} {
			if !strings.Contains(story, want) {
				s.Errorf("the story lacks %q: %s", want, story)
			}
		}
		if a := s.retry(job.ID); a.Status != 400 || a.code() != "VALIDATION_ERROR" || !strings.Contains(string(a.Body), "Job must be in FAILED status or stuck (>30 min processing)") {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		s.sound()
	})
}

func TestScenario3AStuckShotIsTakenFromItsWorker(t *testing.T) {
	test := func(t *testing.T, env ...string) {
		pool, err := browsers()
		if err != nil {
			t.Fatal(err)
		}
		set := settingsFor(t, env...)
		set.StuckAfter = time.Second // stands for 30 minutes
		s := openScene(t, set, pool)
		s.works()
		job := s.submit("/hold", map[string]any{"timeoutMs": 60_000})
		s.until("the shot is stuck", func() bool {
			return strings.Contains(string(s.call("POST", "/api/v1/admin/jobs/stuck", nil).Body), job.ID.String())
		})
		s.origin.release()
		if a := s.call("POST", "/api/v1/admin/jobs/process-stuck", nil); a.Status != 200 || strings.TrimSpace(string(a.Body)) != `{"processed":1}` && s.get(job.ID).Status != service.Completed {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		s.ended(job.ID, service.Completed)
		s.has(99, 0, 1)
		s.sound()
	}
	t.Run("sqlite", func(t *testing.T) { test(t) })
	t.Run("postgres", func(t *testing.T) { test(t, "DATABASE_URL", pgtest.Database(t)) })
}

func TestScenario4AManualRetryReplacesTheScheduledOne(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.works()
		s.origin.setDown(true)
		job := s.submit("/page")
		s.until("the retry is scheduled", func() bool { return s.get(job.ID).NextRetryAt != nil })
		s.origin.setDown(false)
		if a := s.retry(job.ID); a.Status != 200 {
			s.Fatalf("%d %s", a.Status, a.Body)
		}
		s.ended(job.ID, service.Completed)
		s.has(99, 0, 1)
		if n := s.origin.requests("/page"); n != 2 {
			s.Errorf("the page was requested %d times", n)
		}
		if !strings.Contains(s.logged.String(), "Cancelled scheduled automatic retry for manual retry") {
			s.Error("the log does not say that the scheduled retry was cancelled")
		}
		s.sound()
	}, "RETRY_POLICIES", "")
}

func TestOfManyRetriesAtTheSameTimeOneIsMade(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.works()
		for range soak.Pick("rounds of the race of scenario 4", 4, 1000) {
			s.origin.setDown(true)
			job := s.submitHTML(`<img src="` + s.origin.URL + `/picture">`) // without a host of its own, so that no breaker opens
			s.until("it failed once", func() bool { j := s.get(job.ID); return j.RetryCount > 0 || j.Status == service.Failed })
			var accepted, refused atomic.Int32
			var wait sync.WaitGroup
			for range 6 {
				wait.Go(func() {
					switch a := s.retry(job.ID); {
					case a.Status == 200:
						accepted.Add(1)
					case a.Status == 409 && a.code() == "CONCURRENT_MODIFICATION", a.Status == 400 && a.code() == "VALIDATION_ERROR":
						refused.Add(1)
					default:
						s.Errorf("%d %s", a.Status, a.Body)
					}
				})
			}
			wait.Wait()
			s.origin.setDown(false)
			s.until("it ended", func() bool {
				j := s.get(job.ID)
				if j.Status == service.Failed {
					if a := s.retry(job.ID); a.Status == 200 {
						accepted.Add(1)
					}
				}
				return j.Status == service.Completed
			})
			if now, err := s.jobs.Job(s.Context(), job.ID); err != nil || now.Generation != int(accepted.Load())+1 {
				s.Fatalf("%d retries were accepted, and the shot is in generation %d: %v", accepted.Load(), now.Generation, err)
			}
		}
		s.sound()
	}, "WELCOME_CREDITS", "100000")
}

func TestARetryNeedsCreditsAgain(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.works()
		s.origin.setDown(true)
		job := s.submit("/page")
		s.ended(job.ID, service.Failed)
		s.has(1, 0, 0)
		s.origin.setDown(false)
		other := s.submit("/other")
		s.ended(other.ID, service.Completed)
		a := s.retry(job.ID)
		var refused struct{ RequiredCredits, AvailableCredits *int }
		a.into(s, &refused)
		if a.Status != 402 || a.code() != "INSUFFICIENT_CREDITS" || *refused.RequiredCredits != 1 || *refused.AvailableCredits != 0 {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		if s.get(job.ID).Status != service.Failed {
			s.Error("the retry was made nevertheless")
		}
		s.sound()
	}, "WELCOME_CREDITS", "1")
}

func TestAShotThatRunsCannotBeRetried(t *testing.T) {
	onBoth(t, func(s *scene) {
		waiting := s.submit("/ok")
		if a := s.retry(waiting.ID); a.Status != 400 || a.code() != "VALIDATION_ERROR" {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		s.works()
		job := s.submit("/hold")
		s.ended(job.ID, service.Processing)
		if a := s.retry(job.ID); a.Status != 409 || a.code() != "CONCURRENT_MODIFICATION" || !strings.Contains(string(a.Body), "Job is currently being processed by another worker") {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		if v := s.get(job.ID); v.LockedBy == nil || v.LockedAt == nil {
			s.Errorf("%+v", v)
		}
		s.origin.release()
		s.ended(job.ID, service.Completed)
		s.has(98, 0, 2)
	})
}

func TestThePausedSchedulerRetriesNothingAndResumesByItself(t *testing.T) {
	onBoth(t, func(s *scene) {
		a := s.call("POST", "/api/v1/admin/retry-scheduler/pause", map[string]any{"duration": "2s", "types": []string{"FAILED_JOBS"}})
		if a.Status != 200 || !strings.Contains(string(a.Body), `"type":"FAILED_JOBS","paused":true`) || !strings.Contains(string(a.Body), `"type":"STUCK_JOBS","paused":false`) {
			s.Fatalf("%d %s", a.Status, a.Body)
		}
		s.works()
		job := s.submit("/flaky/1/page")
		s.until("it failed once", func() bool { return s.get(job.ID).RetryCount == 1 })
		if n := s.origin.requests("/flaky/1/page"); n != 1 {
			s.Errorf("%d requests", n)
		}
		s.ended(job.ID, service.Completed)
		for _, bad := range []map[string]any{{"duration": "soon"}, {"types": []string{"ALL"}}, {"duration": "9999h"}} {
			if a := s.call("POST", "/api/v1/admin/retry-scheduler/pause", bad); a.Status != 400 {
				s.Errorf("%v: %d %s", bad, a.Status, a.Body)
			}
		}
		a = s.call("POST", "/api/v1/admin/retry-scheduler/pause", nil)
		if a.Status != 200 || strings.Count(string(a.Body), `"paused":true`) != 3 {
			s.Errorf("%d %s", a.Status, a.Body)
		}
		a = s.call("POST", "/api/v1/admin/retry-scheduler/resume", nil)
		if a.Status != 200 || strings.Count(string(a.Body), `"paused":false`) != 3 {
			s.Errorf("%d %s", a.Status, a.Body)
		}
	})
}
