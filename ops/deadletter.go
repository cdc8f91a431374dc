package ops

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// A DeadLetter is a job that failed for good and waits for a person.
type DeadLetter struct {
	Job  holdfast.Job `json:"job"`
	Code failure.Code `json:"code"` // what failed it: who is to blame, and what can be done
}

// DeadLetters lists failed jobs that nobody has discarded, newest first. A dead letter leaves the list by Retry or Discard.
func (s *Service) DeadLetters(ctx context.Context, f holdfast.Filter) (letters []DeadLetter, cursor string, err error) {
	f.DeadLetters = true
	jobs, cursor, err := s.store.Jobs(ctx, f)
	if err != nil || len(jobs) == 0 {
		return nil, cursor, err
	}
	known, err := s.taxonomy(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, job := range jobs {
		letters = append(letters, DeadLetter{Job: job, Code: codeOf(known, job.LastFailure)})
	}
	return letters, cursor, nil
}

// Discard takes a failed job off the dead letters, for good unless it is retried. A reason is required.
func (s *Service) Discard(ctx context.Context, i holdfast.Intervention) error {
	return s.store.Discard(ctx, i)
}
