package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/service"
	"github.com/holdfastdev/holdfast/internal/pgtest"
)

// The section on monitoring of the specification: each metric, log event and health check that it names, read from a service in which each has happened.
func TestTheMetricsLogEventsAndHealthChecksOfTheSpecificationExist(t *testing.T) {
	run := func(t *testing.T, env ...string) {
		policies := filepath.Join(t.TempDir(), "retries.yaml")
		text := "retry: {policies: [{jobType: SCREENSHOT, maxRetries: 2, baseDelay: 20ms}, {jobType: PDF_GENERATION, baseDelay: 1h}]}"
		if err := os.WriteFile(policies, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		set := settingsFor(t, append(env, "RETRY_POLICIES", policies)...)
		set.StuckAfter = time.Second // stands for 30 minutes
		camera := newCamera()
		camera.takes = 0
		s := openScene(t, set, camera)
		s.works()
		s.everythingHappens(camera)
		s.checkMetrics()
		s.checkLog()
	}
	t.Run("sqlite", func(t *testing.T) { run(t) })
	t.Run("postgres", func(t *testing.T) { run(t, "DATABASE_URL", pgtest.Database(t)) })
}

// everythingHappens lets shots be retried in each way, and checks the health meanwhile.
func (s *scene) everythingHappens(camera *scriptedCamera) {
	s.Helper()
	s.healthIs(nil)
	camera.setTimes("flaky.example", code.PageTimeout, 1)
	s.ended(s.submitOf("flaky.example"), service.Completed)
	camera.set("gone.example", code.PageHTTP4XX)
	failed := s.submitOf("gone.example")
	s.ended(failed, service.Failed)
	camera.set("gone.example", "")
	if a := s.retry(failed); a.Status != http.StatusOK {
		s.Fatalf("%d %s", a.Status, a.Body)
	}
	s.ended(failed, service.Completed)

	if a := s.call("POST", "/api/v1/admin/retry-scheduler/pause", nil); a.Status != http.StatusOK {
		s.Fatalf("%d %s", a.Status, a.Body)
	}
	s.healthIs([]string{"retry-scheduler"})
	if a := s.call("POST", "/api/v1/admin/retry-scheduler/resume", nil); a.Status != http.StatusOK {
		s.Fatalf("%d %s", a.Status, a.Body)
	}

	stuck := s.submitOf("hold.example")
	s.until("the shot is stuck", func() bool { return s.metrics()["screenshot_stuck_jobs"] == "1" })
	s.healthIs([]string{"stuck-jobs"})
	if a := s.call("POST", "/api/v1/admin/jobs/process-stuck", nil); a.Status != http.StatusOK {
		s.Fatalf("%d %s", a.Status, a.Body)
	}
	close(camera.hold)
	s.ended(stuck, service.Completed)

	var down []holdfast.ID
	for n := range 20 {
		camera.set(fmt.Sprintf("down%d.example", n), code.PageTimeout)
		down = append(down, s.submitOf(fmt.Sprintf("down%d.example", n)))
	}
	for _, id := range down {
		s.ended(id, service.Failed)
	}
	s.healthIs([]string{"retry-rate"})

	camera.set("later.example", code.PageTimeout)
	scheduled := func() (id holdfast.ID) {
		id = s.submitOf("later.example", "format", "pdf")
		s.until("its retry is scheduled", func() bool { return s.get(id).NextRetryAt != nil })
		return id
	}
	replaced := scheduled()
	scheduled()
	camera.set("later.example", "")
	if a := s.retry(replaced); a.Status != http.StatusOK {
		s.Fatalf("%d %s", a.Status, a.Body)
	}
	s.ended(replaced, service.Completed)
	s.stop()
	s.stop = nil
	s.submitOf("waiting.example")
}

// submitOf asks for a shot of a host. Pairs of options are added.
func (s *scene) submitOf(host string, more ...string) holdfast.ID {
	s.Helper()
	body := map[string]any{"url": "http://" + host + "/"}
	for i := 0; i+1 < len(more); i += 2 {
		body[more[i]] = more[i+1]
	}
	a := s.call("POST", "/api/v1/screenshots", body)
	if a.Status != http.StatusAccepted {
		s.Fatalf("%d %s", a.Status, a.Body)
	}
	var job service.Job
	a.into(s, &job)
	return job.ID
}

// healthIs waits until exactly these checks of /readyz fail. All checks of the specification must be listed, and the process must be ready: they are alerts.
func (s *scene) healthIs(unwell []string) {
	s.Helper()
	s.until(fmt.Sprintf("the checks that fail are %q", unwell), func() bool {
		var all struct {
			Checks []struct {
				Name string
				Well bool
			}
		}
		a := s.call("GET", "/readyz", nil)
		if a.into(s, &all); a.Status != http.StatusOK || s.call("GET", "/healthz", nil).Status != http.StatusOK {
			s.Fatalf("%d %s", a.Status, a.Body)
		}
		known, failing := map[string]bool{}, []string(nil)
		for _, c := range all.Checks {
			known[c.Name] = true
			if !c.Well {
				failing = append(failing, c.Name)
			}
		}
		for _, name := range []string{"retry-scheduler", "queue-depth", "stuck-jobs", "retry-rate"} {
			if !known[name] {
				s.Fatalf("/readyz lacks %s: %s", name, a.Body)
			}
		}
		return strings.Join(failing, " ") == strings.Join(unwell, " ")
	})
}

// metrics reads /metrics.
func (s *scene) metrics() map[string]string {
	s.Helper()
	all := map[string]string{}
	for line := range strings.Lines(string(s.call("GET", "/metrics", nil).Body)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			all[name] = value
		}
	}
	return all
}

