package ops

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// Edit changes a queued job: its arguments, and when and where it waits; of a failed job the arguments, the priority and
// the attempts. It returns ErrConflict if the job is in another state or has changed since the editor saw it.
//
// An edit with Restore puts back the values that the edit or redrive at that time replaced; see [Former]. Apart from that
// it is like any other edit. It is refused if the job changes while the former values are looked up.
func (s *Service) Edit(ctx context.Context, e store.Edit) (holdfast.Job, error) {
	if e.Restore.IsZero() {
		return s.store.Edit(ctx, e)
	}
	if e.Patch != nil || e.Args != nil || e.Queue != nil || e.Priority != nil || e.Tags != nil || e.MaxAttempts != nil || e.Delay != nil {
		return holdfast.Job{}, invalid("an edit that restores former values cannot give other values too: make two edits")
	}
	h, err := s.store.History(ctx, e.Job)
	if err != nil {
		return holdfast.Job{}, err
	}
	if e.Owner != "" && e.Owner != h.Job.Owner { // let the store return its usual error
		return s.store.Edit(ctx, store.Edit{Intervention: e.Intervention, Priority: &h.Job.Priority})
	}
	was, err := PreviousValues(h, e.Restore)
	if err != nil {
		return holdfast.Job{}, err
	}
	if was.IfDigest = e.IfDigest; was.IfDigest == "" {
		was.IfDigest = h.Job.Digest()
	}
	if e.Reason = strings.TrimPrefix(e.Reason+"; "+was.Reason, "; "); len(e.Reason) > check.MaxReason {
		e.Reason = was.Reason
	}
	was.Intervention = e.Intervention
	return s.store.Edit(ctx, was)
}

// PreviousValues returns the edit that puts back the values which edits and redrives of a job at a time replaced, without an actor.
// Its reason says so. It returns ErrInvalid if there was no such change at that time. Queue, tags and time of a failed job
// cannot be edited: they are left out, and it returns ErrConflict if nothing else was replaced.
func PreviousValues(h store.History, at time.Time) (e store.Edit, err error) {
	var was struct {
		Args        json.RawMessage `json:"args"`
		Queue       *string         `json:"queue"`
		Priority    *int16          `json:"priority"`
		Tags        *[]string       `json:"tags"`
		MaxAttempts *int            `json:"max_attempts"`
		DueAt       *time.Time      `json:"due_at"`
	}
	found := false
	for n := len(h.Events) - 1; n >= 0; n-- { // of several changes at one time, the first has the original values: let it win
		if v := &h.Events[n]; len(v.Was) > 0 && v.At.Equal(at) {
			found = true
			if err := json.Unmarshal(v.Was, &was); err != nil {
				return e, invalid("the former values of job %v cannot be read: run holdfast doctor", h.Job.ID)
			}
		}
	}
	if !found {
		return e, invalid("job %v has no edit or redrive at %s that replaced a value: take the time from its story", h.Job.ID, at.UTC().Format(time.RFC3339Nano))
	}
	e = store.Edit{Args: was.Args, Priority: was.Priority, MaxAttempts: was.MaxAttempts}
	e.Reason = "restored what was there before " + at.UTC().Format(time.RFC3339Nano)
	if h.Job.State == holdfast.Failed {
		if was.Queue != nil || was.Tags != nil || was.DueAt != nil {
			e.Reason += ", except where and when it waits"
		}
		if e.Args == nil && e.Priority == nil && e.MaxAttempts == nil {
			return e, &holdfast.Error{Err: holdfast.ErrConflict, Job: h.Job.ID, Message: "job " + h.Job.ID.String() + " is failed: where and when it waits can be restored once it is queued again"}
		}
		return e, nil
	}
	e.Queue, e.Tags = was.Queue, was.Tags
	if was.DueAt != nil {
		delay := max(0, was.DueAt.Sub(h.Job.AsOf))
		e.Delay = &delay
	}
	return e, nil
}
