package service

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/screenshot/code"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func TestRetriesComeAfter5And25And125Seconds(t *testing.T) {
	p := Retries{}.of(TypeScreenshot).forEngine(3, false)
	for n, want := range []time.Duration{5 * time.Second, 25 * time.Second, 125 * time.Second} {
		if got := p.Backoff.Delay(n+1, 0.5); got != want {
			t.Errorf("retry %d comes after %v instead of %v", n+1, got, want)
		}
	}
	if p.MaxAttempts != 4 {
		t.Errorf("%d attempts", p.MaxAttempts)
	}
}

func TestPoliciesAreReadByJobType(t *testing.T) {
	r, err := ReadRetries([]byte(`
retry:
  policies:
    - jobType: SCREENSHOT
      maxRetries: 5
      backoffStrategy: EXPONENTIAL
    - jobType: PDF_GENERATION
      maxRetries: 2
      backoffStrategy: FIXED
`))
	if err != nil {
		t.Fatal(err)
	}
	one, two := r.of(TypeScreenshot).forEngine(3, false), r.of(TypePDF).forEngine(3, false)
	if one.MaxAttempts != 6 || one.Backoff.Delay(5, 0) != 3125*time.Second || two.MaxAttempts != 3 || two.Backoff.Delay(2, 0) != 5*time.Second {
		t.Errorf("%+v and %+v", one, two)
	}
}

func TestABadPolicyFileIsRefusedWithEveryProblem(t *testing.T) {
	_, err := ReadRetries([]byte("retry: {policies: [{jobType: VIDEO, maxRetries: 99}, {jobType: SCREENSHOT, backoffStrategy: RANDOM}, {jobType: SCREENSHOT, baseDelay: 2h}]}"))
	for _, want := range []string{"VIDEO", "99", "RANDOM", "two policies", "2h"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
	if _, err := ReadRetries([]byte("retry: {policy: []}")); err == nil {
		t.Error("an unknown member was accepted")
	}
	if r, err := ReadRetries(nil); err != nil || r.of(TypePDF).Max != 3 || r.Windows != nil {
		t.Errorf("%v, %v", r, err)
	}
}

// The error classification of the specification, through the engine's own decision.
func TestTheClassOfAnErrorDecidesAboutItsRetry(t *testing.T) {
	for name, retried := range map[string]bool{
		code.PageTimeout: true, code.PageConnectError: true, code.PageConnectionLost: true, code.PageHTTP5XX: true, code.Validation: false, code.PageAddressBlocked: false, code.PageRedirectLoop: false, code.PageHTTP4XX: false,
	} {
		rules := failure.Rules{Taxonomy: code.Taxonomy(), Classify: code.Classify, Policy: Retries{}.of(TypeScreenshot).forEngine(3, false)}
		v := failure.Decide(rules, store.Lease{Job: holdfast.Job{ID: holdfast.NewID(), Kind: "screenshot", State: holdfast.Processing}}, failure.Outcome{Event: failure.Returned, Err: code.New(name, "example.org", nil)})
		if (v.To == holdfast.Queued) != retried {
			t.Errorf("%s (%s): %s", name, code.ClassOf(name), v.To)
		}
	}
}

func TestAStoryBecomesTheEventsOfItsRetries(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	story := []ops.StoryLine{
		{Name: "queued"}, {Name: "processing", Attempt: 1}, {Name: "retry", Attempt: 1, Code: code.PageHTTP5XX, At: at, DueAt: at.Add(5 * time.Second)},
		{Name: "processing", Attempt: 2}, {Name: "failed", Attempt: 2, Code: code.PageHTTP4XX}, {Name: "manual retry", Actor: "ada"}, {Name: "processing", Attempt: 1}, {Name: "complete", Attempt: 1, Duration: time.Second},
	}
	var names []string
	for _, e := range RetryEvents(holdfast.NewID(), story) {
		names = append(names, e.Type)
	}
	if got := strings.Join(names, " "); got != "RetryScheduled RetryStarted RetryFailed RetryScheduled RetryStarted RetrySucceeded" {
		t.Error(got)
	}
	if e := RetryEvents(holdfast.NewID(), story); e[0].DelayMS != 5000 || e[2].Error != code.PageHTTP4XX || e[3].Actor != "ada" || e[5].Duration != 1000 {
		t.Errorf("%+v", e)
	}
}

func TestLimitsOfUsersAndTimeWindowsAreReadAndEveryProblemIsNamed(t *testing.T) {
	r, err := ReadRetries([]byte(`
retry:
  policies:
    - jobType: PDF_GENERATION
      noRetries: [{from: "23:00", to: "01:00"}]
  users:
    - user: Ada@example.org
      maxRetries: 0
  noRetries:
    - {from: "09:00", to: "17:00", zone: Europe/Berlin, days: [mon-fri]}
`))
	if err != nil {
		t.Fatal(err)
	}
	if n, has := r.Users["ada@example.org"]; !has || n != 0 {
		t.Errorf("%v", r.Users)
	}
	noon := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC) // a Monday
	for at, want := range map[time.Time]string{noon: "pdf_generation screenshot", noon.Add(11*time.Hour + time.Minute): "pdf_generation", noon.Add(8 * time.Hour): "", noon.Add(-24 * time.Hour): ""} {
		var kinds []string
		for _, h := range r.Windows.WindowHolds(at) {
			kinds = append(kinds, h.Kind)
			if !h.Retries {
				t.Errorf("%s: the window holds first attempts too", at)
			}
		}
		if slices.Sort(kinds); strings.Join(kinds, " ") != want {
			t.Errorf("%s: the windows of %q apply instead of those of %q", at, kinds, want)
		}
	}
	_, err = ReadRetries([]byte(`{retry: {
		users: [{user: ada}, {user: bob@example.org, maxRetries: 99}, {user: eve@example.org, maxRetries: 1}, {user: EVE@example.org, maxRetries: 2}],
		noRetries: [{from: "25:00", to: "17:00"}], policies: [{jobType: PDF_GENERATION, noRetries: [{from: "09:00", to: "17:00", zone: Mars}]}]}}`))
	for _, want := range []string{`user "ada"`, "bob@example.org", "EVE@example.org has two limits", `noRetries, window 1: from: "25:00"`, `noRetries of PDF_GENERATION, window 1: zone: "Mars"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}
