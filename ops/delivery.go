package ops

import (
	"context"
	"fmt"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/store"
)

// A Delivery is one notification: the job that carries it, with its attempts and its story.
type Delivery struct {
	Job      holdfast.Job    `json:"job"`
	Attempts []store.Attempt `json:"attempts"` // failed attempts and late ones, the oldest first
	Story    []StoryLine     `json:"story"`
}

// Deliveries returns the deliveries of a subscription, or of all subscriptions if of is zero, newest first. Of the filter,
// state, code, age, limit and cursor apply. The cursor is for the next page and empty on the last.
func (s *Service) Deliveries(ctx context.Context, of holdfast.ID, f store.Filter) (jobs []holdfast.Job, cursor string, err error) {
	f.Queue, f.Owner = subscription.Queue, ""
	if !of.IsZero() {
		f.Owner = subscription.Owner(of)
	}
	return s.store.Jobs(ctx, f)
}

// Delivery returns one delivery. A job that is not a delivery is ErrNotFound.
func (s *Service) Delivery(ctx context.Context, id holdfast.ID) (Delivery, error) {
	history, err := s.store.History(ctx, id)
	if err != nil {
		return Delivery{}, err
	}
	if err := isDelivery(history.Job); err != nil {
		return Delivery{}, err
	}
	return Delivery{Job: history.Job, Attempts: history.Attempts, Story: Story(history)}, nil
}

// Resend sends a delivery again and returns the id of the job that does it. A failed delivery is retried. For a complete or
// cancelled one a new job is made with the same events under the same ids, so that the receiver can detect the repetition.
// A delivery that has not ended is ErrConflict.
func (s *Service) Resend(ctx context.Context, i store.Intervention) (holdfast.ID, error) {
	by := Actor{Name: i.Actor, Reason: i.Reason, Request: i.Request}
	if err := by.check(); err != nil {
		return holdfast.ID{}, err
	}
	job, err := s.store.Job(ctx, i.Job)
	if err != nil {
		return holdfast.ID{}, err
	}
	if err := isDelivery(job); err != nil {
		return holdfast.ID{}, err
	}
	if i.Owner != "" && i.Owner != job.Owner {
		return holdfast.ID{}, &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf("there is no job %s: check the id", i.Job)}
	}
	switch job.State {
	case holdfast.Failed:
		_, err := s.store.Retry(ctx, i)
		return job.ID, err
	case holdfast.Complete, holdfast.Cancelled:
		again := holdfast.Draft{ID: holdfast.NewID(), Kind: job.Kind, Queue: job.Queue, Args: job.Args, Priority: job.Priority, Owner: job.Owner, Tags: job.Tags, Dependency: job.Dependency, MaxAttempts: job.MaxAttempts}
		event := by.event("", "resend")
		event.Job, event.Reason = job.ID, resent(again.ID, i.Reason)
		return again.ID, s.store.Apply(ctx, store.Change{Deliver: []holdfast.Draft{again}, Events: []store.Event{event}})
	}
	return holdfast.ID{}, &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("delivery %s has not ended (%s): wait, or retry it now: holdfast retry %s", job.ID, job.State, job.ID), Job: job.ID}
}

// resent is the reason of the event: it names the new job.
func resent(as holdfast.ID, reason string) string {
	if reason == "" {
		return "as " + as.String()
	}
	return fmt.Sprintf("as %s: %s", as, reason)
}

func isDelivery(job holdfast.Job) error {
	if job.Queue == subscription.Queue {
		return nil
	}
	return &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf("job %s is not a delivery: deliveries are in queue %s", job.ID, subscription.Queue), Job: job.ID}
}
