package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

var errQuota = errors.New("100 calls a minute are allowed")

func TestAThrottledJobWaitsSpendsNothingAndKeepsItsError(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		var throttled, failed atomic.Int32
		ended := func(end engine.AttemptEnd) {
			if end.Throttled {
				throttled.Add(1)
			}
		}
		hook := func(context.Context, holdfast.Job, holdfast.Failure) { failed.Add(1) }
		s.startWorker(engine.Config{OnAttemptEnd: ended, OnJobFailed: hook}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			if runs.mark() <= 10 {
				return &failure.HTTPError{Status: 429, RetryAfter: 90 * time.Second, Err: errQuota}
			}
			return nil
		}, engine.KindOptions{Dependency: "gateway", Policy: failure.Policy{MaxAttempts: 1, Throttle: failure.ThrottleFree}}))
		id := s.enqueue()
		s.waitUntil("the second call", func() bool { return runs.count() == 2 })
		if gap := runs.at[1].Sub(runs.at[0]); gap < 90*time.Second || gap > 92*time.Second {
			t.Errorf("asked to wait 90 s, it waited %v", gap)
		}
		job := s.job(id)
		expect(s, "code", code(job), "RATE_LIMITED")
		for job.State == holdfast.Queued || job.State == holdfast.Processing {
			time.Sleep(time.Minute)
			job = s.job(id)
		}
		synctest.Wait()
		expect(s, "state", job.State, holdfast.Complete)
		expect(s, "failures, crashes and releases", [3]int{job.Failures, job.Crashes, job.Releases}, [3]int{0, 0, 10})
		attempts := s.attempts(id)
		expect(s, "attempts on record", len(attempts), 10)
		expect(s, "why", attempts[0].Why, "classified RATE_LIMITED by HTTP status 429; throttled: waits 1m30s by the other side's Retry-After; no attempt spent")
		expect(s, "detail", attempts[0].Failure.Detail, "HTTP status 429: 100 calls a minute are allowed")
		expect(s, "throttled attempts passed to Ended", throttled.Load(), 10)
		expect(s, "calls of Failed", failed.Load(), 0)
		groups, _, err := s.store.ErrorGroups(context.Background(), store.ErrorFilter{})
		if err != nil || len(groups) != 0 {
			t.Errorf("error groups %+v: %v", groups, err)
		}
		records, err := s.store.Records(context.Background(), "breaker")
		if err != nil || len(records) != 1 || !strings.Contains(string(records[0].Body), `"recent":".",`) {
			t.Errorf("the breaker saw another call than the last one, which went well: %+v: %v", records, err)
		}
	})
}

func TestAJobThatIsThrottledForEverFailsAtItsLimitWithItsCode(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		s.startWorker(engine.Config{}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			runs.mark()
			return failure.Throttled(failure.WithCode(errQuota, "RATE_LIMITED"), 10*time.Second)
		}, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 1, GiveUpAfter: 25 * time.Minute}}))
		id := s.enqueue()
		start := time.Now()
		for s.job(id).State != holdfast.Failed && time.Since(start) < time.Hour {
			time.Sleep(time.Minute)
		}
		job := s.job(id)
		age := job.FinishedAt.Sub(job.CreatedAt)
		if job.State != holdfast.Failed || code(job) != "RATE_LIMITED" || age > 25*time.Minute || age < 24*time.Minute {
			t.Errorf("%s with %s at the age of %v", job.State, code(job), age)
		}
		expect(s, "failures", job.Failures, 0)
		attempts := s.attempts(id)
		if len(attempts) > 102 || job.Releases < 110 {
			t.Errorf("%d lines for %d releases", len(attempts), job.Releases)
		}
		lines := len(attempts)
		for _, a := range attempts {
			lines += a.Repeats
		}
		expect(s, "lines with what they stand for", lines, job.Releases+1)
	})
}

func TestAThrottleSpendsNothingOfItsOwnersBudget(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		text := `owners: {acme: {budget: {retries_per_day: 2, cost_per_day: 3}}}
kinds: {note: {cost: 1}}`
		s.startWorker(engine.Config{Policies: set(s, text)}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			switch n := runs.mark(); {
			case n == 1:
				return errFailed
			case n <= 20:
				return failure.Throttled(errQuota, 10*time.Second)
			}
			return nil
		}))
		id := s.enqueue(func(d *holdfast.Draft) { d.Owner = "acme" })
		job := s.waitForState(id, holdfast.Complete)
		expect(s, "failures and releases", [2]int{job.Failures, job.Releases}, [2]int{1, 19})
		s.waitUntil("the account is written", func() bool { return len(s.accounts()) == 1 })
		var account struct {
			Retries int
			Cost    float64
		}
		time.Sleep(time.Minute)
		if err := json.Unmarshal(s.accounts()[0].Body, &account); err != nil {
			t.Fatal(err)
		}
		if account.Retries != 1 || account.Cost != 2 {
			t.Errorf("the owner paid for %+v, want one retry and two attempts", account)
		}
	})
}

// accounts returns the records of the accounts of owners.
func (s *harness) accounts() []store.Record {
	s.Helper()
	records, err := s.store.Records(context.Background(), "budget")
	if err != nil {
		s.Fatal(err)
	}
	return records
}
