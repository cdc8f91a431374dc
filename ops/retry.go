package ops

import (
	"context"
	"fmt"

	"github.com/holdfastdev/holdfast"
)

// Retry sends one job round again at once, on a person's word: a failed job, one that waits for an automatic retry (which it
// replaces), or one that is stuck. Its counts start afresh, who asked and why is kept in its story, and the answer is how
// many jobs of its queue are claimed before it. A job whose source is gone, or that is in no state to be retried, is
// ErrConflict; one that is not the asker's is ErrNotFound.
func (s *Service) Retry(ctx context.Context, i holdfast.Intervention) (ahead int, err error) {
	if i.StuckAfter == 0 {
		i.StuckAfter = s.cfg.StuckAfter
	}
	if err := s.checkSource(ctx, i); err != nil {
		return 0, err
	}
	return s.store.Retry(ctx, i)
}

// checkSource asks the application whether the job can work at all. Whether the job exists, is the asker's and may be
// retried is for the store to say, in one transaction with the retry itself.
func (s *Service) checkSource(ctx context.Context, i holdfast.Intervention) error {
	if len(s.cfg.Sources) == 0 {
		return nil
	}
	job, err := s.store.Job(ctx, i.Job)
	if err != nil {
		return err
	}
	source := s.cfg.Sources[job.Kind]
	if source == nil || (i.Owner != "" && i.Owner != job.Owner) {
		return nil
	}
	if err := source(ctx, job); err != nil {
		return &holdfast.Error{Kind: holdfast.ErrConflict, Message: fmt.Sprintf("job %s cannot be retried: what it works on is gone; start over with a new job", i.Job), Job: i.Job, Cause: err}
	}
	return nil
}
