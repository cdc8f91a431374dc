package ops

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Job returns one job.
func (s *Service) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	return s.store.Job(ctx, id)
}

// Jobs returns the jobs that match, newest first. The cursor is for the next page and empty on the last.
func (s *Service) Jobs(ctx context.Context, f store.Filter) (jobs []holdfast.Job, cursor string, err error) {
	return s.store.Jobs(ctx, f)
}

// History returns everything that is recorded about a job. Story is made from it, and policies are tried out on it.
func (s *Service) History(ctx context.Context, id holdfast.ID) (store.History, error) {
	return s.store.History(ctx, id)
}

// Workers returns the worker processes whose reports are valid.
func (s *Service) Workers(ctx context.Context) ([]store.WorkerInfo, error) {
	return s.store.Workers(ctx)
}
