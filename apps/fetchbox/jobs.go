package main

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/internal/web"
	"github.com/holdfastdev/holdfast/store"
)

const (
	defaultLimit = 50
	maxLimit     = 200
)

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

// resource answers GET /api/jobs/{id}/resources/{resource}: with its attempts.
func (f *api) resource(w http.ResponseWriter, r *http.Request, c caller) error {
	v, err := f.resourceWithHistory(r.Context(), c.scope(), r.PathValue("id"), r.PathValue("resource"))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, v)
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

// proxies answers GET /api/proxies.
func (f *api) proxies(w http.ResponseWriter, _ *http.Request, _ caller) error {
	return web.WriteJSON(w, http.StatusOK, map[string]any{"proxies": f.transfer.proxies.Status(), "spool": f.spoolUsage()})
}

// codes answers GET /api/codes: what each code means, and what to do.
func (f *api) codes(w http.ResponseWriter, _ *http.Request, _ caller) error {
	return web.WriteJSON(w, http.StatusOK, map[string]any{"codes": code.All()})
}
