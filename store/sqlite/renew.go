package sqlite

import (
	"context"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Renew extends batches, all in one transaction. The answer names only jobs that need attention: those whose lease is
// lost, and those that are to be cancelled.
func (s *Store) Renew(ctx context.Context, renewals []store.Renewal, lease time.Duration) (renewed store.RenewResult, err error) {
	if err := rule.Lease(lease); err != nil {
		return renewed, err
	}
	if len(renewals) == 0 {
		return renewed, nil
	}
	err = s.writer.write(ctx, func(t *tx) error {
		renewed = store.RenewResult{}
		for i := range renewals {
			if err := renew(t, &renewals[i], lease, &renewed); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.RenewResult{}, err
	}
	return renewed, nil
}

// renew extends one batch, marks its running jobs as started, and adds its lost and cancelled jobs to renewed.
func renew(t *tx, r *store.Renewal, lease time.Duration, renewed *store.RenewResult) error {
	if _, err := t.exec("batch_renew", r.Batch, t.at(lease)); err != nil {
		return err
	}
	l, err := t.batch(r.Batch)
	if err != nil {
		return err
	}
	began := false
	for _, id := range r.Running {
		if m := l.find(id); m == nil {
			renewed.Lost = append(renewed.Lost, id)
		} else if !m.started {
			m.started, began = true, true
		}
	}
	for _, id := range r.Waiting {
		if l.find(id) == nil {
			renewed.Lost = append(renewed.Lost, id)
		}
	}
	if began {
		if err := t.saveBatch(l); err != nil {
			return err
		}
	}
	return t.rows("cancel_list", nil, func(st *sqlite.Stmt) error {
		if job := columnID(st, 0); l.find(job) != nil {
			renewed.Cancelling = append(renewed.Cancelling, job)
		}
		return nil
	})
}
