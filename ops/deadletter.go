package ops

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// A DeadLetter is a job that failed for good and needs a decision.
type DeadLetter struct {
	Job  holdfast.Job `json:"job"`
	Code failure.Code `json:"code"` // of its last failure: who can fix it, and how
}

// DeadLetters returns failed jobs that were not discarded, newest first. Retry, Redrive and Discard remove a job from the list.
func (s *Service) DeadLetters(ctx context.Context, f store.Filter) (letters []DeadLetter, cursor string, err error) {
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

// Discard removes a failed job from the dead letters. It stays failed and can still be retried. A reason is required.
func (s *Service) Discard(ctx context.Context, i store.Intervention) error {
	return s.store.Discard(ctx, i)
}
