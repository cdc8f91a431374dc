package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

var all9 = store.Filter{}

func openHealthy(t *testing.T) (*tables, *Inspector) {
	s := openTables(t)
	s.plant(script(healthy))
	return s, New(s, SQLite)
}

func TestAFilterNarrowsTheList(t *testing.T) {
	_, i := openHealthy(t)
	for _, c := range []struct {
		filter store.Filter
		want   []int
	}{
		{store.Filter{}, []int{9, 8, 7, 6, 5, 4, 3, 2, 1}},
		{store.Filter{State: holdfast.Queued}, []int{7, 2, 1}},
		{store.Filter{State: holdfast.Processing}, []int{3}},
		{store.Filter{State: holdfast.Complete}, []int{9, 4}},
		{store.Filter{State: holdfast.Failed}, []int{8, 5}},
		{store.Filter{State: holdfast.Cancelled}, []int{6}},
		{store.Filter{DeadLetters: true}, []int{5}},
		{store.Filter{DeadLetters: true, State: holdfast.Failed, Kind: "mail"}, []int{5}},
		{store.Filter{DeadLetters: true, State: holdfast.Queued}, nil},
		{store.Filter{Kind: "report"}, []int{7, 6, 4}},
		{store.Filter{Queue: "bulk", State: holdfast.Queued}, []int{7}},
		{store.Filter{Queue: "bulk", Kind: "mail"}, nil},
		{store.Filter{Queue: "default", Kind: "mail", State: holdfast.Queued}, []int{2, 1}},
		{store.Filter{Owner: "ann"}, []int{5, 1}},
		{store.Filter{Owner: "ann", State: holdfast.Failed}, []int{5}},
		{store.Filter{Tag: "red"}, []int{3, 1}},
		{store.Filter{Tag: "re"}, nil},
		{store.Filter{Code: "GW_5XX"}, []int{5, 2}},
		{store.Filter{Code: "GW_5XX", State: holdfast.Queued}, []int{2}},
		{store.Filter{Code: "TIMEOUT"}, nil}, // job 3 failed otherwise since
		{store.Filter{Code: "LOST_WORKER", State: holdfast.Processing}, []int{3}},
		{store.Filter{Code: "BAD"}, []int{8}}, // job 9 is complete
		{store.Filter{Code: "BAD", State: holdfast.Complete}, nil},
		{store.Filter{Fingerprint: "f5"}, []int{5}},
		{store.Filter{Fingerprint: "f5", Code: "BAD"}, nil},
		{store.Filter{OlderThan: 8 * time.Second}, []int{2, 1}},
		{store.Filter{NewerThan: 2 * time.Second}, []int{9}},
		{store.Filter{OlderThan: 2 * time.Second, NewerThan: 5 * time.Second, State: holdfast.Queued}, []int{7}},
		{store.Filter{Kind: "' OR 1=1 --"}, nil},
		{store.Filter{Dependency: "gateway"}, []int{9, 8, 5, 3, 2, 1}},
		{store.Filter{Dependency: "gateway", State: holdfast.Queued}, []int{2, 1}},
		{store.Filter{Dependency: "gateway", DeadLetters: true}, []int{5}},
		{store.Filter{Dependency: "printer"}, []int{4}},
		{store.Filter{Owner: "ann", State: holdfast.Queued}, []int{1}},
		{store.Filter{Generation: 2}, []int{9}},
		{store.Filter{Generation: 1}, []int{8, 7, 6, 5, 4, 3, 2, 1}},
		{store.Filter{Generation: 1, State: holdfast.Queued}, []int{7, 2, 1}},
		{store.Filter{Generation: 2, DeadLetters: true}, nil},
		{store.Filter{Redrive: id(101)}, []int{9}},
		{store.Filter{Redrive: id(101), State: holdfast.Complete, Kind: "mail", Generation: 2}, []int{9}},
		{store.Filter{Redrive: id(101), State: holdfast.Queued}, nil},
		{store.Filter{Redrive: id(101), State: holdfast.Processing}, nil},
		{store.Filter{Redrive: id(102)}, nil},
	} {
		jobs, cursor, err := i.Jobs(t.Context(), c.filter)
		if err != nil || cursor != "" {
			t.Errorf("%+v: cursor %q, error %v", c.filter, cursor, err)
		}
		if diff := cmp.Diff(c.want, numbers(jobs)); diff != "" {
			t.Errorf("%+v: %s", c.filter, diff)
		}
	}
}

