package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// The states of a file.
const (
	fileAvailable = "available"
	fileExpired   = "expired" // deleted by retention
	fileMissing   = "missing" // should exist and does not
	fileNone      = "none"    // never existed, or does not exist yet
)

// A view is a job as its owner sees it. Absent values are null and never left out, except for the last two fields, which only some answers have.
type view struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Filename string `json:"filename"`
	Mapping  string `json:"mapping"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"`

	AttemptCount     int        `json:"attempt_count"`
	MaxAttempts      int        `json:"max_attempts"`
	ManualRetryCount int        `json:"manual_retry_count"`
	RetryAfter       *time.Time `json:"retry_after"`
	LastAttemptAt    *time.Time `json:"last_attempt_at"`
	ErrorCode        *string    `json:"error_code"`
	ErrorMessage     *string    `json:"error_message"`

	CreatedAt   time.Time  `json:"created_at"`
	QueuedAt    time.Time  `json:"queued_at"`
	StartedAt   *time.Time `json:"started_at"`
	CompletedAt *time.Time `json:"completed_at"`
	FailedAt    *time.Time `json:"failed_at"`
	UpdatedAt   time.Time  `json:"updated_at"`

	Source          string     `json:"source"`
	Result          string     `json:"result"`
	SourceExpiresAt *time.Time `json:"source_expires_at"`
	ResultExpiresAt *time.Time `json:"result_expires_at"`
	ResultBytes     *int64     `json:"result_bytes"`
	ResultSHA256    *string    `json:"result_sha256"`

	CanRetry    bool    `json:"can_retry"`
	RetryHint   *string `json:"retry_hint"` // why it cannot be retried
	Held        bool    `json:"held"`       // it is due, and the gateway's breaker holds it
	DownloadURL *string `json:"download_url"`

	Duplicate     bool `json:"duplicate,omitempty"`      // answer to an upload: the job existed already
	QueuePosition int  `json:"queue_position,omitempty"` // answer to a retry: 1 is next
}

// view describes one job and asks the storage whether its files exist.
func (a *app) view(ctx context.Context, job holdfast.Job) (view, error) {
	held, err := a.held(ctx)
	if err != nil {
		return view{}, err
	}
	return a.describe(ctx, job, held, true)
}

