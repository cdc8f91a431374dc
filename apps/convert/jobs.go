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
)

const (
	usualPage   = 50
	largestPage = 200
)

// A listing is which jobs of an owner are asked for, newest first.
type listing struct {
	Status holdfast.State
	Limit  int    // 50 when zero
	Cursor string // from the page before
}

// readListing reads what a query asks for.
func readListing(query url.Values) (l listing, err error) {
	l.Limit, l.Cursor = usualPage, query.Get("cursor")
	if text := query.Get("limit"); text != "" {
		if l.Limit, err = strconv.Atoi(text); err != nil || l.Limit < 1 || l.Limit > largestPage {
			return l, senseless("limit is a whole number from 1 to 200.")
		}
	}
	switch l.Status = holdfast.State(query.Get("status")); l.Status {
	case "", holdfast.Queued, holdfast.Processing, holdfast.Complete, holdfast.Failed, holdfast.Cancelled:
		return l, nil
	}
	return l, senseless("status is one of queued, processing, complete, failed and cancelled.")
}

// list answers GET /api/jobs.
func (f *front) list(w http.ResponseWriter, r *http.Request, owner string) error {
	wanted, err := readListing(r.URL.Query())
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
	return answer(w, http.StatusOK, page)
}

// ownJobs lists an owner's jobs. The cursor leads to the next page and is empty on the last.
func (a *app) ownJobs(ctx context.Context, owner string, l listing) ([]view, string, error) {
	if owner == "" { // an empty name narrows nothing, and would show everybody's
		return nil, "", notYours
	}
	filter := holdfast.Filter{Owner: owner, State: l.Status, Limit: cmp.Or(l.Limit, usualPage), Cursor: l.Cursor}
	if l.Status != "" && l.Status != holdfast.Failed {
		filter.Kind = Conversion{}.Kind() // a refusal is failed, also where the engine has not got to it
	}
	jobs, next, err := a.jobs.Jobs(ctx, filter)
	if errors.Is(err, holdfast.ErrInvalid) {
		return nil, "", senseless("This cursor is not one of ours: start again without it.")
	}
	if err == nil && l.Status == holdfast.Failed && l.Cursor == "" {
		jobs, err = a.addRefusals(ctx, owner, jobs)
	}
	if err != nil {
		return nil, "", err
	}
	jobs = slices.DeleteFunc(jobs, func(job holdfast.Job) bool { return !ours(job) })
	list, err := a.views(ctx, jobs)
	return list, next, err
}

// addRefusals adds the refusals that the engine has not got to yet to the first page of what failed. They are the newest, or nearly so: engines fail them
// within a moment.
func (a *app) addRefusals(ctx context.Context, owner string, jobs []holdfast.Job) ([]holdfast.Job, error) {
	for _, state := range []holdfast.State{holdfast.Queued, holdfast.Processing} {
		waiting, _, err := a.jobs.Jobs(ctx, holdfast.Filter{Owner: owner, Kind: Refusal{}.Kind(), State: state, Limit: usualPage})
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, waiting...)
	}
	slices.SortFunc(jobs, func(a, b holdfast.Job) int { return slices.Compare(b.ID[:], a.ID[:]) })
	return slices.CompactFunc(jobs, func(a, b holdfast.Job) bool { return a.ID == b.ID }), nil
}

// ours reports whether a job is one of this application's: others may share the store.
func ours(job holdfast.Job) bool {
	return job.Kind == Conversion{}.Kind() || job.Kind == Refusal{}.Kind()
}

// get answers GET /api/jobs/{id}.
func (f *front) get(w http.ResponseWriter, r *http.Request, owner string) error {
	job, err := f.own(r.Context(), owner, r.PathValue("id"))
	if err != nil {
		return err
	}
	v, err := f.view(r.Context(), job)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, v)
}

// own is a job by its id, if it is the owner's. Somebody else's is told apart from none (000 section 2C), also after it was purged.
func (a *app) own(ctx context.Context, owner, text string) (holdfast.Job, error) {
	id, err := holdfast.ParseID(text)
	if err != nil {
		return holdfast.Job{}, noSuchFile
	}
	job, err := a.jobs.Job(ctx, id)
	switch {
	case errors.Is(err, holdfast.ErrPurged):
		return holdfast.Job{}, a.purged(ctx, owner, id)
	case errors.Is(err, holdfast.ErrNotFound):
		return holdfast.Job{}, noSuchFile
	case err != nil:
		return holdfast.Job{}, err
	case !ours(job):
		return holdfast.Job{}, noSuchFile
	case owner == "" || job.Owner != owner:
		return holdfast.Job{}, notYours
	}
	return job, nil
}

// purged says what there is to say of a job of which only a tombstone is left.
func (a *app) purged(ctx context.Context, owner string, id holdfast.ID) error {
	stones, _, err := a.jobs.Tombstones(ctx, holdfast.TombstoneFilter{Job: id})
	switch {
	case err != nil:
		return err
	case len(stones) > 0 && stones[0].Owner != owner:
		return notYours
	}
	return removed
}

// retry answers POST /api/jobs/{id}/retry.
func (f *front) retry(w http.ResponseWriter, r *http.Request, owner string) error {
	v, err := f.retryJob(r.Context(), owner, r.PathValue("id"), answerOf(w).id)
	if err != nil {
		return err
	}
	return answer(w, http.StatusAccepted, v)
}

// retryJob sends a failed conversion round again on its owner's word (000 section 5, 001 section 3.6). The checks here give clear answers; that it happens
// once, however many ask at the same time, is the store's doing.
func (a *app) retryJob(ctx context.Context, owner, id, request string) (view, error) {
	job, err := a.own(ctx, owner, id)
	if err != nil {
		return view{}, err
	}
	kept, err := a.standing(ctx, job)
	switch refusal := job.Kind == (Refusal{}).Kind(); {
	case err != nil:
		return view{}, storageAway(err)
	case job.State != holdfast.Failed && !refusal:
		return view{}, notFailed
	case kept.Source.State != fileAvailable:
		return view{}, removed
	}
	ahead, err := a.desk.Retry(ctx, holdfast.Intervention{Job: job.ID, Owner: owner, Actor: owner, Reason: "asked for by its owner", Request: request})
	if err != nil {
		return view{}, a.notRetried(ctx, job, err)
	}
	if job, err = a.jobs.Job(ctx, job.ID); err != nil {
		return view{}, err
	}
	v, err := a.view(ctx, job)
	v.QueuePosition = ahead + 1
	return v, err
}

// notRetried says why the desk refused what looked possible a moment ago.
func (a *app) notRetried(ctx context.Context, job holdfast.Job, err error) error {
	said := (*holdfast.Error)(nil)
	switch {
	case !errors.As(err, &said) || said.Kind != holdfast.ErrConflict:
		return err
	case !said.Job.IsZero() && said.Job != job.ID:
		return fault{code: codeNotReady, id: said.Job, line: "This file is being converted already, by another job."}
	}
	if kept, again := a.standing(ctx, job); again != nil {
		return storageAway(again)
	} else if kept.Source.State != fileAvailable {
		return removed
	}
	return notFailed // somebody else was faster: it waits, or runs, already
}
