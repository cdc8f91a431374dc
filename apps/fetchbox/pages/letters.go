package pages

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/holdfastdev/holdfast/apps/fetchbox/access"
	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
	"github.com/holdfastdev/holdfast/apps/fetchbox/view"
)

// lettersData is the data of the page of dead letters.
type lettersData struct {
	Form     url.Values
	Stages   []string // the prefixes of Codes
	Codes    []string
	Failures []failureRow
	Preview  *replay.Preview
	Letters  []letterRow
	Next     string // the query of the next page
	Replays  []replay.Progress
}

// A letterRow is a dead letter with what has become of its resource.
type letterRow struct {
	view.Letter
	Now string // the state of the resource; empty: it was deleted
	Old bool   // the resource has been retried since
}

func (p *pages) lettersPage(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	return p.showLetters(w, r, c, lettersData{Form: r.URL.Query()})
}

// showLetters shows the form of replays, and the dead letters that its fields select.
func (p *pages) showLetters(w http.ResponseWriter, r *http.Request, c access.Caller, data lettersData) error {
	filter, err := view.FilterOf(data.Form, c.Scope())
	if err != nil {
		return err
	}
	before, _ := strconv.ParseUint(r.URL.Query().Get("cursor"), 10, 64) // anything else begins at the newest
	letters, next, err := p.Views.Letters(r.Context(), filter, before, pageResources)
	if err != nil {
		return err
	}
	for _, l := range letters {
		state, retried, err := p.Views.StateOf(r.Context(), l)
		if err != nil {
			return err
		}
		data.Letters = append(data.Letters, letterRow{Letter: l, Now: string(state), Old: retried})
	}
	if next > 1 {
		query := url.Values{"cursor": {strconv.FormatUint(next, 10)}}
		for _, name := range []string{"code", "host", "job", "seq", "since"} {
			if text := data.Form.Get(name); text != "" {
				query.Set(name, text)
			}
		}
		data.Next = query.Encode()
	}
	failures, err := p.Views.Failures(c.Scope())
	if err != nil {
		return err
	}
	data.Failures = failureRows(failures)
	for _, stage := range code.Stages {
		if stage != "VALIDATION_" && stage != "AUTH_" { // these are of requests, not of resources
			data.Stages = append(data.Stages, stage)
		}
	}
	for _, known := range code.All() {
		if slices.Contains(data.Stages, code.Stage(known.Name)) {
			data.Codes = append(data.Codes, known.Name)
		}
	}
	if data.Replays, err = p.recentReplays(r.Context(), c.Scope()); err != nil {
		return err
	}
	return p.render(w, r, http.StatusOK, "letters.html", page{Title: "Dead letters – FetchBox", Nav: "letters", Data: data})
}

func (p *pages) recentReplays(ctx context.Context, owner string) ([]replay.Progress, error) {
	list, err := p.Views.Replays(ctx, owner)
	return list[:min(5, len(list))], err
}

// replayForm starts a replay, or shows what it would do.
func (p *pages) replayForm(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	if err := p.parse(w, r); err != nil {
		return err
	}
	form := r.PostForm
	filter, err := view.FilterOf(form, c.Scope())
	if err != nil {
		return err
	}
	spec := replay.Spec{Actor: c.Name, Reason: form.Get("reason"), Filter: filter}
	if text := form.Get("canary"); text != "" {
		if spec.Canary, err = strconv.Atoi(text); err != nil {
			return refusal.Invalid("First only: give a whole number of resources.")
		}
	}
	if text := form.Get("rate"); text != "" {
		if spec.PerSecond, err = strconv.ParseFloat(text, 64); err != nil {
			return refusal.Invalid("Per second: give a number.")
		}
	}
	if form.Get("do") == "preview" {
		preview, err := p.Replays.Preview(r.Context(), spec)
		if err != nil {
			return refusal.Replay(err)
		}
		return p.showLetters(w, r, c, lettersData{Form: form, Preview: &preview})
	}
	if _, err := p.Replays.Start(r.Context(), spec); err != nil {
		return refusal.Replay(err)
	}
	return p.back(w, r, "/dead-letters?said=replayed", nil)
}

func (p *pages) cancelReplayForm(w http.ResponseWriter, r *http.Request, c access.Caller) error {
	own, err := p.Views.Replays(r.Context(), c.Scope())
	if err != nil {
		return err
	}
	for _, one := range own {
		if one.ID.String() == r.PathValue("id") {
			return p.back(w, r, "/dead-letters?said=stopped", p.Replays.Cancel(r.Context(), one.ID, c.Name))
		}
	}
	return refusal.NoSuchPath
}
