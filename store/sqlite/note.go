package sqlite

import (
	"context"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Note saves progress and checkpoints of jobs whose lease the caller holds.
func (s *Store) Note(ctx context.Context, notes []store.Note) ([]error, error) {
	if len(notes) == 0 {
		return nil, nil
	}
	answers := make([]error, len(notes))
	err := s.writer.write(ctx, func(t *tx) (err error) {
		for i := range notes {
			if answers[i], err = note(t, &notes[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// note saves one note if the caller holds the lease. answer is for the caller; err is the database's.
func note(t *tx, n *store.Note) (answer, err error) {
	if err := n.Check(); err != nil {
		return err, nil
	}
	_, held, err := t.heldMember(n.Batch, n.Job, n.Token)
	if err != nil {
		return nil, err
	}
	if held == nil {
		return rule.LeaseLost(n.Job), nil
	}
	if p := n.Progress; p != nil {
		if _, err := t.exec("save_progress", n.Job, min(max(p.Percent, 0), 100), nullIfEmpty(clean(p.Note)), t.now); err != nil {
			return nil, err
		}
	}
	if n.Checkpoint != nil {
		_, err = t.exec("save_checkpoint", n.Job, n.Checkpoint)
	}
	return nil, err
}
