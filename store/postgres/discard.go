package postgres

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Discard removes a failed job from the dead letters. It stays failed.
func (s *Store) Discard(ctx context.Context, i store.Intervention) error {
	if err := rule.CheckDiscard(&i); err != nil {
		return err
	}
	var back startedLines
	err := s.intervene(ctx, "discard the job", i, func(_ context.Context, p *pipeline, at *lockedJob) error {
		if err := rule.Discard(at.rule()); err != nil {
			return err
		}
		back = startedLines{}
		p.Queue(s.sql["discard"], i.Job.String(), timestamp(at.now))
		if at.ordered {
			s.leaveLines(p, []holdfast.ID{i.Job}, &back)
		}
		s.recordEvent(p, at, "discard", i)
		return nil
	})
	if err == nil {
		s.announceLines(&back)
	}
	return err
}
