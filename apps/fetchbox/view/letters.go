package view

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apps/fetchbox/deadletter"
	"github.com/holdfastdev/holdfast/apps/fetchbox/refusal"
	"github.com/holdfastdev/holdfast/apps/fetchbox/replay"
	"github.com/holdfastdev/holdfast/store"
)

// A Letter is a dead letter as clients see it.
type Letter struct {
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

func letterOf(l deadletter.Letter) Letter {
	return Letter{
		Sequence: l.Sequence, Resource: l.GetTaskId(), Job: l.GetJobId(), Owner: l.GetOwner(), Generation: l.GetGeneration(), Code: l.GetFailureCode(),
		Message: l.GetFailureMessage(), Attempts: l.GetAttempts(), FailedAt: l.FailedAt(), Metadata: l.GetMetadata(), Task: l.GetTask(),
	}
}

// FilterOf reads the fields that select dead letters of an owner.
func FilterOf(form url.Values, owner string) (replay.Filter, error) {
	f := replay.Filter{Code: form.Get("code"), Host: form.Get("host"), Owner: owner}
	text := replay.FilterText{Sequence: form.Get("seq"), Job: form.Get("job"), Since: form.Get("since")}
	if err := text.ParseInto(&f); err != nil {
		return f, refusal.Invalid(err.Error())
	}
	return f, nil
}

// Letters returns the dead letters that a filter selects before a sequence number, the newest first, and the cursor of the next page, which is 0 on the last.
func (r *Reader) Letters(ctx context.Context, filter replay.Filter, before uint64, limit int) (letters []Letter, next uint64, err error) {
	letters = []Letter{}
	if filter.To > 0 && (before == 0 || before > filter.To+1) {
		before = filter.To + 1
	}
	for range 20 { // pages of the stream that are read for one page of an answer
		page, err := r.Stream.Newest(ctx, before, MaxLimit)
		if err != nil {
			return nil, 0, refusal.Stream(err)
		}
		for _, letter := range page {
			if before = letter.Sequence; before < filter.From {
				return letters, 0, nil
			}
			if !filter.Matches(letter) {
				continue
			}
			if letters = append(letters, letterOf(letter)); len(letters) == limit {
				return letters, before, nil
			}
		}
		if len(page) < MaxLimit {
			return letters, 0, nil
		}
	}
	return letters, before, nil
}

// Letter returns the dead letter with a sequence number.
func (r *Reader) Letter(ctx context.Context, owner string, sequence uint64) (Letter, error) {
	letter, err := r.Stream.Get(ctx, sequence)
	if err == nil && owner != "" && letter.GetOwner() != owner {
		err = deadletter.ErrNotFound
	}
	if err != nil {
		return Letter{}, refusal.Stream(err)
	}
	return letterOf(letter), nil
}

// StateOf returns the state that the resource of a dead letter has now, and whether it was retried since. The state is empty if the resource was deleted.
func (r *Reader) StateOf(ctx context.Context, l Letter) (state holdfast.State, retried bool, err error) {
	id, err := holdfast.ParseID(l.Resource)
	if err != nil {
		return "", false, nil
	}
	job, err := r.Store.Job(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) {
		return "", false, nil
	}
	return job.State, job.Generation != int(l.Generation), err
}

// A Replay is a replay of dead letters as clients see it.
type Replay struct {
	ID        holdfast.ID         `json:"id"`
	Filter    replay.Filter       `json:"filter"`
	Canary    int                 `json:"canary,omitempty"`
	PerSecond float64             `json:"per_second,omitempty"`
	Limit     int                 `json:"limit,omitempty"`
	State     string              `json:"state"`
	Why       string              `json:"why,omitempty"` // what it waits for, or why it ended
	Counts    store.RedriveCounts `json:"counts"`
	Refused   int                 `json:"refused,omitempty"` // resources that could not be replayed
	Actor     string              `json:"actor"`
	Reason    string              `json:"reason,omitempty"`
	StartedAt time.Time           `json:"started_at"`
	EndedAt   time.Time           `json:"ended_at,omitzero"`
}

// ReplayOf returns a replay as clients see it.
func ReplayOf(p replay.Progress) Replay {
	return Replay{
		ID: p.ID, Filter: p.Filter, Canary: p.Spec.Canary, PerSecond: p.Spec.PerSecond, Limit: p.Spec.Limit, State: string(p.State), Why: p.Why, Counts: p.Counts,
		Refused: p.RefusedJobs, Actor: p.Spec.Actor, Reason: p.Spec.Reason, StartedAt: p.StartedAt, EndedAt: p.EndedAt,
	}
}

// Replays returns the replays of an owner, in the order of [replay.Runner.List].
func (r *Reader) Replays(ctx context.Context, owner string) ([]replay.Progress, error) {
	all, err := r.Runner.List(ctx)
	own := []replay.Progress{}
	for _, p := range all {
		if owner == "" || p.Filter.Owner == owner {
			own = append(own, p)
		}
	}
	return own, err
}
