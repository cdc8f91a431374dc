package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Note stores progress and checkpoints of jobs whose lease is held. Each note has its own answer; ErrLeaseLost if the job is not a member of the
// batch or the token differs.
func (s *Store) Note(ctx context.Context, notes []store.Note) ([]error, error) {
	if len(notes) == 0 {
		return []error{}, nil
	}
	batches := make([]holdfast.ID, len(notes))
	for i := range notes {
		batches[i] = notes[i].Batch
	}
	answers := make([]error, len(notes))
	err := s.withRetries(ctx, "store progress", true, func(ctx context.Context) error {
		return s.transact(ctx, s.work, func(p *pipeline) error {
			held, now, err := s.lockBatches(ctx, p, batches)
			if err != nil {
				return err
			}
			for i := range notes {
				if answers[i] = checkNote(held, &notes[i]); answers[i] == nil {
					s.note(p, &notes[i], now)
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// note queues one note.
func (s *Store) note(p *pipeline, n *store.Note, now time.Time) {
	var checkpoint, percent, text any
	if n.Checkpoint != nil {
		checkpoint = string(n.Checkpoint)
	}
	if n.Progress != nil {
		percent, text = min(max(n.Progress.Percent, 0), 100), cleanText(n.Progress.Note)
	}
	p.Queue(s.sql["save_note"], n.Job.String(), checkpoint, percent, text, timestamp(now))
}

// checkNote checks a note against the locked batches.
func checkNote(held []*batchRow, n *store.Note) error {
	if err := n.Check(); err != nil {
		return err
	}
	i := slices.IndexFunc(held, func(l *batchRow) bool { return l.id == n.Batch })
	if i < 0 {
		return rule.LeaseLost(n.Job)
	}
	if m := held[i].find(n.Job); m == nil || m.token != n.Token {
		return rule.LeaseLost(n.Job)
	}
	return nil
}
