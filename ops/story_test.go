package ops

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// at is so many seconds past noon.
func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func summary(lines []StoryLine) string {
	var all []string
	for _, line := range lines {
		all = append(all, fmt.Sprintf("%s %d/%d/%d", line.Name, line.Generation, line.Token, line.Attempt))
	}
	return strings.Join(all, ", ")
}

func TestAStoryFollowsTokensNotClocks(t *testing.T) {
	timeout := &holdfast.Failure{Code: "TIMEOUT"}
	history := store.History{
		Job: holdfast.Job{Kind: "mail", Queue: "default", CreatedAt: at(0), State: holdfast.Complete, Token: 5, Generation: 2, StartedAt: at(50), FinishedAt: at(60), Worker: "w3"},
		Attempts: []store.Attempt{
			{Token: 1, Generation: 1, Worker: "w1", StartedAt: at(1), EndedAt: at(2), To: holdfast.Queued, Charge: store.ChargeFailure, DueAt: at(5), Failure: timeout},
			{Token: 1, Generation: 1, Worker: "w1", StartedAt: at(1), EndedAt: at(3), To: holdfast.Complete, Late: true},
			// The clock stepped back here.
			{Token: 3, Generation: 1, Worker: "w1", StartedAt: at(-10), EndedAt: at(-9), To: holdfast.Queued, Charge: store.ChargeCrash, DueAt: at(-8)},
			{Token: 4, Generation: 1, Worker: "w2", StartedAt: at(10), EndedAt: at(11), To: holdfast.Failed, Charge: store.ChargeFailure, Failure: timeout},
		},
		Events: []store.Event{{Name: "discard", At: at(20), Token: 4, Generation: 1, Actor: "ann"}, {Name: "manual retry", At: at(30), Token: 4, Generation: 2, Actor: "ann"}},
	}
	want := "queued 1/0/0, processing 1/1/1, retry 1/1/1, processing 1/3/2, reclaimed 1/3/2, late result 1/1/0, processing 1/4/3, failed 1/4/3, discard 1/4/0, manual retry 2/4/0, processing 2/5/1, complete 2/5/1"
	if diff := cmp.Diff(want, summary(Story(history))); diff != "" {
		t.Error(diff)
	}
}

func TestAnAttemptThatNeverStartedHasNoProcessingLine(t *testing.T) {
	history := store.History{
		Job: holdfast.Job{CreatedAt: at(0), State: holdfast.Failed, Token: 2, Generation: 1, FinishedAt: at(9)},
		Attempts: []store.Attempt{
			{Token: 1, Generation: 1, Worker: "w1", StartedAt: at(1), EndedAt: at(1), To: holdfast.Queued, Charge: store.ChargeRelease, DueAt: at(1)},
			{Token: 2, Generation: 1, Worker: "w1", StartedAt: at(9), EndedAt: at(9), To: holdfast.Failed, Failure: &holdfast.Failure{Code: "JOB_EXPIRED"}},
		},
	}
	if diff := cmp.Diff("queued 1/0/0, released 1/1/1, expired 1/2/0", summary(Story(history))); diff != "" {
		t.Error(diff)
	}
}

func TestACancelRequestDiffersFromAnImmediateCancel(t *testing.T) {
	cancel := store.Event{Name: "cancel", At: at(5), Token: 1, Generation: 1, Actor: "ann"}
	retried := store.Attempt{Token: 1, Generation: 1, StartedAt: at(1), EndedAt: at(2), To: holdfast.Queued, Charge: store.ChargeFailure, DueAt: at(9)}
	stopped := store.Attempt{Token: 1, Generation: 1, StartedAt: at(1), EndedAt: at(6), To: holdfast.Cancelled}
	taken := store.Attempt{Token: 2, Generation: 1, StartedAt: at(1), EndedAt: at(6), To: holdfast.Queued, Charge: store.ChargeRelease, DueAt: at(6)}
	for _, c := range []struct {
		history store.History
		want    string
	}{
		{store.History{Job: holdfast.Job{State: holdfast.Cancelled, Token: 1, Generation: 1}, Attempts: []store.Attempt{retried}, Events: []store.Event{cancel}},
			"queued 1/0/0, processing 1/1/1, retry 1/1/1, cancelled 1/1/0"},
		{store.History{Job: holdfast.Job{State: holdfast.Cancelled, Token: 1, Generation: 1}, Attempts: []store.Attempt{stopped}, Events: []store.Event{cancel}},
			"queued 1/0/0, processing 1/1/1, cancel requested 1/1/0, cancelled 1/1/0"},
		{store.History{Job: holdfast.Job{State: holdfast.Processing, Token: 1, Generation: 1, StartedAt: at(1), Cancelling: true}, Events: []store.Event{cancel}},
			"queued 1/0/0, processing 1/1/1, cancel requested 1/1/0"},
		{store.History{Job: holdfast.Job{State: holdfast.Queued, Token: 2, Generation: 2}, Attempts: []store.Attempt{taken}, Events: []store.Event{cancel, {Name: "manual retry", At: at(6), Token: 2, Generation: 2}}},
			"queued 1/0/0, cancel requested 1/1/0, processing 1/2/1, released 1/2/1, manual retry 2/2/0"},
	} {
		if diff := cmp.Diff(c.want, summary(Story(c.history))); diff != "" {
			t.Error(diff)
		}
	}
}

