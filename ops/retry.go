package ops

import (
	"context"
	"fmt"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Retry sends a job to its queue at once: a failed job, a job that waits for an automatic retry (which it replaces), or a
// stuck job. Its counters start at zero, the request is recorded in its story, and the result is how many jobs of its queue
// are ahead of it. A job whose source no longer exists, or that is in another state, is ErrConflict; a job of another owner
// is ErrNotFound.
func (s *Service) Retry(ctx context.Context, i store.Intervention) (ahead int, err error) {
	if i.StuckAfter == 0 {
		i.StuckAfter = s.cfg.StuckAfter
	}
	if err := s.checkSource(ctx, i); err != nil {
		return 0, err
	}
	return s.store.Retry(ctx, i)
}

// checkSource asks the application whether the job's source still exists. The store checks everything else, in one
// transaction with the retry: whether the job exists, belongs to the owner and may be retried.
func (s *Service) checkSource(ctx context.Context, i store.Intervention) error {
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
		return &holdfast.Error{Err: holdfast.ErrConflict, Message: fmt.Sprintf("job %s cannot be retried: its source no longer exists; enqueue a new job", i.Job), Job: i.Job, Cause: err}
	}
	return nil
}
