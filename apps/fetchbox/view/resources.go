package view

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/fetchbox/work"
	"github.com/holdfastdev/holdfast/store"
)

// A Failure is the record of a failure.
type Failure struct {
	Code    string            `json:"code"`
	Message string            `json:"message"`
	Context map[string]string `json:"context,omitempty"`
}

func failureOf(f *holdfast.Failure) *Failure {
	if f == nil {
		return nil
	}
	return &Failure{Code: code.Of(f.Code).Name, Message: cmp.Or(f.Detail, f.Message), Context: f.Context}
}

// A Resource is a resource as clients see it.
type Resource struct {
	ID         holdfast.ID    `json:"id"`
	Index      int            `json:"index"` // its line in the manifest
	URL        string         `json:"url"`
	Key        string         `json:"key"` // of the object
	State      holdfast.State `json:"state"`
	Attempts   int            `json:"attempts"`
	Generation int            `json:"generation"`
	NextTry    *time.Time     `json:"next_try_at"`
	Failure    *Failure       `json:"failure"`
	Result     *work.Stored   `json:"result"`
	DeadLetter uint64         `json:"dead_letter,omitempty"` // sequence number in the stream
	History    []Attempt      `json:"history,omitempty"`
}

// An Attempt is an attempt that did not store the resource.
type Attempt struct {
	At      time.Time `json:"at"`
	Took    float64   `json:"took_seconds"`
	Failure *Failure  `json:"failure"`
	Why     string    `json:"why"` // what was decided, and why
}

// ResourceOf returns the resource of a task, without its attempts.
func (r *Reader) ResourceOf(job holdfast.Job) (Resource, error) {
	var task work.Task
	if err := json.Unmarshal(job.Args, &task); err != nil {
		return Resource{}, refusal.Error{Code: code.StorageCorrupt, Cause: err}
	}
	v := Resource{
		ID: job.ID, Index: task.Index, URL: publicURL(task.URL), Key: work.ObjectKey(job.Owner, job.Group, &task.Resource, task.Index),
		State: job.State, Attempts: job.Failures + job.Crashes, Generation: job.Generation,
	}
	switch job.State {
	case holdfast.Complete:
		v.Attempts++
		v.Result = new(work.Stored)
		if err := json.Unmarshal(job.Result, v.Result); err != nil {
			return v, refusal.Error{Code: code.StorageCorrupt, Cause: err}
		}
	case holdfast.Processing:
		v.Attempts++
	case holdfast.Queued:
		if job.DueAt.After(job.AsOf) {
			at := job.DueAt.UTC()
			v.NextTry = &at
		}
	}
	if job.State != holdfast.Complete {
		v.Failure = failureOf(job.LastFailure)
	}
	if job.State == holdfast.Failed {
		letter, err := r.Ledger.DeadLetter(job.Group, job.ID)
		if err != nil {
			return v, refusal.Ledger(err)
		}
		v.DeadLetter = letter
	}
	return v, nil
}

// publicURL returns an address without a password.
func publicURL(text string) string {
	if u, err := url.Parse(text); err == nil {
		return u.Redacted()
	}
	return text
}

// Resources returns a page of the resources that a filter selects, the last lines of the manifest first, and the cursor of the next one, which is empty on the last page.
func (r *Reader) Resources(ctx context.Context, filter store.Filter) ([]Resource, string, error) {
	filter.Kind = work.Task{}.Kind()
	jobs, next, err := r.Store.Jobs(ctx, filter)
	if err != nil {
		return nil, "", err
	}
	views := make([]Resource, len(jobs))
	for i, job := range jobs {
		if views[i], err = r.ResourceOf(job); err != nil {
			return nil, "", err
		}
	}
	return views, next, nil
}

// Task returns the task of a resource of a job.
func (r *Reader) Task(ctx context.Context, owner, group, resource string) (holdfast.Job, error) {
	id, err := holdfast.ParseID(resource)
	if err != nil {
		return holdfast.Job{}, refusal.NoSuchJob
	}
	job, err := r.Store.Job(ctx, id)
	if err != nil {
		return job, err
	}
	if job.Kind != (work.Task{}).Kind() || job.Group.String() != group || owner != "" && job.Owner != owner {
		return job, refusal.NoSuchJob
	}
	return job, nil
}

// Resource returns a resource of a job with its attempts.
func (r *Reader) Resource(ctx context.Context, owner, group, resource string) (Resource, error) {
	job, err := r.Task(ctx, owner, group, resource)
	if err != nil {
		return Resource{}, err
	}
	v, err := r.ResourceOf(job)
	if err != nil {
		return v, err
	}
	history, err := r.Store.History(ctx, job.ID)
	if err != nil {
		return v, err
	}
	for _, attempt := range history.Attempts {
		if !attempt.Late {
			v.History = append(v.History, Attempt{At: attempt.EndedAt.UTC(), Took: attempt.EndedAt.Sub(attempt.StartedAt).Seconds(), Failure: failureOf(attempt.Failure), Why: attempt.Why})
		}
	}
	return v, nil
}
