package main

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/store"
)

const (
	defaultLimit = 50
	maxLimit     = 200
)

// A listQuery selects jobs of an owner, newest first.
type listQuery struct {
	Status holdfast.State
	Limit  int    // 50 when zero
	Cursor string // from the previous page
}

// parseListQuery parses the query of GET /api/jobs.
func parseListQuery(query url.Values) (l listQuery, err error) {
	l.Limit, l.Cursor = defaultLimit, query.Get("cursor")
	if text := query.Get("limit"); text != "" {
		if l.Limit, err = strconv.Atoi(text); err != nil || l.Limit < 1 || l.Limit > maxLimit {
			return l, badRequest("limit must be a whole number from 1 to 200.")
		}
	}
	switch l.Status = holdfast.State(query.Get("status")); l.Status {
	case "", holdfast.Queued, holdfast.Processing, holdfast.Complete, holdfast.Failed, holdfast.Cancelled:
		return l, nil
	}
	return l, badRequest("status must be queued, processing, complete, failed or cancelled.")
}

// list answers GET /api/jobs.
func (f *webHandler) list(w http.ResponseWriter, r *http.Request, owner string) error {
	wanted, err := parseListQuery(r.URL.Query())
	if err != nil {
		return err
	}
	jobs, next, err := f.ownJobs(r.Context(), owner, wanted)
	if err != nil {
		return err
	}
	page := struct {
		Jobs       []view  `json:"jobs"`
		NextCursor *string `json:"next_cursor"`
	}{Jobs: jobs}
	if next != "" {
		page.NextCursor = &next
	}
	return web.WriteJSON(w, http.StatusOK, page)
}

// ownJobs lists an owner's jobs. It also returns the cursor of the next page, which is empty on the last.
func (a *app) ownJobs(ctx context.Context, owner string, l listQuery) ([]view, string, error) {
	if owner == "" { // an empty owner in the filter would match every owner
		return nil, "", notYours
	}
	filter := store.Filter{Owner: owner, State: l.Status, Limit: cmp.Or(l.Limit, defaultLimit), Cursor: l.Cursor}
	if l.Status != "" && l.Status != holdfast.Failed {
		filter.Kind = Conversion{}.Kind() // a refusal counts as failed even before the engine has run it
	}
	jobs, next, err := a.jobs.Jobs(ctx, filter)
	if errors.Is(err, holdfast.ErrInvalid) {
		return nil, "", badRequest("This cursor is not valid. Start again without it.")
	}
	if err == nil && l.Status == holdfast.Failed && l.Cursor == "" {
		jobs, err = a.addRefusals(ctx, owner, jobs)
	}
	if err != nil {
		return nil, "", err
	}
	jobs = slices.DeleteFunc(jobs, func(job holdfast.Job) bool { return !isOurs(job) })
	list, err := a.views(ctx, jobs)
	return list, next, err
}

// addRefusals adds refusals that the engine has not run yet to the first page of failed jobs. They are among the newest: engines run them within a moment.
func (a *app) addRefusals(ctx context.Context, owner string, jobs []holdfast.Job) ([]holdfast.Job, error) {
	for _, state := range []holdfast.State{holdfast.Queued, holdfast.Processing} {
		waiting, _, err := a.jobs.Jobs(ctx, store.Filter{Owner: owner, Kind: Refusal{}.Kind(), State: state, Limit: defaultLimit})
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, waiting...)
	}
	slices.SortFunc(jobs, func(a, b holdfast.Job) int { return slices.Compare(b.ID[:], a.ID[:]) })
	return slices.CompactFunc(jobs, func(a, b holdfast.Job) bool { return a.ID == b.ID }), nil
}

// isOurs reports whether a job belongs to this application. Other applications may share the store.
func isOurs(job holdfast.Job) bool {
	return job.Kind == Conversion{}.Kind() || job.Kind == Refusal{}.Kind()
}

// get answers GET /api/jobs/{id}.
func (f *webHandler) get(w http.ResponseWriter, r *http.Request, owner string) error {
	job, err := f.ownJob(r.Context(), owner, r.PathValue("id"))
	if err != nil {
		return err
	}
	v, err := f.view(r.Context(), job)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, v)
}

// ownJob returns a job by its id if it belongs to the owner. A job of another owner answers 403 and an unknown id 404 (000 section 2C), also after the job was purged.
func (a *app) ownJob(ctx context.Context, owner, text string) (holdfast.Job, error) {
	id, err := holdfast.ParseID(text)
	if err != nil {
		return holdfast.Job{}, noSuchFile
	}
	job, err := a.jobs.Job(ctx, id)
	switch {
	case errors.Is(err, holdfast.ErrPurged):
		return holdfast.Job{}, a.purgedError(ctx, owner, id)
	case errors.Is(err, holdfast.ErrNotFound):
		return holdfast.Job{}, noSuchFile
	case err != nil:
		return holdfast.Job{}, err
	case !isOurs(job):
		return holdfast.Job{}, noSuchFile
	case owner == "" || job.Owner != owner:
		return holdfast.Job{}, notYours
	}
	return job, nil
}

// purgedError returns the answer for a job of which only a tombstone is left.
func (a *app) purgedError(ctx context.Context, owner string, id holdfast.ID) error {
	tombstones, _, err := a.jobs.Tombstones(ctx, store.TombstoneFilter{Job: id})
	switch {
	case err != nil:
		return err
	case len(tombstones) > 0 && tombstones[0].Owner != owner:
		return notYours
	}
	return removed
}

// retry answers POST /api/jobs/{id}/retry.
func (f *webHandler) retry(w http.ResponseWriter, r *http.Request, owner string) error {
	v, err := f.retryJob(r.Context(), owner, r.PathValue("id"), web.ReplyOf(w).ID)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusAccepted, v)
}

// retryJob is the manual retry of a failed conversion by its owner (000 section 5, 001 section 3.6). The checks here only give clear answers; the store guarantees that
// concurrent requests cause one retry.
func (a *app) retryJob(ctx context.Context, owner, id, request string) (view, error) {
	job, err := a.ownJob(ctx, owner, id)
	if err != nil {
		return view{}, err
	}
	kept, err := a.checkFiles(ctx, job)
	switch refusal := job.Kind == (Refusal{}).Kind(); {
	case err != nil:
		return view{}, storageUnavailable(err)
	case job.State != holdfast.Failed && !refusal:
		return view{}, notFailed
	case kept.Source.State != fileAvailable:
		return view{}, removed
	}
	ahead, err := a.operator.Retry(ctx, store.Intervention{Job: job.ID, Owner: owner, Actor: owner, Reason: "requested by its owner", Request: request})
	if err != nil {
		return view{}, a.retryError(ctx, job, err)
	}
	if job, err = a.jobs.Job(ctx, job.ID); err != nil {
		return view{}, err
	}
	v, err := a.view(ctx, job)
	v.QueuePosition = ahead + 1
	return v, err
}

// retryError returns the answer when the store refuses a retry that the checks allowed a moment ago.
func (a *app) retryError(ctx context.Context, job holdfast.Job, err error) error {
	refused := (*holdfast.Error)(nil)
	switch {
	case !errors.As(err, &refused) || refused.Err != holdfast.ErrConflict:
		return err
	case !refused.Job.IsZero() && refused.Job != job.ID:
		return apiError{code: codeNotReady, id: refused.Job, line: "This file is already being converted by another job."}
	}
	if kept, err := a.checkFiles(ctx, job); err != nil {
		return storageUnavailable(err)
	} else if kept.Source.State != fileAvailable {
		return removed
	}
	return notFailed // a concurrent retry came first: the job is queued or processing already
}
