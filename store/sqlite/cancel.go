package sqlite

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Cancel ends a queued job at once, and asks the worker of a processing job to stop. It returns the state in which the
// job is then.
func (s *Store) Cancel(ctx context.Context, i store.Intervention) (state holdfast.State, err error) {
	if err := i.Check(); err != nil {
		return "", err
	}
	err = s.writer.write(ctx, func(t *tx) error {
		job, err := t.findJob(i)
		if err != nil {
			return err
		}
		if state, err = rule.Cancel(job.rule()); err != nil {
			return err
		}
		if state == holdfast.Processing {
			return t.requestCancel(i, job)
		}
		return t.cancelQueued(i, job)
	})
	if err != nil {
		return "", err
	}
	s.ends.Ended(i.Job)
	return state, nil
}

// requestCancel writes a request that the job's settlement obeys. If there is one already, it stays as it is.
func (t *tx) requestCancel(i store.Intervention, job jobState) error {
	first, err := t.exec("cancel_add", i.Job, t.now, i.Actor, nullIfEmpty(i.Reason))
	if err != nil || first == 0 {
		return err
	}
	t.wakeup.cancel = true
	return t.addJobEvent(i, "cancel", job.token, job.generation)
}

// cancelQueued ends a queued job as cancelled.
func (t *tx) cancelQueued(i store.Intervention, job jobState) error {
	if err := t.removeQueued(i.Job); err != nil {
		return err
	}
	_, err := t.exec("finish", i.Job, job.token, job.failures, job.crashes, job.releases, job.generation, nil, t.now, holdfast.Cancelled, nil, nil, nil, nil, false)
	if err != nil {
		return err
	}
	t.emit(store.EventCancelled, &i.Job, job.token)
	if _, err := t.exec("unique_free", i.Job, false); err != nil {
		return err
	}
	if err := leaveLine(unbatched{t}, t.now, i.Job, false); err != nil {
		return err
	}
	return t.addJobEvent(i, "cancel", job.token, job.generation)
}
