package sqlite

import (
	"context"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Discard removes a failed job from the dead letters. Its rows stay.
func (s *Store) Discard(ctx context.Context, i store.Intervention) error {
	if err := rule.CheckDiscard(&i); err != nil {
		return err
	}
	return s.writer.write(ctx, func(t *tx) error {
		job, err := t.findJob(i)
		if err != nil {
			return err
		}
		if err := rule.Discard(job.rule()); err != nil {
			return err
		}
		return t.discard(i, job)
	})
}

func (t *tx) discard(i store.Intervention, job jobState) error {
	if _, err := t.exec("discard", i.Job, t.now); err != nil {
		return err
	}
	if err := leaveLine(unbatched{t}, t.now, i.Job, false); err != nil {
		return err
	}
	return t.addJobEvent(i, "discard", job.token, job.generation)
}
