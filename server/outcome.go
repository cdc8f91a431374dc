package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// report passes the outcomes that workers report to the engine, which decides and settles. Each outcome has its own answer. If the store is unavailable, the
// whole call fails, and the worker repeats it.
func (s *Server) report(ctx context.Context, c Caller, in *api.OutcomesIn) (out api.Answers, err error) {
	if s.cfg.Settler == nil {
		return out, &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "this server runs no engine to decide about outcomes: settle the jobs with /v1/claims/settle"}
	}
	outcomes := in.Body.Outcomes
	if err := tooMany("outcomes", len(outcomes)); err != nil {
		return out, err
	}
	answers := make([]error, len(outcomes))
	var reports []engine.RemoteReport
	var of []int // index of the outcome of each report
	for i := range outcomes {
		o, err := outcomeOf(&outcomes[i])
		if err == nil {
			err = s.prepareDrafts(c, o.Enqueue)
		}
		var held cachedLease
		if err == nil {
			held, err = s.held(ctx, &outcomes[i])
		}
		if c.bound() && (err == nil && !c.worksOn(held.lease.Queue, held.lease.Kind) || errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged)) {
			err = noSuchJob(outcomes[i].Job)
		}
		if errors.Is(err, holdfast.ErrUnavailable) {
			return out, err
		}
		if answers[i] = err; err != nil {
			continue
		}
		if o.Age = time.Since(held.at); !held.lease.Since.IsZero() {
			o.Age += held.lease.AsOf.Sub(held.lease.Since)
		}
		reports, of = append(reports, engine.RemoteReport{Lease: held.lease, Outcome: o, RetryReserved: true}), append(of, i)
	}
	if len(reports) > 0 {
		judged, err := s.cfg.Settler.SettleReports(ctx, reports)
		if err != nil {
			return out, err
		}
		for n, i := range of {
			answers[i] = judged[n]
			s.leaseCache.reported(outcomes[i].Job, outcomes[i].Token)
		}
	}
	return api.Answers{Answers: api.Problems(answers)}, nil
}

// held returns the lease that an outcome ends: from the cache, or else as the store has the job now. It does not check that the lease is still held: the store
// does when it settles, and keeps the report of a lost lease in the story.
func (s *Server) held(ctx context.Context, o *api.Outcome) (cachedLease, error) {
	l, known := s.leaseCache.get(o.Job, o.Token)
	if !known {
		job, err := s.cfg.Store.Job(ctx, o.Job)
		if err != nil {
			return l, err
		}
		l = cachedLease{store.Lease{Job: job, Since: job.CreatedAt}, time.Now()}
		if job.Generation > 1 { // when it was retried is only in the story; the start of this attempt is close enough
			l.lease.Since = job.StartedAt
		}
		l.lease.Token = o.Token
	}
	l.lease.Batch = o.Batch
	return l, nil
}

// outcomeOf converts what a worker reports into what an engine would have observed.
func outcomeOf(o *api.Outcome) (seen failure.Outcome, err error) {
	seen.Took = o.Took
	if o.Outcome != api.OutcomeComplete && len(o.Result) > 0 {
		return seen, invalid("a result with outcome %q: only complete jobs have a result", o.Outcome)
	}
	if o.Outcome != api.OutcomeComplete && len(o.Enqueue) > 0 {
		return seen, invalid("jobs to enqueue with outcome %q: only complete jobs enqueue others", o.Outcome)
	}
	if o.Took < 0 || o.Took > check.MaxDelay {
		return seen, invalid("took is %v: give a duration between 0 and 100 years", o.Took)
	}
	switch o.Outcome {
	case api.OutcomeComplete:
		seen.Result, seen.Enqueue = o.Result, o.Enqueue
		if len(o.Result) > check.MaxArgs {
			err = invalid("the result has %d bytes, the maximum is %d: store the data elsewhere and return a reference", len(o.Result), check.MaxArgs)
		}
	case api.OutcomeFailed:
		seen.Err = errorOf(o)
	case api.OutcomeThrottled:
		seen.Err, err = throttledError(o)
	case api.OutcomeTimedOut:
		seen.Event, seen.Err = failure.TimedOut, errorOf(o)
	case api.OutcomeCrashed:
		seen.Event, seen.Stack = failure.Panicked, o.Detail
		plain := *o
		plain.Detail = ""
		seen.Err = errorOf(&plain)
	case api.OutcomeSnoozed:
		seen.Err = failure.Snooze(o.Snooze)
		if o.Hold > 0 {
			seen.Err = failure.On(failure.HoldDependency(seen.Err, o.Hold), o.Dependency)
		}
	case api.OutcomeReleased:
		seen.Event, seen.Err = failure.Interrupted, engine.ErrStopping
	case api.OutcomeCancelled:
		seen.Event, seen.Err = failure.CancelledByRequest, engine.ErrCancelled
	case api.OutcomeUnreadable:
		seen.Event, seen.Err = failure.Unreadable, errorOf(o)
	default:
		err = invalid("unknown outcome %.40q: use complete, failed, throttled, timed_out, crashed, snoozed, released, cancelled or unreadable", o.Outcome)
	}
	return seen, err
}

func invalid(format string, args ...any) error {
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)}
}

// throttledError is the error that a Go handler would have returned for a throttled attempt.
func throttledError(o *api.Outcome) (error, error) {
	if o.Permanent {
		return nil, invalid("outcome throttled cannot be permanent: use failed, or leave permanent out")
	}
	plain := *o
	plain.RetryAfter = 0
	return failure.Throttled(errorOf(&plain), o.RetryAfter), nil
}

// errorOf is the error that a Go handler would have returned.
func errorOf(o *api.Outcome) error {
	text := strings.TrimSpace(o.Message)
	if text == "" {
		text = "the worker gave no message"
	}
	if o.Detail != "" {
		text += "\n\n" + o.Detail
	}
	err := errors.New(text)
	if o.HTTPStatus != 0 {
		err = &failure.HTTPError{Status: o.HTTPStatus, Err: err}
	}
	if o.ExitCode != nil {
		err = &failure.ExitError{Code: *o.ExitCode, Err: err}
	}
	if o.Code != "" {
		err = failure.WithCode(err, o.Code)
	}
	if o.Dependency != "" {
		err = failure.On(err, o.Dependency)
	}
	if o.Permanent {
		err = failure.NeverRetry(err)
	}
	if o.Benign {
		err = failure.Benign(err)
	}
	if o.RetryAfter > 0 {
		err = failure.RetryAfter(err, o.RetryAfter)
	}
	if o.Hold > 0 {
		err = failure.HoldDependency(err, o.Hold)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Context)) {
		err = failure.With(err, name, o.Context[name])
	}
	return err
}
