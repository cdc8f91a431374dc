package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/holdfastdev/holdfast/apps/fetchbox/access"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
	"github.com/holdfastdev/holdfast/apps/fetchbox/view"
	"github.com/holdfastdev/holdfast/apps/internal/web"
)

// deadLetters answers GET /api/dead-letters: those of the caller, or of them only those with a code, of a host or of a job.
func (a *api) deadLetters(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	limit, err := limitOf(r.URL.Query())
	if err != nil {
		return err
	}
	var before uint64
	if text := r.URL.Query().Get("cursor"); text != "" {
		if before, err = strconv.ParseUint(text, 10, 64); err != nil {
			return refusal.Invalid("cursor is the next_cursor of the page before.")
		}
	}
	filter, err := view.FilterOf(r.URL.Query(), c.Scope())
	if err != nil {
		return err
	}
	views, next, err := a.Views.Letters(r.Context(), filter, before, limit)
	if err != nil {
		return err
	}
	page := struct {
		Letters []view.Letter `json:"dead_letters"`
		Next    *string       `json:"next_cursor"`
	}{Letters: views}
	if next > 1 {
		text := strconv.FormatUint(next, 10)
		page.Next = &text
	}
	return web.WriteJSON(w, http.StatusOK, page)
}

// deadLetter answers GET /api/dead-letters/{sequence}.
func (a *api) deadLetter(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	seq, err := strconv.ParseUint(r.PathValue("sequence"), 10, 64)
	if err != nil {
		return refusal.Stream(deadletter.ErrNotFound)
	}
	letter, err := a.Views.Letter(r.Context(), c.Scope(), seq)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, letter)
}

const maxReplayBody = 16 << 10

// startReplay answers POST /api/replays: with dry_run it says what a replay would do.
func (a *api) startReplay(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReplayBody))
	in.DisallowUnknownFields()
	var request replay.Request
	if err := in.Decode(&request); err != nil {
		return refusal.Error{Code: code.ValidationInvalidBody, Line: "The body is not valid: " + err.Error()}
	}
	request.Actor = c.Name
	if scope := c.Scope(); scope != "" {
		request.Filter.Owner = scope
	}
	if request.DryRun {
		preview, err := a.Replays.Preview(r.Context(), request.Spec)
		if err != nil {
			return refusal.Replay(err)
		}
		return web.WriteJSON(w, http.StatusOK, preview)
	}
	p, err := a.Replays.Start(r.Context(), request.Spec)
	if err != nil {
		return refusal.Replay(err)
	}
	w.Header().Set("Location", "/api/replays/"+p.ID.String())
	return web.WriteJSON(w, http.StatusAccepted, view.ReplayOf(p))
}

// listReplays answers GET /api/replays.
func (a *api) listReplays(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	list, err := a.Views.Replays(r.Context(), c.Scope())
	if err != nil {
		return err
	}
	replays := make([]view.Replay, len(list))
	for i, p := range list {
		replays[i] = view.ReplayOf(p)
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"replays": replays})
}

// cancelReplay answers POST /api/replays/{id}/cancel.
func (a *api) cancelReplay(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	own, err := a.Views.Replays(r.Context(), c.Scope())
	if err != nil {
		return err
	}
	for _, p := range own {
		if p.ID.String() == r.PathValue("id") {
			if err := a.Replays.Cancel(r.Context(), p.ID, c.Name); err != nil {
				return err
			}
			return web.WriteJSON(w, http.StatusAccepted, map[string]any{"id": p.ID})
		}
	}
	return refusal.Error{Code: code.ValidationNotFound, Line: "There is no such replay."}
}
