package holdfasttest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/holdfasttest"
	"github.com/holdfastdev/holdfast/store"
)

type parcel struct {
	Address string `json:"address"`
	Weight  int    `json:"weight"`
}

func (parcel) Kind() string { return "parcel" }

var home = parcel{Address: "1 Main Street", Weight: 3}

func TestWorkReturnsWhatTheHandlerWrote(t *testing.T) {
	attempt := holdfasttest.Work(t, func(ctx context.Context, job *engine.Job[parcel]) error {
		job.Log().Info("weighed", "weight", job.Args.Weight)
		if err := job.Progress(ctx, 50, "packed"); err != nil {
			return err
		}
		if err := job.Checkpoint(ctx, map[string]int{"step": 2}); err != nil {
			return err
		}
		job.Result(map[string]string{"tracking": "T-1"})
		return nil
	}, home)
	attempt.RequireComplete(t)
	var result struct{ Tracking string }
	attempt.RequireResult(t, &result)
	if result.Tracking != "T-1" || string(attempt.Checkpoint) != `{"step":2}` {
		t.Errorf("result %s, checkpoint %s", attempt.Result, attempt.Checkpoint)
	}
	if len(attempt.Progress) != 1 || attempt.Progress[0].Percent != 50 || attempt.Progress[0].Note != "packed" {
		t.Errorf("progress: %+v", attempt.Progress)
	}
	for _, part := range []string{"msg=weighed", "weight=3", "kind=parcel", "attempt=1", `msg="attempt ended"`} {
		if !strings.Contains(attempt.Log, part) {
			t.Errorf("the log lacks %s:\n%s", part, attempt.Log)
		}
	}
}

func TestWorkDecidesLikeAnEngine(t *testing.T) {
	policy := func(s *holdfasttest.Setup) {
		s.Options.Policy = failure.Policy{MaxAttempts: 3, Backoff: failure.Fixed(7 * time.Second)}
	}
	failures := func(n int) func(*holdfasttest.Setup) {
		return func(s *holdfasttest.Setup) { s.Job.Failures = n }
	}
	unavailable := func(context.Context, *engine.Job[parcel]) error { return &failure.HTTPError{Status: 503} }

	first := holdfasttest.Work(t, unavailable, home, policy)
	first.RequireRetry(t, first.Code())
	if first.Delay != 7*time.Second || first.Charge != store.ChargeFailure || first.Failure.Context["http_status"] != "503" {
		t.Errorf("first attempt: %+v", first)
	}
	last := holdfasttest.Work(t, unavailable, home, policy, failures(2))
	last.RequireFailed(t, first.Code())
	if !strings.Contains(last.Why, "3 of 3 attempts") {
		t.Errorf("why: %s", last.Why)
	}
	snoozed := holdfasttest.Work(t, func(context.Context, *engine.Job[parcel]) error { return failure.Snooze(time.Hour) }, home)
	if snoozed.State != holdfast.Queued || snoozed.Delay != time.Hour || snoozed.Charge != store.ChargeRelease || snoozed.Failure != nil {
		t.Errorf("snoozed: %+v", snoozed)
	}
	panicked := holdfasttest.Work(t, func(context.Context, *engine.Job[parcel]) error { panic("broken scale") }, home)
	if panicked.State != holdfast.Failed || !strings.Contains(panicked.Failure.Detail, "broken scale") {
		t.Errorf("panicked: %+v", panicked)
	}
	slow := holdfasttest.Work(t, func(ctx context.Context, _ *engine.Job[parcel]) error {
		<-ctx.Done()
		return ctx.Err()
	}, home, func(s *holdfasttest.Setup) { s.Options.Timeout = 10 * time.Millisecond })
	slow.RequireRetry(t, "TIMEOUT")
}

func TestWorkGivesTheHandlerItsSituation(t *testing.T) {
	created := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	holdfasttest.Work(t, func(_ context.Context, job *engine.Job[parcel]) error {
		var saved struct{ Step int }
		found, err := job.Resume(&saved)
		if err != nil || !found || saved.Step != 4 {
			t.Errorf("checkpoint: %v %v %+v", found, err, saved)
		}
		if job.Attempt() != 4 || job.Failures != 2 || job.Crashes != 1 || job.Owner != "acme" || !job.CreatedAt.Equal(created) || job.State != holdfast.Processing {
			t.Errorf("job: %+v", job.Lease)
		}
		return nil
	}, home, func(s *holdfasttest.Setup) {
		s.Job = holdfast.Job{Owner: "acme", Failures: 2, Crashes: 1, CreatedAt: created}
		s.Checkpoint = map[string]int{"step": 4}
	}).RequireComplete(t)
}

