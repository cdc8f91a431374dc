package api

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/access"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/fetchbox/view"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/store"
)

const defaultLimit = 50

// submit answers POST /api/jobs.
func (a *api) submit(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	done, err := a.Intake.Receive(w, r, c.Owner)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/jobs/"+done.Job.String())
	return web.WriteJSON(w, http.StatusAccepted, done)
}

// list answers GET /api/jobs: the newest first. The cursor is the id of the last job of a page.
func (a *api) list(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	limit, err := limitOf(r.URL.Query())
	if err != nil {
		return err
	}
	var before holdfast.ID
	if text := r.URL.Query().Get("cursor"); text != "" {
		if before, err = holdfast.ParseID(text); err != nil {
			return refusal.Invalid("cursor is the id of the last job of the page before.")
		}
	}
	jobs, next, err := a.Views.Jobs(r.Context(), c.Scope(), before, limit)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"jobs": jobs, "next_cursor": next})
}

func limitOf(query url.Values) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > view.MaxLimit {
		return 0, refusal.Invalid("limit must be a whole number from 1 to 200.")
	}
	return n, nil
}

// get answers GET /api/jobs/{id}: the snapshot.
func (a *api) get(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	group, err := a.Views.Group(r.Context(), c.Scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	v, err := a.Views.Job(group)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, v)
}

// resources answers GET /api/jobs/{id}/resources, in pages, the last lines of the manifest first.
func (a *api) resources(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	group, err := a.Views.Group(r.Context(), c.Scope(), r.PathValue("id"))
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
		return refusal.Invalid("state must be queued, processing, complete, failed or cancelled.")
	}
	views, next, err := a.Views.Resources(r.Context(), store.Filter{Group: group.ID, State: state, Code: query.Get("code"), Limit: limit, Cursor: query.Get("cursor")})
	if err != nil {
		return err
	}
	page := struct {
		Resources []view.Resource `json:"resources"`
		Next      *string         `json:"next_cursor"`
	}{Resources: views}
	if next != "" {
		page.Next = &next
	}
	return web.WriteJSON(w, http.StatusOK, page)
}

// resource answers GET /api/jobs/{id}/resources/{resource}: with its attempts.
func (a *api) resource(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	v, err := a.Views.Resource(r.Context(), c.Scope(), r.PathValue("id"), r.PathValue("resource"))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, v)
}

// retryResource answers POST /api/jobs/{id}/resources/{resource}/retry.
func (a *api) retryResource(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	job, err := a.Views.Task(r.Context(), c.Scope(), r.PathValue("id"), r.PathValue("resource"))
	if err != nil {
		return err
	}
	ahead, err := a.Operator.Retry(r.Context(), store.Intervention{Job: job.ID, Actor: c.Name, Reason: "requested through the API", Request: web.ReplyOf(w).ID})
	if err != nil {
		return refusal.RetryResource(job.State, err)
	}
	return web.WriteJSON(w, http.StatusAccepted, map[string]any{"id": job.ID, "queue_position": ahead + 1})
}

// retryJob answers POST /api/jobs/{id}/retry: all failed resources.
func (a *api) retryJob(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	group, err := a.Views.Group(r.Context(), c.Scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	n, err := a.Operator.RetryGroup(r.Context(), store.Intervention{Group: group.ID, Actor: c.Name, Reason: "requested through the API", Request: web.ReplyOf(w).ID})
	if err != nil {
		return refusal.Retry(err)
	}
	return web.WriteJSON(w, http.StatusAccepted, map[string]any{"id": group.ID, "retried": n})
}

// cancelJob answers POST /api/jobs/{id}/cancel.
func (a *api) cancelJob(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	group, err := a.Views.Group(r.Context(), c.Scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	err = a.Operator.CancelGroup(r.Context(), store.Intervention{Group: group.ID, Actor: c.Name, Reason: "requested through the API", Request: web.ReplyOf(w).ID})
	if err != nil {
		return refusal.Cancel(err)
	}
	return web.WriteJSON(w, http.StatusAccepted, map[string]any{"id": group.ID})
}

// results answers GET /api/jobs/{id}/results: every resource with its object or its failure.
func (a *api) results(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	group, err := a.Views.Group(r.Context(), c.Scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return a.Views.WriteResults(w, r, group.ID, r.URL.Query().Get("format"))
}

// jobEvents answers GET /api/jobs/{id}/events.
func (a *api) jobEvents(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	group, err := a.Views.Group(r.Context(), c.Scope(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return a.Events.Serve(w, r, group.Owner, group.ID.String())
}

// events answers GET /api/events: the events of the caller's jobs, as they happen.
func (a *api) events(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	return a.Events.Serve(w, r, c.Scope(), "")
}
