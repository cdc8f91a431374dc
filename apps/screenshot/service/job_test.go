package service

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/apps/screenshot/shot"
)

// The state transitions of the specification: what a shot is in each state, and whether its user may retry it.
func TestTheStateOfAShotSaysWhetherItCanBeRetried(t *testing.T) {
	s := &Service{cfg: Config{StuckAfter: 30 * time.Minute}}
	now := time.Date(2026, 11, 19, 12, 0, 0, 0, time.UTC)
	args, err := json.Marshal(Screenshot{Request{Options: shot.Options{URL: "https://user:secret@example.org/", Headers: map[string]string{"Authorization": "secret"}}, Cost: 1}})
	if err != nil {
		t.Fatal(err)
	}
	failure := &holdfast.Failure{Code: code.PageHTTP5XX, Detail: "the host of the page answered HTTP 503"}
	for name, c := range map[string]struct {
		job     holdfast.Job
		status  string
		retries int
		can     bool
	}{
		"new":                 {holdfast.Job{State: holdfast.Queued, DueAt: now.Add(-time.Second)}, Queued, 0, false},
		"waits for a retry":   {holdfast.Job{State: holdfast.Queued, DueAt: now.Add(25 * time.Second), Failures: 2, LastFailure: failure}, Queued, 2, true},
		"its retry is due":    {holdfast.Job{State: holdfast.Queued, DueAt: now.Add(-time.Second), Failures: 2, LastFailure: failure}, Queued, 2, false},
		"runs":                {holdfast.Job{State: holdfast.Processing, StartedAt: now.Add(-29 * time.Minute)}, Processing, 0, false},
		"is stuck":            {holdfast.Job{State: holdfast.Processing, StartedAt: now.Add(-31 * time.Minute)}, Processing, 0, true},
		"failed":              {holdfast.Job{State: holdfast.Failed, Failures: 4, LastFailure: failure}, Failed, 3, true},
		"failed at once":      {holdfast.Job{State: holdfast.Failed, Failures: 1, LastFailure: &holdfast.Failure{Code: code.PageHTTP4XX}}, Failed, 0, true},
		"cancelled":           {holdfast.Job{State: holdfast.Cancelled}, Cancelled, 0, false},
		"complete":            {holdfast.Job{State: holdfast.Complete, Result: json.RawMessage(`{}`)}, Completed, 0, false},
		"retried by a person": {holdfast.Job{State: holdfast.Queued, DueAt: now, Generation: 2}, Queued, 0, false},
	} {
		c.job.Kind, c.job.Args, c.job.AsOf, c.job.CreatedAt = Screenshot{}.Kind(), args, now, now.Add(-time.Hour)
		v, err := s.view(&c.job)
		if err != nil {
			t.Fatal(err)
		}
		if v.Status != c.status || v.RetryCount != c.retries || (v.Refusal == "") != c.can || v.MaxRetries != 3 {
			t.Errorf("%s: %s, %d retries of %d, refusal %q", name, v.Status, v.RetryCount, v.MaxRetries, v.Refusal)
		}
		if want := map[bool]string{true: "MANUAL", false: "AUTOMATIC"}[c.job.Generation > 1]; v.RetryType != want {
			t.Errorf("%s: %s", name, v.RetryType)
		}
		if v.Options.Headers["Authorization"] == "secret" || strings.Contains(v.URL+v.Options.URL, "secret") {
			t.Errorf("%s: a secret is shown: %+v", name, v)
		}
	}
}
