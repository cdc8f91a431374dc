package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/ledger"
	"github.com/holdfastdev/holdfast/store"
)

// A jobView is a job as clients see it: its snapshot of the ledger, and what the store has of its group.
type jobView struct {
	ledger.JobSnapshot
	Name string `json:"name,omitempty"`
}

// jobViews returns a page of jobs and the cursor of the next one, which is nil on the last page.
func (a *app) jobViews(ctx context.Context, owner string, before holdfast.ID, limit int) (jobs []jobView, next *holdfast.ID, err error) {
	snapshots, err := a.ledger.Jobs(owner, before, limit+1)
	if err != nil {
		return nil, nil, ledgerError(err)
	}
	if len(snapshots) > limit {
		snapshots = snapshots[:limit]
		next = &snapshots[limit-1].ID
	}
	jobs = []jobView{}
	for _, s := range snapshots {
		group, err := a.jobs.Group(ctx, s.ID)
		if err != nil && !errors.Is(err, holdfast.ErrNotFound) && !errors.Is(err, holdfast.ErrPurged) {
			return nil, nil, err
		}
		jobs = append(jobs, jobView{JobSnapshot: s, Name: group.Name})
	}
	return jobs, next, nil
}

func ledgerError(err error) error {
	return apiError{code: code.StorageLedgerError, after: retryAfter, cause: err}
}

// ownGroup returns the group of a job. Clients cannot distinguish the job of another owner from one that does not exist.
func (a *app) ownGroup(ctx context.Context, owner, text string) (holdfast.Group, error) {
	id, err := holdfast.ParseID(text)
	if err != nil {
		return holdfast.Group{}, noSuchJob
	}
	group, err := a.jobs.Group(ctx, id)
	switch {
	case errors.Is(err, holdfast.ErrNotFound), errors.Is(err, holdfast.ErrPurged):
		return group, noSuchJob
	case err != nil:
		return group, err
	case owner != "" && group.Owner != owner, group.Members.Total == 0: // no manifest was stored for it
		return group, noSuchJob
	}
	return group, nil
}

// jobView returns the snapshot of a job. For the moment until the ledger has the job, it is that of a new one.
func (a *app) jobView(group holdfast.Group) (jobView, error) {
	s, found, err := a.ledger.Job(group.ID)
	if err != nil {
		return jobView{}, ledgerError(err)
	}
	if !found {
		s = ledger.JobSnapshot{ID: group.ID, Owner: group.Owner, Status: ledger.Queued, Resources: group.Members.Total, ResourcesQueued: group.Members.Total, CreatedAt: group.CreatedAt.UTC(), UpdatedAt: group.CreatedAt.UTC()}
	}
	return jobView{JobSnapshot: s, Name: group.Name}, nil
}

// A failureView is the record of a failure.
type failureView struct {
	Code    string            `json:"code"`
	Message string            `json:"message"`
	Context map[string]string `json:"context,omitempty"`
}

func failureOf(f *holdfast.Failure) *failureView {
	if f == nil {
		return nil
	}
	return &failureView{Code: code.Of(f.Code).Name, Message: cmp.Or(f.Detail, f.Message), Context: f.Context}
}

// A resourceView is a resource as clients see it.
type resourceView struct {
	ID         holdfast.ID    `json:"id"`
	Index      int            `json:"index"` // its line in the manifest
	URL        string         `json:"url"`
	Key        string         `json:"key"` // of the object
	State      holdfast.State `json:"state"`
	Attempts   int            `json:"attempts"`
	Generation int            `json:"generation"`
	NextTry    *time.Time     `json:"next_try_at"`
	Failure    *failureView   `json:"failure"`
	Result     *Stored        `json:"result"`
	DeadLetter uint64         `json:"dead_letter,omitempty"` // sequence number in the stream
	History    []attemptView  `json:"history,omitempty"`
}

// An attemptView is an attempt that did not store the resource.
type attemptView struct {
	At      time.Time    `json:"at"`
	Took    float64      `json:"took_seconds"`
	Failure *failureView `json:"failure"`
	Why     string       `json:"why"` // what was decided, and why
}

func (a *app) resourceView(job holdfast.Job) (resourceView, error) {
	var task Task
	if err := json.Unmarshal(job.Args, &task); err != nil {
		return resourceView{}, apiError{code: code.StorageCorrupt, cause: err}
	}
	v := resourceView{
		ID: job.ID, Index: task.Index, URL: publicURL(task.URL), Key: objectKey(job.Owner, job.Group, &task.Resource, task.Index),
		State: job.State, Attempts: job.Failures + job.Crashes, Generation: job.Generation,
	}
	switch job.State {
	case holdfast.Complete:
		v.Attempts++
		v.Result = new(Stored)
		if err := json.Unmarshal(job.Result, v.Result); err != nil {
			return v, apiError{code: code.StorageCorrupt, cause: err}
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
		letter, err := a.ledger.DeadLetter(job.Group, job.ID)
		if err != nil {
			return v, ledgerError(err)
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

func (a *app) resourceViews(ctx context.Context, filter store.Filter) ([]resourceView, string, error) {
	filter.Kind = Task{}.Kind()
	jobs, next, err := a.jobs.Jobs(ctx, filter)
	if err != nil {
		return nil, "", err
	}
	views := make([]resourceView, len(jobs))
	for i, job := range jobs {
		if views[i], err = a.resourceView(job); err != nil {
			return nil, "", err
		}
	}
	return views, next, nil
}

// ownTask returns a resource of a job.
func (a *app) ownTask(ctx context.Context, owner, group, resource string) (holdfast.Job, error) {
	id, err := holdfast.ParseID(resource)
	if err != nil {
		return holdfast.Job{}, noSuchJob
	}
	job, err := a.jobs.Job(ctx, id)
	if err != nil {
		return job, err
	}
	if job.Kind != (Task{}).Kind() || job.Group.String() != group || owner != "" && job.Owner != owner {
		return job, noSuchJob
	}
	return job, nil
}

func (a *app) resourceWithHistory(ctx context.Context, owner, group, resource string) (resourceView, error) {
	job, err := a.ownTask(ctx, owner, group, resource)
	if err != nil {
		return resourceView{}, err
	}
	v, err := a.resourceView(job)
	if err != nil {
		return v, err
	}
	history, err := a.jobs.History(ctx, job.ID)
	if err != nil {
		return v, err
	}
	for _, attempt := range history.Attempts {
		if !attempt.Late {
			v.History = append(v.History, attemptView{At: attempt.EndedAt.UTC(), Took: attempt.EndedAt.Sub(attempt.StartedAt).Seconds(), Failure: failureOf(attempt.Failure), Why: attempt.Why})
		}
	}
	return v, nil
}