func TestPagesCoverTheListOnce(t *testing.T) {
	_, i := openHealthy(t)
	for _, filter := range []store.Filter{{}, {State: holdfast.Queued}, {Code: "GW_5XX"}, {State: holdfast.Failed}} {
		whole, _, err := i.Jobs(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		for filter.Limit = 1; filter.Limit <= len(whole)+1; filter.Limit++ {
			var got []holdfast.Job
			filter.Cursor = ""
			for {
				page, next, err := i.Jobs(t.Context(), filter)
				if err != nil || len(page) > filter.Limit {
					t.Fatalf("a page of %d: %d jobs, error %v", filter.Limit, len(page), err)
				}
				got = append(got, page...)
				if filter.Cursor = next; next == "" {
					break
				}
			}
			if diff := cmp.Diff(numbers(whole), numbers(got)); diff != "" {
				t.Errorf("pages of %d: %s", filter.Limit, diff)
			}
		}
	}
}

func TestAFilterThatMeansNothingIsRefused(t *testing.T) {
	_, i := openHealthy(t)
	for _, filter := range []store.Filter{
		{State: "done"}, {Limit: -1}, {Cursor: "?"}, {Cursor: "AAAA"}, {Cursor: strings.Repeat("A", 22)}, {OlderThan: -1}, {NewerThan: -1}, {Generation: -1}, {Dependency: "\xff"},
		{Kind: "a\x00b"}, {Owner: "\xff"}, {Cursor: strings.Repeat("x", 5000)},
	} {
		if _, _, err := i.Jobs(t.Context(), filter); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%+v was answered with %v", filter, err)
		}
	}
	if jobs, _, err := i.Jobs(t.Context(), store.Filter{Limit: 100000}); err != nil || len(jobs) != 9 {
		t.Errorf("a limit beyond the largest page: %d jobs, %v", len(jobs), err)
	}
}

func TestAJobIsReadWhole(t *testing.T) {
	_, i := openHealthy(t)
	want := holdfast.Job{
		ID: id(3), Kind: "mail", Queue: "default", Args: json.RawMessage(`{"to":3}`), Tags: []string{"red"}, Dependency: "gateway", CreatedAt: noon.Add(-7 * time.Second),
		State: holdfast.Processing, Token: 3, Failures: 1, Crashes: 1, Generation: 1,
		Worker: "w1", LeaseUntil: noon.Add(9500 * time.Millisecond), StartedAt: noon.Add(-500 * time.Millisecond),
		Progress:    &holdfast.Progress{Percent: 42.5, Note: "half way", At: noon.Add(-100 * time.Millisecond)},
		LastFailure: &holdfast.Failure{Code: "LOST_WORKER", Category: "lost", Message: "its worker was lost", Fingerprint: "f4"},
		AsOf:        noon,
	}
	got, err := i.Job(t.Context(), id(3))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, difference %s", err, diff)
	}
	waiting, _ := i.Job(t.Context(), id(2))
	if !waiting.DueAt.Equal(noon.Add(time.Second)) || waiting.RetryWithin != 90*time.Second || waiting.LastFailure.Context["http_status"] != "502" {
		t.Errorf("a job that waits for its retry: %+v", waiting)
	}
	complete, _ := i.Job(t.Context(), id(4))
	if string(complete.Result) != `{"ok":true}` || complete.Dependency != "printer" || complete.LastFailure != nil || !complete.FinishedAt.Equal(noon.Add(-200*time.Millisecond)) {
		t.Errorf("a complete job: %+v", complete)
	}
	discarded, _ := i.Job(t.Context(), id(8))
	if !discarded.Discarded || discarded.LastFailure.Code != "BAD" {
		t.Errorf("a discarded job: %+v", discarded)
	}
	if _, err := i.Job(t.Context(), id(77)); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("an unknown job: %v", err)
	}
}

func TestADamagedRowIsListedAndCanBeWrittenAsJSON(t *testing.T) {
	s, i := openHealthy(t)
	s.plant(script(`
UPDATE holdfast_job SET args = '{"broken', tags = 'x' WHERE id = J1;
UPDATE holdfast_job SET args = hex(zeroblob(5000000)), tags = '{}' WHERE id = J2;
UPDATE holdfast_attempt SET context = '[1' WHERE job = J2;
UPDATE holdfast_finished SET result = '{' WHERE job = J4;
DELETE FROM holdfast_finished WHERE job = J5;
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation) VALUES (2, 0, J4, 0, 0, 0, 0, 1)`))
	for _, filter := range []store.Filter{{}, {State: holdfast.Queued}, {Tag: "red"}, {Code: "GW_5XX"}} {
		jobs, _, err := i.Jobs(t.Context(), filter)
		if err != nil {
			t.Fatalf("%+v: %v", filter, err)
		}
		if _, err := json.Marshal(jobs); err != nil {
			t.Errorf("%+v cannot be written: %v", filter, err)
		}
	}
}

