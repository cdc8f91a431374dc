package inspect

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// History returns everything that the store has recorded about one job. It takes several statements; if the job has
// changed in between, they are run again, so that the parts belong together.
func (i *Inspector) History(ctx context.Context, id holdfast.ID) (store.History, error) {
	job, err := i.Job(ctx, id)
	for range 4 {
		if err != nil {
			return store.History{}, err
		}
		history := store.History{}
		if history.Events, err = i.events(ctx, id); err != nil {
			return store.History{}, err
		}
		if history.Attempts, err = i.attempts(ctx, id, history.Events); err != nil {
			return store.History{}, err
		}
		before := job
		job, err = i.Job(ctx, id)
		history.Job = job
		if err == nil && job.Digest() == before.Digest() {
			return history, nil
		}
	}
	if err != nil {
		return store.History{}, err
	}
	return store.History{}, &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "the job changes faster than its history can be read: try again"}
}

// Events returns the story of a subject that is not a job, newest first, at most limit events.
func (i *Inspector) Events(ctx context.Context, subject string, limit int) ([]store.Event, error) {
	if subject == "" || !utf8.ValidString(subject) || strings.ContainsRune(subject, 0) || limit < 0 {
		return nil, invalid("%d events of %.40q: name a subject (breaker/gateway, hold/queue/mail) and a limit that is not negative", limit, subject)
	}
	if limit == 0 {
		limit = usualPage
	}
	return i.readEvents(ctx, "inspect_subject_events", store.Event{Subject: subject}, subject, limit)
}

func (i *Inspector) events(ctx context.Context, id holdfast.ID) ([]store.Event, error) {
	return i.readEvents(ctx, "inspect_job_events", store.Event{Job: id}, id)
}

// readEvents reads the events of one job or subject.
func (i *Inspector) readEvents(ctx context.Context, name string, about store.Event, args ...any) ([]store.Event, error) {
	var events []store.Event
	err := i.q.Query(ctx, i.statements[name], args, func(r Row) error {
		event := about
		event.At, event.Name, event.Actor, event.Reason, event.Token, event.Generation, event.Request = r.Time(0), r.Text(1), r.Text(2), r.Text(3), r.Int(4), r.Int(5), r.Text(6)
		if was := r.Text(7); was != "" {
			event.Was = json.RawMessage(was)
		}
		events = append(events, event)
		return nil
	})
	return events, err
}

// attempts reads the applied attempts and the late results, and puts each late result where it arrived.
func (i *Inspector) attempts(ctx context.Context, id holdfast.ID, events []store.Event) ([]store.Attempt, error) {
	applied, err := i.readAttempts(ctx, "inspect_attempts", id)
	if err != nil {
		return nil, err
	}
	late, err := i.readAttempts(ctx, "inspect_late_results", id)
	if err != nil {
		return nil, err
	}
	all := make([]store.Attempt, 0, len(applied)+len(late))
	for _, attempt := range applied {
		for len(late) > 0 && late[0].EndedAt.Before(attempt.EndedAt) && late[0].Token < attempt.Token {
			all = append(all, placeLate(late[0], applied, events))
			late = late[1:]
		}
		all = append(all, attempt)
	}
	for _, attempt := range late {
		all = append(all, placeLate(attempt, applied, events))
	}
	return all, nil
}

func (i *Inspector) readAttempts(ctx context.Context, name string, id holdfast.ID) ([]store.Attempt, error) {
	var attempts []store.Attempt
	err := i.q.Query(ctx, i.statements[name], []any{id}, func(r Row) error {
		attempts = append(attempts, store.Attempt{
			Job: id, Token: r.Int(0), Generation: r.Int(1), Worker: r.Text(2), StartedAt: r.Time(3), EndedAt: r.Time(4),
			To: holdfast.State(r.Text(5)), Charge: store.Charge(r.Text(6)), Count: r.Int(7), Limit: r.Int(8), DueAt: r.Time(9), Why: r.Text(10), Said: holdfast.State(r.Text(19)),
			Failure: readFailure(r, 11), Repeats: r.Int(20), Since: r.Time(21),
		})
		return nil
	})
	return attempts, err
}

// placeLate completes a late result from what is certain: the worker that lost the lease is named by the attempt that
// followed, and the generation is that of the last manual retry or redrive before its claim.
func placeLate(late store.Attempt, applied []store.Attempt, events []store.Event) store.Attempt {
	late.Late = true
	late.Generation = 1
	for _, event := range events {
		if (event.Name == "manual retry" || event.Name == "redrive") && event.Token < late.Token {
			late.Generation = event.Generation
		}
	}
	for _, attempt := range applied {
		if attempt.Token >= late.Token {
			late.Worker = attempt.Worker
			break
		}
	}
	return late
}
