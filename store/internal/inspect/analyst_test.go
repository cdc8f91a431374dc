package inspect

import (
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

func TestAJobThatWasSetAsideIsQueuedAndDueWhenItWas(t *testing.T) {
	s, i := openHealthy(t)
	s.plant(script(setAside))
	job, err := i.Job(t.Context(), id(1))
	if err != nil || job.State != holdfast.Queued || !job.DueAt.Equal(noon.Add(-9*time.Second)) {
		t.Errorf("%s, due %v, error %v", job.State, job.DueAt, err)
	}
	if jobs, _, err := i.Jobs(t.Context(), store.Filter{State: holdfast.Queued, Owner: "ann"}); err != nil || !slices.Equal(numbers(jobs), []int{1}) {
		t.Errorf("listed %v, error %v", numbers(jobs), err)
	}
	counts, err := i.Counts(t.Context())
	due := slices.IndexFunc(counts, func(c store.Count) bool { return c.Due })
	if err != nil || due < 0 || counts[due].Jobs != 1 || counts[due].Kind != "mail" {
		t.Errorf("counts %+v, error %v", counts, err)
	}
}

func TestARetryIsFoundInItsLine(t *testing.T) {
	s, i := openHealthy(t)
	s.plant(script(retried))
	job, err := i.Job(t.Context(), id(2))
	if err != nil || job.State != holdfast.Queued || job.Failures != 1 || !job.DueAt.Equal(noon.Add(-time.Microsecond)) {
		t.Errorf("%+v, error %v", job, err)
	}
	for _, f := range []store.Filter{
		{State: holdfast.Queued, Owner: "bob"}, {State: holdfast.Queued, Kind: "mail", Code: "GW_5XX"}, {State: holdfast.Queued, Dependency: "gateway", Owner: "bob"},
	} {
		if jobs, _, err := i.Jobs(t.Context(), f); err != nil || !slices.Equal(numbers(jobs), []int{2}) {
			t.Errorf("%+v: listed %v, error %v", f, numbers(jobs), err)
		}
	}
	// Older jobs come first, whatever their owner and line.
	if ahead, err := i.Ahead(t.Context(), id(2)); err != nil || ahead != 1 {
		t.Errorf("%d ahead of it, error %v", ahead, err)
	}
	s.plant(script("INSERT INTO holdfast_redriven (redrive, job, generation, at) VALUES (R1, J2, 1, NOON), (R1, J1, 1, NOON), (R1, J3, 1, NOON)"))
	if jobs, _, err := i.Jobs(t.Context(), store.Filter{Redrive: id(101), State: holdfast.Processing}); err != nil || !slices.Equal(numbers(jobs), []int{3}) {
		t.Errorf("in workers' hands of a redrive %v, error %v", numbers(jobs), err)
	}
	if jobs, _, err := i.Jobs(t.Context(), store.Filter{Redrive: id(101), State: holdfast.Queued}); err != nil || !slices.Equal(numbers(jobs), []int{2, 1}) {
		t.Errorf("of a redrive %v, error %v", numbers(jobs), err)
	}
}

func TestANamespaceIsReadByName(t *testing.T) {
	_, i := openHealthy(t)
	records, err := i.Records(t.Context(), "breaker")
	want := []store.Record{
		{Namespace: "breaker", Name: "Zoo", Version: 1, Body: []byte("{}"), KeptAt: noon, AsOf: noon},
		{Namespace: "breaker", Name: "gateway", Version: 3, Body: []byte(`{"state":"half-open"}`), KeptAt: noon.Add(-time.Second), AsOf: noon},
	}
	if diff := cmp.Diff(want, records); diff != "" || err != nil {
		t.Errorf("error %v, difference %s", err, diff)
	}
	if records, err := i.Records(t.Context(), "empty"); err != nil || len(records) != 0 {
		t.Errorf("an empty namespace: %v, error %v", records, err)
	}
}

func TestTheStoryOfASubjectIsTheNewestFirst(t *testing.T) {
	_, i := openHealthy(t)
	events, err := i.Events(t.Context(), "breaker/gateway", 10)
	want := []store.Event{
		{Subject: "breaker/gateway", At: noon.Add(-time.Second), Name: "half-open", Actor: "holdfast"},
		{Subject: "breaker/gateway", At: noon.Add(-5 * time.Second), Name: "opened", Actor: "holdfast", Reason: "ten of twenty failed"},
	}
	if diff := cmp.Diff(want, events); diff != "" || err != nil {
		t.Errorf("error %v, difference %s", err, diff)
	}
	if events, err := i.Events(t.Context(), "breaker/gateway", 1); err != nil || len(events) != 1 || events[0].Name != "half-open" {
		t.Errorf("one of them: %v, error %v", events, err)
	}
	for _, subject := range []string{"", "\xff", "a\x00b"} {
		if _, err := i.Events(t.Context(), subject, 1); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%q: %v", subject, err)
		}
	}
}