// views describes many jobs. The state of their files is read from the store alone: the storage is not asked about each file.
func (a *app) views(ctx context.Context, jobs []holdfast.Job) ([]view, error) {
	held, err := a.held(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]view, len(jobs))
	for i, job := range jobs {
		if list[i], err = a.describe(ctx, job, held, false); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// held reports whether the gateway's breaker holds all jobs.
func (a *app) held(ctx context.Context) (bool, error) {
	holds, err := a.jobs.Holds(ctx)
	for _, h := range holds {
		if h.Dependency == dependencyGateway && h.Source == store.SourceBreaker && h.Closed() {
			return true, err
		}
	}
	return false, err
}

func (a *app) describe(ctx context.Context, job holdfast.Job, held, verify bool) (view, error) {
	if job.Kind == (Refusal{}).Kind() {
		return a.describeRefusal(job)
	}
	var args Conversion
	if err := json.Unmarshal(job.Args, &args); err != nil {
		return view{}, err
	}
	v := a.basicView(job)
	v.Filename, v.Mapping, v.Bytes, v.SHA256 = args.Name, args.Mapping, args.Bytes, args.SHA256
	if err := a.addTimes(ctx, &v, job); err != nil {
		return view{}, err
	}
	if err := a.addFiles(ctx, &v, job, verify); err != nil {
		return view{}, err
	}
	v.Held = held && job.State == holdfast.Queued && !job.DueAt.After(job.AsOf)
	v.RetryHint = retryHint(&v)
	v.CanRetry = v.RetryHint == nil
	return v, nil
}

// basicView returns what the job itself contains.
func (a *app) basicView(job holdfast.Job) view {
	v := view{
		ID: job.ID.String(), Status: string(job.State), AttemptCount: job.Failures + job.Crashes, MaxAttempts: job.MaxAttempts, ManualRetryCount: job.Generation - 1,
		CreatedAt: job.CreatedAt.UTC(), QueuedAt: job.CreatedAt.UTC(), UpdatedAt: job.CreatedAt.UTC(),
		LastAttemptAt: instant(job.StartedAt), StartedAt: instant(job.StartedAt), Source: fileNone, Result: fileNone,
	}
	if v.MaxAttempts == 0 {
		v.MaxAttempts = a.set.RetryMaxAttempts
	}
	switch job.State {
	case holdfast.Queued:
		if job.LastFailure != nil || job.DueAt.After(job.AsOf) {
			v.RetryAfter = instant(job.DueAt)
		}
	case holdfast.Processing:
		v.AttemptCount++
	case holdfast.Complete:
		v.AttemptCount++
		v.CompletedAt = instant(job.FinishedAt)
	case holdfast.Failed:
		v.FailedAt = instant(job.FinishedAt)
	}
	if code, line := a.publicFailure(job); code != "" {
		v.ErrorCode, v.ErrorMessage = &code, &line
	}
	return v
}

// describeRefusal describes a refused file. It counts as failed from the start: the view does not depend on whether the engine has run the job.
func (a *app) describeRefusal(job holdfast.Job) (view, error) {
	var args Refusal
	if err := json.Unmarshal(job.Args, &args); err != nil {
		return view{}, err
	}
	at := job.CreatedAt.UTC()
	code, line := a.publicFailure(job)
	hint := "This file was refused. Please upload another one."
	return view{
		ID: job.ID.String(), Status: string(holdfast.Failed), Filename: args.Name, Mapping: args.Mapping, Bytes: args.Bytes, ErrorCode: &code, ErrorMessage: &line,
		CreatedAt: at, QueuedAt: at, FailedAt: &at, UpdatedAt: at, Source: fileNone, Result: fileNone, RetryHint: &hint,
	}, nil
}

// addTimes adds times from the job's history. A job without failures, crashes, interruptions and manual retries needs no read.
func (a *app) addTimes(ctx context.Context, v *view, job holdfast.Job) error {
	moved := func(at time.Time) {
		if at = at.UTC(); at.After(v.UpdatedAt) {
			v.UpdatedAt = at
		}
	}
	moved(job.StartedAt)
	moved(job.FinishedAt)
	if job.Generation <= 1 && job.Failures+job.Crashes+job.Releases == 0 {
		return nil
	}
	h, err := a.jobs.History(ctx, job.ID)
	if err != nil {
		return err
	}
	for _, attempt := range h.Attempts {
		if attempt.Late {
			continue
		}
		moved(attempt.EndedAt)
		if attempt.To == holdfast.Queued && attempt.EndedAt.After(v.QueuedAt) {
			v.QueuedAt = attempt.EndedAt.UTC()
		}
		if started := instant(attempt.StartedAt); started != nil && (v.StartedAt == nil || started.Before(*v.StartedAt)) {
			v.StartedAt = started
		}
		if started := instant(attempt.StartedAt); started != nil && (v.LastAttemptAt == nil || started.After(*v.LastAttemptAt)) {
			v.LastAttemptAt = started
		}
	}
	for _, event := range h.Events {
		moved(event.At)
		if (event.Name == "manual retry" || event.Name == "redrive") && event.At.After(v.QueuedAt) {
			v.QueuedAt = event.At.UTC()
		}
	}
	return nil
}

// addFiles adds the state of the job's PDF and XML.
func (a *app) addFiles(ctx context.Context, v *view, job holdfast.Job, verify bool) error {
	kept, err := a.filesOf(ctx, job, verify)
	if err != nil && verify { // the job's state can be shown without the storage
		a.log.Warn("cannot check the files of a job in the storage", "event", "storage_away", "job_id", v.ID, "error", err.Error())
		kept, err = a.filesOf(ctx, job, false)
	}
	if err != nil {
		return err
	}
	v.Source, v.SourceExpiresAt = kept.Source.State, instant(kept.Source.ExpireAt)
	if job.State != holdfast.Complete {
		return nil
	}
	var result Result
	if err := json.Unmarshal(job.Result, &result); err != nil {
		return err
	}
	v.Result, v.ResultExpiresAt = kept.Result.State, instant(kept.Result.ExpireAt)
	v.ResultBytes, v.ResultSHA256 = &result.Bytes, &result.SHA256
	if v.Result == fileAvailable {
		where := "/api/jobs/" + v.ID + "/download"
		v.DownloadURL = &where
	}
	return nil
}

// retryHint returns why a job cannot be retried, or nil if it can.
func retryHint(v *view) *string {
	hint := ""
	switch {
	case v.Status != string(holdfast.Failed):
		hint = "Only a failed conversion can be retried."
	case v.Source == fileExpired:
		hint = "The PDF was removed by retention. Please upload it again."
	case v.Source != fileAvailable:
		hint = "The PDF no longer exists. Please upload it again."
	default:
		return nil
	}
	return &hint
}

// instant returns a time for a view: nil when it is zero.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