func TestWorkEndsTheContextWithTheCause(t *testing.T) {
	for _, c := range []struct {
		cause  error
		state  holdfast.State
		charge store.Charge
	}{
		{engine.ErrCancelled, holdfast.Cancelled, store.ChargeNone},
		{engine.ErrStopping, holdfast.Queued, store.ChargeRelease},
		{holdfast.ErrLeaseLost, holdfast.Processing, store.ChargeNone},
	} {
		var seen error
		attempt := holdfasttest.Work(t, func(ctx context.Context, _ *engine.Job[parcel]) error {
			<-ctx.Done()
			seen = context.Cause(ctx)
			return errors.New("interrupted")
		}, home, func(s *holdfasttest.Setup) { s.End, s.EndAfter = c.cause, time.Millisecond })
		if !errors.Is(seen, c.cause) || attempt.State != c.state || attempt.Charge != c.charge {
			t.Errorf("%v: the handler saw %v; %s, charge %q", c.cause, seen, attempt.State, attempt.Charge)
		}
	}
}

func TestMiddlewareRunsInWork(t *testing.T) {
	var order []string
	attempt := holdfasttest.Work(t, func(context.Context, *engine.Job[parcel]) error { order = append(order, "handler"); return nil }, home,
		func(s *holdfasttest.Setup) {
			s.Config.Middleware = []func(engine.Handler) engine.Handler{func(next engine.Handler) engine.Handler {
				return func(ctx context.Context, job *engine.Raw) error {
					order = append(order, "middleware of "+job.Kind)
					return next(ctx, job)
				}
			}}
		})
	attempt.RequireComplete(t)
	if got := strings.Join(order, ", "); got != "middleware of parcel, handler" {
		t.Errorf("order: %s", got)
	}
}

func TestARefusedRegistrationEndsTheTest(t *testing.T) {
	message := fatal(t, func(t testing.TB) {
		holdfasttest.Work(t, func(context.Context, *engine.Job[parcel]) error { return nil }, home,
			func(s *holdfasttest.Setup) { s.Options.Timeout = -1 })
	})
	if !strings.Contains(message, "Timeout is -1ns") {
		t.Errorf("message: %s", message)
	}
}

func TestAWrongExpectationShowsTheErrorTheReasonAndTheLog(t *testing.T) {
	attempt := holdfasttest.Work(t, func(_ context.Context, job *engine.Job[parcel]) error {
		job.Log().Info("asked the carrier")
		return errors.New("no carrier")
	}, home)
	message := fatal(t, func(t testing.TB) { attempt.RequireComplete(t) })
	for _, part := range []string{"want: complete", "got:  queued with UNKNOWN: no carrier", "why:", "asked the carrier"} {
		if !strings.Contains(message, part) {
			t.Errorf("the message lacks %q:\n%s", part, message)
		}
	}
}

func TestAJobLiteralNeverPanics(t *testing.T) {
	job := &engine.Job[parcel]{Args: home}
	ctx := t.Context()
	if err := errors.Join(job.Progress(ctx, 10, ""), job.Checkpoint(ctx, 1)); err != nil {
		t.Error(err)
	}
	if err := job.Progress(ctx, 101, ""); !errors.Is(err, holdfast.ErrInvalid) {
		t.Errorf("progress of 101 percent: %v", err)
	}
	job.Result("ok")
	job.SetDependency("scale")
	job.Log().Debug("nothing")
	if found, err := job.Resume(new(int)); found || err != nil || job.Attempt() != 1 || job.Failures != 0 || job.Owner != "" {
		t.Errorf("resume: %v %v", found, err)
	}
}

// fatal runs a check that must end its test, and returns its message.
func fatal(t *testing.T, check func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(r)
	}()
	<-done
	if !r.failed {
		t.Fatal("the test was not ended")
	}
	return r.text
}

func TestAHandlerReadsTheResultsOfTheSetup(t *testing.T) {
	handler := func(ctx context.Context, job *engine.Job[parcel]) error {
		var rows int
		if err := job.Upstream(ctx, "load", &rows); err != nil {
			return err
		}
		job.Result(rows + 1)
		return nil
	}
	attempt := holdfasttest.Work(t, handler, home, func(s *holdfasttest.Setup) {
		s.Upstreams = []store.Upstream{{Step: "load", State: holdfast.Complete, Result: []byte("41")}}
	})
	var rows int
	attempt.RequireResult(t, &rows)
	if rows != 42 {
		t.Errorf("the result is %d", rows)
	}
	if none := holdfasttest.Work(t, handler, home); none.State == holdfast.Complete {
		t.Error("a handler read a result of a job that waited for nothing")
	}
}
