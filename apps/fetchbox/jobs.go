package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/ledger"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/store"
)

const (
	defaultLimit = 50
	maxLimit     = 200
)

// A jobView is a job as clients see it: its snapshot of the ledger, and what the store has of its group.
type jobView struct {
	ledger.JobSnapshot
	Name string `json:"name,omitempty"`
}

// list answers GET /api/jobs: the newest first. The cursor is the id of the last job of a page.
func (f *api) list(w http.ResponseWriter, r *http.Request, c caller) error {
	limit, err := limitOf(r.URL.Query())
	if err != nil {
		return err
	}
	var before holdfast.ID
	if text := r.URL.Query().Get("cursor"); text != "" {
		if before, err = holdfast.ParseID(text); err != nil {
			return apiError{code: code.ValidationInvalidField, line: "cursor is the id of the last job of the page before."}
		}
	}
	jobs, next, err := f.jobViews(r.Context(), c.scope(), before, limit)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"jobs": jobs, "next_cursor": next})
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

func limitOf(query url.Values) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, apiError{code: code.ValidationInvalidField, line: "limit must be a whole number from 1 to 200."}
	}
	return n, nil
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

// get answers GET /api/jobs/{id}: the snapshot.
func (f *api) get(w http.ResponseWriter, r *http.Request, c caller) error {
	group, err := f.ownGroup(r.Context(), c.scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	v, err := f.jobView(group)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, v)
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

// resources answers GET /api/jobs/{id}/resources, in pages, the last lines of the manifest first.
func (f *api) resources(w http.ResponseWriter, r *http.Request, c caller) error {
	group, err := f.ownGroup(r.Context(), c.scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	query := r.URL.Query()
	limit, err := limitOf(query)
	if err != nil {
		return err
	}
	state := holdfast.State(query.Get("state"))
	switch state {
	case "", holdfast.Queued, holdfast.Processing, holdfast.Complete, holdfast.Failed, holdfast.Cancelled:
	default:
		return apiError{code: code.ValidationInvalidField, line: "state must be queued, processing, complete, failed or cancelled."}
	}
	views, next, err := f.resourceViews(r.Context(), store.Filter{Group: group.ID, State: state, Code: query.Get("code"), Limit: limit, Cursor: query.Get("cursor")})
	if err != nil {
		return err
	}
	page := struct {
		Resources []resourceView `json:"resources"`
		Next      *string        `json:"next_cursor"`
	}{Resources: views}
	if next != "" {
		page.Next = &next
	}
	return web.WriteJSON(w, http.StatusOK, page)
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

// resource answers GET /api/jobs/{id}/resources/{resource}: with its attempts.
func (f *api) resource(w http.ResponseWriter, r *http.Request, c caller) error {
	v, err := f.resourceWithHistory(r.Context(), c.scope(), r.PathValue("id"), r.PathValue("resource"))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, v)
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

// retryResource answers POST /api/jobs/{id}/resources/{resource}/retry.
func (f *api) retryResource(w http.ResponseWriter, r *http.Request, c caller) error {
	job, err := f.ownTask(r.Context(), c.scope(), r.PathValue("id"), r.PathValue("resource"))
	if err != nil {
		return err
	}
	ahead, err := f.operator.Retry(r.Context(), store.Intervention{Job: job.ID, Actor: c.name, Reason: "requested through the API", Request: web.ReplyOf(w).ID})
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusAccepted, map[string]any{"id": job.ID, "queue_position": ahead + 1})
}

// retryJob answers POST /api/jobs/{id}/retry: all failed resources.
func (f *api) retryJob(w http.ResponseWriter, r *http.Request, c caller) error {
	group, err := f.ownGroup(r.Context(), c.scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	n, err := f.operator.RetryGroup(r.Context(), store.Intervention{Group: group.ID, Actor: c.name, Reason: "requested through the API", Request: web.ReplyOf(w).ID})
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusAccepted, map[string]any{"id": group.ID, "retried": n})
}

// cancelJob answers POST /api/jobs/{id}/cancel.
func (f *api) cancelJob(w http.ResponseWriter, r *http.Request, c caller) error {
	group, err := f.ownGroup(r.Context(), c.scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	err = f.operator.CancelGroup(r.Context(), store.Intervention{Group: group.ID, Actor: c.name, Reason: "requested through the API", Request: web.ReplyOf(w).ID})
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusAccepted, map[string]any{"id": group.ID})
}

// results answers GET /api/jobs/{id}/results: every resource with its object or its failure, as a JSON array or CSV, while it is read from the store.
func (f *api) results(w http.ResponseWriter, r *http.Request, c caller) error {
	group, err := f.ownGroup(r.Context(), c.scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	var to resultWriter
	switch r.URL.Query().Get("format") {
	case "", "json":
		w.Header().Set("Content-Type", "application/json")
		to = &jsonResults{to: w}
	case "csv":
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		w.Header().Set("Content-Disposition", `attachment; filename="`+group.ID.String()+`.csv"`)
		to = &csvResults{to: csv.NewWriter(w)}
	default:
		return apiError{code: code.ValidationInvalidField, line: "format must be json or csv."}
	}
	for cursor := ""; ; {
		views, next, err := f.resourceViews(r.Context(), store.Filter{Group: group.ID, Limit: maxLimit, Cursor: cursor})
		if err != nil {
			return err
		}
		for _, v := range views {
			if err := to.add(v); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return to.end()
		}
	}
}

// A resultWriter writes the manifest of results.
type resultWriter interface {
	add(v resourceView) error
	end() error
}

type jsonResults struct {
	to http.ResponseWriter
	n  int
}

func (j *jsonResults) add(v resourceView) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	before := ",\n"
	if j.n == 0 {
		before = "[\n"
	}
	j.n++
	_, err = j.to.Write(append([]byte(before), text...))
	return err
}

func (j *jsonResults) end() error {
	text := "\n]\n"
	if j.n == 0 {
		text = "[]\n"
	}
	_, err := j.to.Write([]byte(text))
	return err
}

type csvResults struct {
	to *csv.Writer
	n  int
}

func (c *csvResults) add(v resourceView) error {
	if c.n == 0 {
		if err := c.to.Write([]string{"index", "id", "url", "state", "attempts", "key", "size", "sha256", "type", "code", "message", "dead_letter"}); err != nil {
			return err
		}
	}
	c.n++
	row := []string{strconv.Itoa(v.Index), v.ID.String(), plainCell(v.URL), string(v.State), strconv.Itoa(v.Attempts), v.Key, "", "", "", "", "", ""}
	if v.Result != nil {
		row[6], row[7], row[8] = strconv.FormatInt(v.Result.Size, 10), v.Result.SHA256, plainCell(v.Result.Type)
	}
	if v.Failure != nil {
		row[9], row[10] = v.Failure.Code, plainCell(v.Failure.Message)
	}
	if v.DeadLetter > 0 {
		row[11] = strconv.FormatUint(v.DeadLetter, 10)
	}
	return c.to.Write(row)
}

// plainCell keeps a spreadsheet from reading a text as a formula.
func plainCell(text string) string {
	if text != "" && (text[0] == '=' || text[0] == '+' || text[0] == '-' || text[0] == '@' || text[0] == '\t') {
		return "'" + text
	}
	return text
}

func (c *csvResults) end() error {
	c.to.Flush()
	return c.to.Error()
}

// proxies answers GET /api/proxies.
func (f *api) proxies(w http.ResponseWriter, _ *http.Request, _ caller) error {
	return web.WriteJSON(w, http.StatusOK, map[string]any{"proxies": f.transfer.proxies.Status(), "spool": f.spoolUsage()})
}

// codes answers GET /api/codes: what each code means, and what to do.
func (f *api) codes(w http.ResponseWriter, _ *http.Request, _ caller) error {
	return web.WriteJSON(w, http.StatusOK, map[string]any{"codes": code.All()})
}
