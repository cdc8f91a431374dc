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
	for _, job := range jobs {
		letters = append(letters, DeadLetter{Job: job, Code: s.code(job.LastFailure)})
	}
	return letters, cursor, err
}

// Discard takes a failed job off the dead letters, for good unless it is retried. A reason is required.
func (s *Service) Discard(ctx context.Context, i holdfast.Intervention) error {
	return s.store.Discard(ctx, i)
}

// code explains a failure. A name that nobody registered keeps its name and says what is known.
func (s *Service) code(f *holdfast.Failure) failure.Code {
	if f == nil {
		return failure.Code{}
	}
	if code, known := s.cfg.Taxonomy.Code(f.Code); known {
		return code
	}
	return failure.Code{Name: f.Code, Category: f.Category, Message: f.Message, Remedy: "register this code with what an operator can do about it"}
}