func TestAnErrorGroupTellsWhereAndHowOftenOfLate(t *testing.T) {
	_, i := openHealthy(t)
	groups, cursor, err := i.ErrorGroups(t.Context(), store.ErrorFilter{Fingerprint: "f2"})
	want := []store.ErrorGroup{{
		Fingerprint: "f2", Code: "GW_5XX", Category: "dependency", Message: "the gateway failed", Detail: "in detail", Failures: 10,
		FirstSeen: noon.Add(-10 * day), LastSeen: noon.Add(-time.Minute),
		Kinds: []string{"mail", "report"}, Queues: []string{"bulk", "default"}, Dependencies: []string{"gateway"}, Versions: []string{"v1", "v2"},
		LastHour: 4, Last3Hours: 5, LastDay: 6, LastWeek: 8, Status: store.StatusAcknowledged, Actor: "ann", Reason: "on it",
	}}
	if diff := cmp.Diff(want, groups); diff != "" || err != nil || cursor != "" {
		t.Errorf("cursor %q, error %v, difference %s", cursor, err, diff)
	}
}

func TestErrorGroupsAreTheLastSeenFirstAndCanBeNarrowed(t *testing.T) {
	_, i := openHealthy(t)
	for _, c := range []struct {
		filter store.ErrorFilter
		want   []string
	}{
		{store.ErrorFilter{}, []string{"f8 resolved", "f5 open", "f4 ignored", "f3 open", "f2 acknowledged"}},
		{store.ErrorFilter{Status: store.StatusOpen}, []string{"f5 open", "f3 open"}},
		{store.ErrorFilter{Status: store.StatusIgnored}, []string{"f4 ignored"}},
		{store.ErrorFilter{Status: store.StatusRegressed}, nil},
		{store.ErrorFilter{Code: "GW_5XX"}, []string{"f5 open", "f2 acknowledged"}},
		{store.ErrorFilter{Kind: "report"}, []string{"f2 acknowledged"}},
		{store.ErrorFilter{Kind: "old"}, nil},
		{store.ErrorFilter{Kind: "mail", Status: store.StatusResolved, Code: "BAD", Fingerprint: "f8"}, []string{"f8 resolved"}},
		{store.ErrorFilter{Code: "' OR 1=1 --"}, nil},
	} {
		for _, c.filter.Limit = range []int{0, 1, 2, 100000} {
			var told []string
			for c.filter.Cursor = ""; ; {
				groups, next, err := i.ErrorGroups(t.Context(), c.filter)
				if err != nil || c.filter.Limit > 0 && len(groups) > c.filter.Limit {
					t.Fatalf("%+v: %d groups, error %v", c.filter, len(groups), err)
				}
				for _, g := range groups {
					told = append(told, g.Fingerprint+" "+string(g.Status))
				}
				if c.filter.Cursor = next; next == "" {
					break
				}
			}
			if diff := cmp.Diff(c.want, told); diff != "" {
				t.Errorf("%+v: %s", c.filter, diff)
			}
		}
	}
	for _, f := range []store.ErrorFilter{{Status: "fixed"}, {Limit: -1}, {Cursor: "?"}, {Cursor: "AAAA"}, {Kind: "\xff"}, {Code: "a\x00b"}, {Cursor: strings.Repeat("_", 24)}} {
		if _, _, err := i.ErrorGroups(t.Context(), f); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%+v was answered with %v", f, err)
		}
	}
}

