package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A JobReader reads jobs by their ids. Every store is one, client.Store and the operations of package ops too.
type JobReader interface {
	Job(ctx context.Context, id ID) (Job, error)
}

// A JobError is the error of Wait for a job that ended and is not complete.
type JobError struct {
	Job     Job    // as it was when it had ended; Job.State is Failed or Cancelled
	Code    string // the failure code of a failed job; empty if the job was cancelled
	Message string // what went wrong, for people
}

// Error names the job, how it ended, and why.
func (e *JobError) Error() string {
	text := fmt.Sprintf("job %s of kind %s %s", e.Job.ID, e.Job.Kind, map[State]string{Failed: "failed", Cancelled: "was cancelled"}[e.Job.State])
	if e.Code != "" {
		text += ": " + e.Code
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Wait waits until a job has ended and returns its result, decoded into R: the zero value if the job has none. If the job failed for good or was cancelled, the
// error is a *JobError with state, code and message. A failed job that a person retries later has ended all the same. Other errors are those of from, such as
// ErrNotFound, and ErrPurged for a job that retention has deleted, or the error of ctx.
//
// Wait learns of the end from the store if the job ends in the same process, or through a server from an answer that the server delays. Otherwise it reads the job
// at intervals that grow from milliseconds to a second. It waits until ctx ends, so give ctx a time limit.
func Wait[R any](ctx context.Context, from JobReader, id ID) (result R, err error) {
	job, err := WaitJob(ctx, from, id)
	switch {
	case err != nil:
		return result, err
	case job.State != Complete:
		return result, job.Err()
	case len(job.Result) == 0:
		return result, nil
	}
	if err := json.Unmarshal(job.Result, &result); err != nil {
		return result, fmt.Errorf("the result of job %s cannot be decoded into %T: %w", id, result, err)
	}
	return result, nil
}

// Err returns a *JobError if the job failed for good or was cancelled, and nil if it is complete or has not ended.
func (j *Job) Err() error {
	e := &JobError{Job: *j}
	switch {
	case j.State == Failed && j.LastFailure != nil:
		e.Code, e.Message = j.LastFailure.Code, j.LastFailure.Message
	case j.State == Cancelled && !j.Upstream.IsZero():
		e.Message = fmt.Sprintf("job %s, for which it waited, did not complete", j.Upstream)
	case j.State != Failed && j.State != Cancelled:
		return nil
	}
	return e
}

// A jobWaiter is a JobReader that waits by itself: the store and the operations behind a server.
type jobWaiter interface {
	WaitJob(ctx context.Context, id ID) (Job, error)
}

// An endHinter is a JobReader that may know when a job ends: a store, for jobs that end in its process. The channel has a value when the job may have ended. The
// caller must call stop.
type endHinter interface {
	EndHint(id ID) (ended <-chan struct{}, stop func())
}

const (
	firstPause = 4 * time.Millisecond
	lastPause  = time.Second
)

// WaitJob waits until a job has ended and returns it, whatever its state is then: Job.Err is nil if it is complete. Otherwise it is like Wait. With an error of ctx it returns the job as it was read
// last.
func WaitJob(ctx context.Context, from JobReader, id ID) (Job, error) {
	if waiter, ok := from.(jobWaiter); ok {
		job, err := waiter.WaitJob(ctx, id)
		return job, waitError(ctx, err)
	}
	var hint <-chan struct{}
	if hinter, ok := from.(endHinter); ok {
		ended, stop := hinter.EndHint(id)
		defer stop()
		hint = ended
	}
	var last Job
	for pause := firstPause; ; pause = min(pause*3/2, lastPause) {
		job, err := from.Job(ctx, id)
		if err != nil {
			return last, waitError(ctx, err)
		}
		if job.State.Terminal() {
			return job, nil
		}
		last = job
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-hint:
		case <-ctx.Done():
			timer.Stop()
			return last, ctx.Err()
		}
		timer.Stop()
	}
}

// waitError returns the error of ctx if it has ended, instead of what a store makes of that. What the store has found out about the job stays.
func waitError(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrPurged) {
		return err
	}
	return ctx.Err()
}
