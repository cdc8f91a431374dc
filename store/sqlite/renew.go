package sqlite

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"zombiezen.com/go/sqlite"
)

// Renew extends batches, all in one go, and tells only bad news.
func (s *Store) Renew(ctx context.Context, renewals []holdfast.Renewal, lease time.Duration) (told holdfast.Renewed, err error) {
	if err := rule.Lease(lease); err != nil {
		return told, err
	}
	if len(renewals) == 0 {
		return told, nil
	}
	err = s.writer.write(ctx, func(t *tx) error {
		told = holdfast.Renewed{}
		for i := range renewals {
			if err := renew(t, &renewals[i], lease, &told); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return holdfast.Renewed{}, err
	}
	return told, nil
}

func renew(t *tx, r *holdfast.Renewal, lease time.Duration, told *holdfast.Renewed) error {
	if _, err := t.exec("lease_renew", r.Batch, t.at(lease)); err != nil {
		return err
	}
	l, err := t.lease(r.Batch)
	if err != nil {
		return err
	}
	began := false
	for _, id := range r.Running {
		if m := l.find(id); m == nil {
			told.Lost = append(told.Lost, id)
		} else if !m.started {
			m.started, began = true, true
		}
	}
	for _, id := range r.Waiting {
		if l.find(id) == nil {
			told.Lost = append(told.Lost, id)
		}
	}
	if began {
		if err := t.keep(l); err != nil {
			return err
		}
	}
	return t.rows("cancel_list", nil, func(st *sqlite.Stmt) error {
		if job := columnID(st, 0); l.find(job) != nil {
			told.Cancelling = append(told.Cancelling, job)
		}
		return nil
	})
}

// Note keeps progress and checkpoints, from the holders of leases only.
func (s *Store) Note(ctx context.Context, notes []holdfast.Note) ([]error, error) {
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

// note keeps one note if its lease is held. The answer is for the caller; the error is the database's.
func note(t *tx, n *holdfast.Note) (answer, err error) {
	if err := n.Check(); err != nil {
		return err, nil
	}
	_, held, err := t.held(n.Batch, n.Job, n.Token)
	if err != nil {
		return nil, err
	}
	if held == nil {
		return rule.LeaseLost(n.Job), nil
	}
	if p := n.Progress; p != nil {
		if _, err := t.exec("save_progress", n.Job, min(max(p.Percent, 0), 100), orNull(clean(p.Note)), t.now); err != nil {
			return nil, err
		}
	}
	if n.Checkpoint != nil {
		_, err = t.exec("save_checkpoint", n.Job, n.Checkpoint)
	}
	return nil, err
}

// Present says that a worker process is alive.
func (s *Store) Present(ctx context.Context, p holdfast.Presence) error {
	if err := p.Check(); err != nil {
		return err
	}
	queues, _ := json.Marshal(slices.Concat([]string{}, p.Queues)) // texts always marshal, and nil must not read null
	kinds, _ := json.Marshal(slices.Concat([]string{}, p.Kinds))
	return s.writer.write(ctx, func(t *tx) (err error) {
		if p.For == 0 {
			_, err = t.exec("delete_worker", p.Worker)
		} else {
			_, err = t.exec("upsert_worker", clean(p.Worker), string(queues), string(kinds), p.Slots, t.now, t.at(p.For), orNull(clean(p.Version)), orNull(clean(p.Codes)), p.Policy, orNull(clean(p.Misses)))
		}
		for _, kind := range slices.Sorted(maps.Keys(p.Depends)) {
			if err == nil && p.For > 0 {
				_, err = t.exec("declare_kind", kind, p.Depends[kind])
			}
		}
		return err
	})
}