func TestRetryStatsAddUp(t *testing.T) {
	s, i := openHealthy(t)
	// Job 2 expires before its retry; job 3 completes at its third attempt.
	s.plant(script(`
DELETE FROM holdfast_later WHERE job = J2;
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, code) VALUES (J2, 2, 1, 'w1', NOON - 100, NOON - 100, 'failed', 'JOB_EXPIRED');
INSERT INTO holdfast_attempt (job, token, generation, worker, started_at, ended_at, to_state, charge, due_at) VALUES (J3, 3, 1, 'w1', NOON - 100, NOON - 100, 'queued', 'release', NOON);
INSERT INTO holdfast_finished (job, token, failures, crashes, releases, generation, finished_at, state, worker, code) VALUES
 (J2, 2, 1, 0, 0, 1, NOON - 100, 'failed', 'w1', 'JOB_EXPIRED'), (J3, 4, 1, 1, 1, 1, NOON, 'complete', 'w1', NULL);
DELETE FROM holdfast_batch`))
	tell := func(within time.Duration) (told []string) {
		t.Helper()
		all, err := i.RetryStats(t.Context(), within)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			told = append(told, fmt.Sprintf("%s %s %d: %d, complete %d, again %d, gave up %d, took %v, wasted %v", e.Kind, e.Code, e.Number, e.Attempts, e.Complete, e.Again, e.GaveUp, e.Took, e.Wasted))
		}
		return told
	}
	want := []string{
		"mail  0: 5, complete 0, again 0, gave up 0, took 0s, wasted 0s",
		"mail BAD 1: 2, complete 0, again 0, gave up 2, took 200ms, wasted 100ms",
		"mail GW_5XX 1: 1, complete 0, again 0, gave up 1, took 100ms, wasted 100ms",
		"mail GW_5XX 2: 1, complete 0, again 0, gave up 1, took 100ms, wasted 100ms",
		"mail LOST_WORKER 1: 1, complete 1, again 0, gave up 0, took 90ms, wasted 0s",
		"mail TIMEOUT 1: 2, complete 0, again 2, gave up 0, took 200ms, wasted 100ms",
		"report  0: 1, complete 1, again 0, gave up 0, took 0s, wasted 0s",
	}
	if diff := cmp.Diff(want, tell(time.Hour)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"mail  0: 1, complete 0, again 0, gave up 0, took 0s, wasted 0s", "mail BAD 1: 1, complete 0, again 0, gave up 1, took 100ms, wasted 0s",
	}, tell(1500*time.Millisecond)); diff != "" {
		t.Errorf("of the last job: %s", diff)
	}
	if _, err := i.RetryStats(t.Context(), 0); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("within no time: %v", err)
	}
}

func TestTheFirstIDIsBeforeAllThatWereMadeSince(t *testing.T) {
	s, i := openHealthy(t)
	// The inserted ids were made in 2004 by their clock: all jobs of the last hour are still found.
	first, err := i.firstID(t.Context(), noon.Add(-time.Hour))
	if mine := id(1); err != nil || slices.Compare(first[:], mine[:]) >= 0 {
		t.Errorf("the first id %v, error %v", first, err)
	}
	// A clock that is ahead, or an id of another version, is ignored.
	for _, newest := range []string{"x'ffffffffffff70008000000000000000'", "x'ffffffffffff40008000000000000000'"} {
		s.plant("UPDATE holdfast_job SET id = " + newest + " WHERE id = (SELECT max(id) FROM holdfast_job)")
		first, err = i.firstID(t.Context(), noon)
		if made := noon.Add(-skew).UnixMilli(); err != nil || !strings.HasPrefix(first.String(), fmt.Sprintf("%08x-%04x-0000", made>>16, made&0xffff)) {
			t.Errorf("beside %s the first id is %v, error %v", newest, first, err)
		}
	}
}

func TestBehindCountsJobsThatAHoldKeepsBack(t *testing.T) {
	s, i := openHealthy(t)
	s.plant(script(retried))
	s.plant(script("INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation) VALUES (5, 0, J4, 0, 0, 0, 0, 1)"))
	check := func(h store.Hold, want int) {
		t.Helper()
		if got, err := i.CountHeld(t.Context(), h); err != nil || got != want {
			t.Errorf("%+v: %d behind it, expected %d, error %v", h, got, want, err)
		}
	}
	check(store.Hold{Queue: "default"}, 2)
	check(store.Hold{Queue: "default", Retries: true}, 1)
	check(store.Hold{Queue: "bul*"}, 1)
	check(store.Hold{Queue: "*"}, 3)
	check(store.Hold{Queue: "bul%"}, 0)
	check(store.Hold{Kind: "mail"}, 2)
	check(store.Hold{Owner: "ann"}, 1)
	check(store.Hold{Owner: "*"}, 2) // jobs without an owner are not covered
	check(store.Hold{Dependency: "gateway"}, 2)
	check(store.Hold{Dependency: "gate*", Retries: true}, 1)
	check(store.Hold{Dependency: "printer"}, 1)
	check(store.Hold{Tag: "blue"}, 0)
	s.plant(script(setAside))
	check(store.Hold{Tag: "blue"}, 1)
	check(store.Hold{Owner: "ann"}, 0)
	s.plant(`
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
INSERT INTO holdfast_ready (lane, priority, job, token, failures, crashes, releases, generation) SELECT -4, 0, unhex(printf('%032x', i)), 1, 1, 0, 0, 1 FROM n`)
	check(store.Hold{Owner: "b*", Retries: true}, 10_000)
	for _, h := range []store.Hold{{}, {Queue: "\xff"}} {
		if _, err := i.CountHeld(t.Context(), h); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%+v: %v", h, err)
		}
	}
}
