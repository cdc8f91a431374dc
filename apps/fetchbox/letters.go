package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
	"github.com/holdfastdev/holdfast/apps/internal/web"
)

// A letterView is a dead letter as clients see it.
type letterView struct {
	Sequence   uint64            `json:"sequence"`
	Resource   string            `json:"resource"`
	Job        string            `json:"job"`
	Owner      string            `json:"owner,omitempty"`
	Generation uint32            `json:"generation"`
	Code       string            `json:"failure_code"`
	Message    string            `json:"failure_message"`
	Attempts   uint32            `json:"attempts"`
	FailedAt   time.Time         `json:"failed_at"`
	Metadata   map[string]string `json:"metadata"`
	Task       json.RawMessage   `json:"task,omitempty"`
}

func letterViewOf(l deadletter.Letter) letterView {
	return letterView{
		Sequence: l.Sequence, Resource: l.GetTaskId(), Job: l.GetJobId(), Owner: l.GetOwner(), Generation: l.GetGeneration(), Code: l.GetFailureCode(),
		Message: l.GetFailureMessage(), Attempts: l.GetAttempts(), FailedAt: l.FailedAt(), Metadata: l.GetMetadata(), Task: l.GetTask(),
	}
}

// streamError returns the answer when the stream cannot be read.
func streamError(err error) error {
	if errors.Is(err, deadletter.ErrNotFound) {
		return apiError{code: code.ValidationNotFound, line: "There is no dead letter with this sequence number."}
	}
	return apiError{code: code.StorageStreamError, after: retryAfter, cause: err}
}

// letters returns the dead letters that a filter selects before a sequence number, the newest first, and the cursor of the next page, which is 0 on the last.
func (a *app) letters(ctx context.Context, filter replay.Filter, before uint64, limit int) (views []letterView, next uint64, err error) {
	views = []letterView{}
	if filter.To > 0 && (before == 0 || before > filter.To+1) {
		before = filter.To + 1
	}
	for range 20 { // pages of the stream that are read for one page of an answer
		page, err := a.stream.Newest(ctx, before, maxLimit)
		if err != nil {
			return nil, 0, streamError(err)
		}
		for _, letter := range page {
			if before = letter.Sequence; before < filter.From {
				return views, 0, nil
			}
			if !filter.Matches(letter) {
				continue
			}
			if views = append(views, letterViewOf(letter)); len(views) == limit {
				return views, before, nil
			}
		}
		if len(page) < maxLimit {
			return views, 0, nil
		}
	}
	return views, before, nil
}

// filterOf reads the fields that select dead letters.
func filterOf(form url.Values, owner string) (replay.Filter, error) {
	f := replay.Filter{Code: form.Get("code"), Host: form.Get("host"), Owner: owner}
	err := errors.Join(parseSequence(form.Get("seq"), &f), parseJob(form.Get("job"), &f), parseInstant("since", form.Get("since"), &f.Since))
	if err != nil {
		return f, apiError{code: code.ValidationInvalidField, line: err.Error()}
	}
	return f, nil
}

// deadLetters answers GET /api/dead-letters: those of the caller, or of them only those with a code, of a host or of a job.
func (f *api) deadLetters(w http.ResponseWriter, r *http.Request, c caller) error {
	limit, err := limitOf(r.URL.Query())
	if err != nil {
		return err
	}
	var before uint64
	if text := r.URL.Query().Get("cursor"); text != "" {
		if before, err = strconv.ParseUint(text, 10, 64); err != nil {
			return apiError{code: code.ValidationInvalidField, line: "cursor is the next_cursor of the page before."}
		}
	}
	filter, err := filterOf(r.URL.Query(), c.scope())
	if err != nil {
		return err
	}
	views, next, err := f.letters(r.Context(), filter, before, limit)
	if err != nil {
		return err
	}
	page := struct {
		Letters []letterView `json:"dead_letters"`
		Next    *string      `json:"next_cursor"`
	}{Letters: views}
	if next > 1 {
		text := strconv.FormatUint(next, 10)
		page.Next = &text
	}
	return web.WriteJSON(w, http.StatusOK, page)
}

// deadLetter answers GET /api/dead-letters/{sequence}.
func (f *api) deadLetter(w http.ResponseWriter, r *http.Request, c caller) error {
	seq, err := strconv.ParseUint(r.PathValue("sequence"), 10, 64)
	if err != nil {
		return streamError(deadletter.ErrNotFound)
	}
	letter, err := f.stream.Get(r.Context(), seq)
	if err == nil && c.scope() != "" && letter.GetOwner() != c.owner {
		err = deadletter.ErrNotFound
	}
	if err != nil {
		return streamError(err)
	}
	return web.WriteJSON(w, http.StatusOK, letterViewOf(letter))
}

// A replayRequest is the body of POST /api/replays.
type replayRequest struct {
	replay.Spec
	DryRun bool `json:"dry_run,omitempty"`
}

const maxReplayBody = 16 << 10

// startReplay answers POST /api/replays: with dry_run it says what a replay would do.
func (f *api) startReplay(w http.ResponseWriter, r *http.Request, c caller) error {
	in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReplayBody))
	in.DisallowUnknownFields()
	var request replayRequest
	if err := in.Decode(&request); err != nil {
		return apiError{code: code.ValidationInvalidBody, line: "The body is not valid: " + err.Error()}
	}
	request.Actor = c.name
	if scope := c.scope(); scope != "" {
		request.Filter.Owner = scope
	}
	if request.DryRun {
		preview, err := f.replays.Preview(r.Context(), request.Spec)
		if err != nil {
			return replayError(err)
		}
		return web.WriteJSON(w, http.StatusOK, preview)
	}
	p, err := f.replays.Start(r.Context(), request.Spec)
	if err != nil {
		return replayError(err)
	}
	w.Header().Set("Location", "/api/replays/"+p.ID.String())
	return web.WriteJSON(w, http.StatusAccepted, p)
}

func replayError(err error) error {
	if errors.As(err, new(*holdfast.Error)) {
		return err
	}
	return streamError(err)
}

// listReplays answers GET /api/replays.
func (f *api) listReplays(w http.ResponseWriter, r *http.Request, c caller) error {
	list, err := f.ownReplays(r.Context(), c.scope())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"replays": list})
}

func (a *app) ownReplays(ctx context.Context, owner string) ([]replay.Progress, error) {
	all, err := a.replays.List(ctx)
	own := []replay.Progress{}
	for _, p := range all {
		if owner == "" || p.Filter.Owner == owner {
			own = append(own, p)
		}
	}
	return own, err
}

// cancelReplay answers POST /api/replays/{id}/cancel.
func (f *api) cancelReplay(w http.ResponseWriter, r *http.Request, c caller) error {
	own, err := f.ownReplays(r.Context(), c.scope())
	if err != nil {
		return err
	}
	for _, p := range own {
		if p.ID.String() == r.PathValue("id") {
			if err := f.replays.Cancel(r.Context(), p.ID, c.name); err != nil {
				return err
			}
			return web.WriteJSON(w, http.StatusAccepted, map[string]any{"id": p.ID})
		}
	}
	return apiError{code: code.ValidationNotFound, line: "There is no such replay."}
}