func (s *scene) checkMetrics() {
	s.Helper()
	got := s.metrics()
	for _, want := range []struct{ says, name, value string }{
		{"Jobs retried, automatic", `screenshot_retries_total{type="automatic"}`, "43"},
		{"Jobs retried, manual", `screenshot_retries_total{type="manual"}`, "2"},
		{"Retry success rates by attempt number: first attempts", `screenshot_attempts_total{attempt="1",outcome="failed"}`, "24"},
		{"Retry success rates by attempt number: successes", `screenshot_attempts_total{attempt="2",outcome="complete"}`, "1"},
		{"Retry success rates by attempt number: failures", `screenshot_attempts_total{attempt="2",outcome="failed"}`, "20"},
		{"Stuck job recovery counts", `screenshot_retries_total{type="stuck"}`, "1"},
		{"Failed jobs marked as non-retryable", `screenshot_not_retryable_total`, "1"},
		{"Queue sizes, main", `screenshot_queue_size{queue="main"}`, "1"},
		{"Queue sizes, delayed", `screenshot_queue_size{queue="delayed"}`, "1"},
		{"Stuck job count alerts", `screenshot_stuck_jobs`, "0"},
	} {
		if got[want.name] != want.value {
			s.Errorf("%s: %s is %q instead of %s", want.says, want.name, got[want.name], want.value)
		}
	}
}

func (s *scene) checkLog() {
	s.Helper()
	lines := map[string]map[string]any{} // the first of each message
	for line := range strings.Lines(s.logged.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			s.Fatal(err)
		}
		if message, _ := one["msg"].(string); lines[message] == nil {
			lines[message] = one
		}
	}
	for _, want := range []struct {
		message, level, event string
		members               []string
	}{
		{"Job failed but scheduled for retry", "INFO", "retry_scheduled", []string{"job_id", "retry_count", "delay_s"}},
		{"Manual retry requested", "INFO", "manual_retry", []string{"job_id", "user"}},
		{"Found stuck jobs", "WARN", "stuck_jobs", []string{"jobs"}},
		{"Cancelled scheduled automatic retry for manual retry", "INFO", "delayed_job_cancelled", []string{"job_id"}},
	} {
		line := lines[want.message]
		if line["level"] != want.level || line["event"] != want.event {
			s.Errorf("%s: the log has %v", want.message, line)
		}
		for _, member := range want.members {
			if line[member] == nil {
				s.Errorf("%s: the line lacks %s: %v", want.message, member, line)
			}
		}
	}
}
