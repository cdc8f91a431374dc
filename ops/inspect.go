package ops

import (
	"context"

	"github.com/holdfastdev/holdfast"
)

// Job tells all about one job.
func (s *Service) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	return s.store.Job(ctx, id)
}

// Jobs lists what matches, newest first. The cursor leads to the next page and is empty on the last.
func (s *Service) Jobs(ctx context.Context, f holdfast.Filter) (jobs []holdfast.Job, cursor string, err error) {
	return s.store.Jobs(ctx, f)
}

// History is all that is kept of a job's past: Story tells it, and policies are tried out on it.
func (s *Service) History(ctx context.Context, id holdfast.ID) (holdfast.History, error) {
	return s.store.History(ctx, id)
}

// Workers lists the worker processes that are believed to be alive.
func (s *Service) Workers(ctx context.Context) ([]holdfast.Presence, error) {
	return s.store.Workers(ctx)
}