func TestRedrivesAndLateStartsAreInTheStory(t *testing.T) {
	id := holdfast.NewID()
	lines := Story(store.History{
		Job: holdfast.Job{CreatedAt: at(0), State: holdfast.Queued, Token: 2, Generation: 2},
		Attempts: []store.Attempt{
			{Token: 1, Generation: 1, Worker: "w1", StartedAt: at(1), EndedAt: at(2), To: holdfast.Queued, Charge: store.ChargeFailure, DueAt: at(9)},
			{Token: 2, Generation: 1, Worker: "w1", StartedAt: at(9), EndedAt: at(10), To: holdfast.Failed, Charge: store.ChargeFailure},
		},
		Events: []store.Event{
			{Name: "deadline missed", At: at(8), Token: 1, Generation: 1, Actor: "holdfast", Reason: "its next attempt did not start by then"},
			{Name: "redrive", At: at(20), Token: 2, Generation: 2, Actor: "ann", Reason: id.String() + ": repaired"},
		},
	})
	want := "queued 1/0/0, processing 1/1/1, retry 1/1/1, deadline missed 1/1/0, processing 1/2/2, failed 1/2/2, redrive 2/2/0"
	if diff := cmp.Diff(want, summary(lines)); diff != "" {
		t.Error(diff)
	}
	if text := lines[6].Text; text != "redriven by ann in redrive "+id.String()+": repaired" {
		t.Errorf("the redrive line is %q", text)
	}
	if text := lines[3].Text; text != "retry_within was exceeded: its next attempt did not start by then" {
		t.Errorf("the line is %q", text)
	}
	if text := redriven(store.Event{Actor: "ann", Reason: "by hand"}); text != "redriven by ann: by hand" {
		t.Errorf("the line of a redrive without an id is %q", text)
	}
}

func TestAThrottleHasItsErrorAndUnrecordedReleasesAreCounted(t *testing.T) {
	limited := &holdfast.Failure{Code: "RATE_LIMITED", Message: "A service asked us to come back later.", Context: map[string]string{"throttled": "1m30s"}}
	probe := &holdfast.Failure{Code: "HTTP_5XX"}
	lines := Story(store.History{
		Job: holdfast.Job{CreatedAt: at(0), State: holdfast.Complete, Token: 33, Generation: 1, StartedAt: at(200), FinishedAt: at(201), Releases: 32},
		Attempts: []store.Attempt{
			{Token: 1, Generation: 1, Worker: "w1", StartedAt: at(1), EndedAt: at(2), To: holdfast.Queued, Charge: store.ChargeRelease, DueAt: at(92), Failure: limited, Why: "throttled: waits 1m30s"},
			{Token: 31, Generation: 1, Worker: "w1", StartedAt: at(100), EndedAt: at(101), To: holdfast.Queued, Charge: store.ChargeRelease, DueAt: at(150), Failure: limited, Repeats: 29, Since: at(3)},
			{Token: 32, Generation: 1, Worker: "w1", StartedAt: at(160), EndedAt: at(161), To: holdfast.Queued, Charge: store.ChargeRelease, DueAt: at(190), Failure: probe},
		},
	})
	want := "queued 1/0/0, processing 1/1/1, throttled 1/1/1, processing 1/31/31, throttled 1/31/31, processing 1/32/32, released 1/32/32, processing 1/33/33, complete 1/33/33"
	if diff := cmp.Diff(want, summary(lines)); diff != "" {
		t.Error(diff)
	}
	for n, want := range map[int]string{
		2: "throttled with RATE_LIMITED (A service asked us to come back later.), next attempt at 2026-05-04 12:01:32.000: throttled: waits 1m30s",
		4: "throttled with RATE_LIMITED (A service asked us to come back later.), next attempt at 2026-05-04 12:02:30.000 (the last of 30 releases in a row since 2026-05-04 12:00:03.000; the others are not recorded one by one)",
		6: "released with HTTP_5XX, next attempt at 2026-05-04 12:03:10.000",
	} {
		if lines[n].Text != want {
			t.Errorf("line %d: %s", n, lines[n].Text)
		}
	}
}

func TestALateResultOfTheAttemptThatEndedTheJobIsNoLostLease(t *testing.T) {
	panicked := &holdfast.Failure{Code: "SYSTEM_PANIC"}
	history := store.History{
		Job: holdfast.Job{CreatedAt: at(0), State: holdfast.Complete, Token: 2, Generation: 1, StartedAt: at(5), FinishedAt: at(6), Worker: "w1"},
		Attempts: []store.Attempt{
			{Token: 1, Generation: 1, Worker: "w1", StartedAt: at(1), EndedAt: at(4), To: holdfast.Queued, Charge: store.ChargeCrash},
			{Token: 1, Generation: 1, Worker: "w1", StartedAt: at(1), EndedAt: at(5), To: holdfast.Complete, Late: true},
			{Token: 2, Generation: 1, Worker: "w1", StartedAt: at(5), EndedAt: at(7), To: holdfast.Failed, Failure: panicked, Late: true},
		},
	}
	var late []string
	for _, line := range Story(history) {
		if line.Name == "late result" {
			late = append(late, line.Text)
		}
	}
	want := []string{
		"a worker that had lost the lease reported complete: recorded, not applied",
		"its attempt had already ended the job, and then the worker reported failed SYSTEM_PANIC: recorded, not applied",
	}
	if diff := cmp.Diff(want, late); diff != "" {
		t.Error(diff)
	}
}
