package sqlite

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
	"zombiezen.com/go/sqlite"
)

// Renew extends batches, all in one transaction. The answer names only jobs that need attention: those whose lease is
// lost, and those that are to be cancelled.
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

// renew extends one batch, marks its running jobs as started, and adds its lost and cancelled jobs to renewed.
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