func TestTheHistoryOfAJobIsInOrderAndNamesTheLate(t *testing.T) {
	_, i := openHealthy(t)
	history, err := i.History(t.Context(), id(3))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, a := range history.Attempts {
		told = append(told, fmt.Sprintf("%d %s %s late=%v %s gen %d", a.Token, a.To, a.Charge, a.Late, a.Worker, a.Generation))
	}
	want := []string{"1 queued failure late=false w1 gen 1", "1 complete  late=true w1 gen 1", "2 queued crash late=false w0 gen 1"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	if late := history.Attempts[1]; late.EndedAt.Sub(late.StartedAt) != 250*time.Millisecond {
		t.Errorf("the late result took %v", late.EndedAt.Sub(late.StartedAt))
	}
	retried, err := i.History(t.Context(), id(9))
	if err != nil || len(retried.Events) != 1 || retried.Events[0].Actor != "ann" || retried.Events[0].Generation != 2 {
		t.Errorf("history %+v, error %v", retried, err)
	}
	if _, err := i.History(t.Context(), id(77)); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("an unknown job: %v", err)
	}
}

func TestOnlyHoldsAndWorkersInForceAreListed(t *testing.T) {
	_, i := openHealthy(t)
	holds, err := i.Holds(t.Context())
	want := []store.Hold{
		{Dependency: "gateway", Source: "breaker", Retries: true, AtMost: 2, Rate: &store.Rate{PerSecond: 0.5, Burst: 10, Level: 5}, Since: noon.Add(-5 * time.Second), Expected: noon.Add(time.Second), Actor: "holdfast", Reason: "half-open"},
		{Kind: "mail", Source: "limit", AtMost: 1, Since: noon.Add(-20 * time.Second), Actor: "holdfast"},
		{Kind: "report", Source: "operator", Since: noon.Add(-time.Millisecond), Until: noon.Add(time.Millisecond), Actor: "bob"},
		{Owner: "a*", Source: "limit", AtMost: 4, Since: noon.Add(-time.Millisecond), Actor: "holdfast"},
		{Queue: "bulk", Source: "operator", Since: noon.Add(-time.Millisecond), Actor: "ann", Reason: "too much"},
	}
	if diff := cmp.Diff(want, holds); diff != "" || err != nil {
		t.Errorf("error %v, difference %s", err, diff)
	}
	workers, err := i.Workers(t.Context())
	if err != nil || len(workers) != 1 || workers[0].Worker != "w1" || !slices.Equal(workers[0].Kinds, []string{"mail"}) {
		t.Errorf("workers %+v, error %v", workers, err)
	}
}

func TestEveryJobIsCountedOnce(t *testing.T) {
	_, i := openHealthy(t)
	counts, err := i.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, c := range counts {
		told = append(told, fmt.Sprintf("%s %s %s due=%v %d %v", c.Queue, c.Kind, c.State, c.Due, c.Jobs, noon.Sub(c.Oldest)))
	}
	want := []string{
		"bulk report cancelled due=false 1 4s", "bulk report complete due=false 1 6s", "bulk report queued due=false 1 3s",
		"default mail complete due=false 1 1s", "default mail failed due=false 2 5s", "default mail processing due=false 1 7s",
		"default mail queued due=false 1 8s", "default mail queued due=true 1 9s",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

func TestAheadCountsTheQueueUpToAThousand(t *testing.T) {
	s, i := openHealthy(t)
	ahead := func(n int) int {
		t.Helper()
		got, err := i.Ahead(t.Context(), id(n))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if first, second, other, ended := ahead(1), ahead(2), ahead(7), ahead(4); first != 0 || second != 1 || other != 0 || ended != 0 {
		t.Errorf("ahead of the first %d, of one that waits for its retry %d, in another queue %d, of a complete job %d", first, second, other, ended)
	}
	s.plant(script(`
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation) SELECT 1, -1, unhex(printf('%032x', i)), 0, 0, 0, 0, 1 FROM n`))
	if got := ahead(1); got != 1000 {
		t.Errorf("ahead of a job behind fifteen hundred: %d", got)
	}
	if _, err := i.Ahead(t.Context(), id(77)); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("an unknown job: %v", err)
	}
}

func numbers(jobs []holdfast.Job) (numbers []int) {
	for _, job := range jobs {
		numbers = append(numbers, int(job.ID[15]))
	}
	return numbers
}
