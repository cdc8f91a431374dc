package main

import (
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/browser"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/internal/pgtest"
	"github.com/holdfastdev/holdfast/internal/safehttp"
	"github.com/holdfastdev/holdfast/internal/soak"
)

// retry asks for a manual retry.
func (s *scene) retry(id holdfast.ID) answer {
	s.Helper()
	return s.call("POST", "/api/v1/screenshots/"+id.String()+"/retry", map[string]string{"requestedBy": "user123"})
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

// Scenario 4 again and again: several manual retries of a shot at the same time as its automatic ones.
func TestOfManyRetriesAtTheSameTimeOneIsMade(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.works()
		for left := soak.Pick("shots in the race of scenario 4", 6, 1000); left > 0; left -= raceAtOnce {
			s.origin.setDown(true)
			accepted := map[holdfast.ID]int{}
			var mu sync.Mutex
			var wait sync.WaitGroup
			for _, id := range s.submitMany(min(left, raceAtOnce)) { // documents have no host, so that no breaker opens
				wait.Go(func() {
					s.until("it failed once", func() bool { j := s.get(id); return j.RetryCount > 0 || j.Status == service.Failed })
					n := s.race(id)
					mu.Lock()
					defer mu.Unlock()
					accepted[id] = n
				})
			}
			wait.Wait()
			s.origin.setDown(false)
			for id, n := range accepted {
				s.finish(id, n)
			}
		}
		s.sound()
	}, "WELCOME_CREDITS", "100000")
}

// raceAtOnce is how many shots are raced for at the same time.
const raceAtOnce = 20

// race sends several retries of a shot at the same time, and returns how many were accepted. The others must be refused as the specification says.
func (s *scene) race(id holdfast.ID) int {
	s.Helper()
	var accepted atomic.Int32
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			switch a := s.retry(id); {
			case a.Status == 200:
				accepted.Add(1)
			case a.Status == 409 && a.code() == "CONCURRENT_MODIFICATION", a.Status == 400 && a.code() == "VALIDATION_ERROR":
			default:
				s.Errorf("%d %s", a.Status, a.Body)
			}
		})
	}
	wait.Wait()
	return int(accepted.Load())
}

// finish retries a shot until it is complete. It must then be in the generation of its accepted retries.
func (s *scene) finish(id holdfast.ID, accepted int) {
	s.Helper()
	s.until("it is complete", func() bool {
		j := s.get(id)
		if j.Status == service.Failed && s.retry(id).Status == 200 {
			accepted++
		}
		return j.Status == service.Completed
	})
	if now, err := s.jobs.Job(s.Context(), id); err != nil || now.Generation != accepted+1 {
		s.Errorf("%d retries were accepted, and the shot is in generation %d: %v", accepted, now.Generation, err)
	}
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

func TestThePageSaysWhatHoldsAShot(t *testing.T) {
	s := newScene(t)
	if err := s.service.Pause(s.Context(), service.Caller{Name: "test"}, []string{service.FailedJobs}, 0); err != nil {
		t.Fatal(err)
	}
	s.works()
	job := s.submit("/flaky/1/page")
	v := s.visitorIs(firstEmail)
	s.until("the page says that retries are paused", func() bool {
		return strings.Contains(v.open("/shots/"+job.ID.String()).page, "An operator has paused retries.")
	})
	if err := s.service.Resume(s.Context(), service.Caller{Name: "test"}, nil); err != nil {
		t.Fatal(err)
	}
	s.ended(job.ID, service.Completed)
	if v.open("/shots/" + job.ID.String()); strings.Contains(v.page, "paused") {
		t.Error(v.page)
	}
}

func TestWhileNoBrowserStartsShotsWaitAndSpendNothing(t *testing.T) {
	guard, err := safehttp.New(safehttp.Config{AnyPort: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := browser.New(browser.Config{Path: filepath.Join(t.TempDir(), "no-chromium"), Size: 1, Guard: guard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := openScene(t, settingsFor(t), pool)
	s.works()
	job := s.submit("/ok")
	s.until("it has tried", func() bool { return pool.Status().Problem != "" && s.get(job.ID).Status == service.Queued })
	if j := s.get(job.ID); j.RetryCount != 0 || j.ErrorCode == nil || *j.ErrorCode != "BROWSER_UNAVAILABLE" {
		t.Errorf("%+v", j)
	}
	s.has(99, 1, 0)
	if a := s.call("GET", "/readyz", nil); a.Status != 200 || !strings.Contains(string(a.Body), `{"name":"browsers","well":false}`) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := s.call("GET", "/metrics", nil); !strings.Contains(string(a.Body), `screenshot_queue_size{queue="delayed"} 1`) {
		t.Errorf("the metrics lack the shot that waits")
	}
}
