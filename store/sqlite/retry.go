package sqlite

import (
	"context"

	"github.com/holdfastdev/holdfast"
)

// Retry sends a job round again at once, as a new generation with fresh counts.
func (s *Store) Retry(ctx context.Context, i holdfast.Intervention) (ahead int, err error) {
	if err := checkIntervention(i); err != nil {
		return 0, err
	}
	err = s.writer.write(ctx, func(t *tx) (err error) {
		ahead, err = retry(t, i)
		return err
	})
	if err != nil {
		return 0, err
	}
	return ahead, nil
}

func retry(t *tx, i holdfast.Intervention) (int, error) {
	job, err := t.standing(i)
	if err != nil {
		return 0, err
	}
	switch job.place {
	case "finished":
		err = t.reopen(i, &job)
	case "later":
		if job.waiting {
			return 0, conflict(i.Job, "job %s waits for other members of its group: it starts when they have ended", i.Job)
		}
		if job.failures == 0 && job.crashes == 0 && job.interrupts == 0 {
			return 0, conflict(i.Job, "job %s is already waiting to run", i.Job)
		}
		_, err = t.exec("later-drop", i.Job)
	case "leased":
		err = t.seize(i, &job)
	default:
		return 0, conflict(i.Job, "job %s is already waiting to run", i.Job)
	}
	if err == nil && job.expired(t.now) {
		err = tooLate(i.Job)
	}
	if err != nil {
		return 0, err
	}
	if err := t.anew(i, job, "manual retry"); err != nil {
		return 0, err
	}
	return t.ahead(job.queue, key{int64(job.priority), i.Job[:]})
}

func (s *standing) expired(now int64) bool { return s.expireAt != 0 && s.expireAt <= now }

func tooLate(job holdfast.ID) error {
	return conflict(job, "job %s could not start in time any more: its expiry has passed; enqueue it anew", job)
}

// anew begins the next generation of a job that waits nowhere any more, at once and with fresh counts.
func (t *tx) anew(i holdfast.Intervention, job standing, name string) error {
	if _, err := t.exec("ready-again", i.Job, job.token, 0, 0, 0, job.generation+1, t.now); err != nil {
		return err
	}
	if _, err := t.exec("operate-since", i.Job, t.now); err != nil {
		return err
	}
	t.wake(job.queue)
	if err := t.revive(i, job.group); err != nil {
		return err
	}
	return t.event(i, name, job.token, job.generation+1)
}

// reopen takes a failed job off its end.
func (t *tx) reopen(i holdfast.Intervention, job *standing) error {
	if job.state != holdfast.Failed {
		return conflict(i.Job, "job %s is %s: only a failed job can be retried", i.Job, job.state)
	}
	return t.unfinish(i, job)
}

// unfinish takes a job off its end. It needs its unique key again, and does without the retry if somebody else has it. In a restored store
// its token grows beyond all that were given before: nobody knows which.
func (t *tx) unfinish(i holdfast.Intervention, job *standing) error {
	if job.uniqueKey != "" {
		won, err := t.exec("unique-add", job.owner, job.kind, job.uniqueKey, i.Job)
		if err != nil {
			return err
		}
		var holder holdfast.ID
		if won == 0 {
			if _, err := t.one("unique-find", []any{job.owner, job.kind, job.uniqueKey}, &holder); err != nil {
				return err
			}
		}
		if won == 0 && holder != i.Job {
			return conflict(holder, "job %s has taken the unique key since: wait until it ends, or cancel it", holder)
		}
	}
	var floor int
	if _, err := t.one("restore-floor", nil, &floor); err != nil {
		return err
	}
	job.token = max(job.token, floor)
	_, err := t.exec("operate-unfinish", i.Job)
	return err
}

// seize takes a job from a worker that is stuck. The token grows, so that the worker's own word comes too late.
func (t *tx) seize(i holdfast.Intervention, job *standing) error {
	l := job.lease
	stuck := l.expires <= t.now || i.StuckAfter > 0 && l.claimed <= t.at(-i.StuckAfter)
	if !stuck {
		return conflict(i.Job, "job %s is being processed: cancel it, or wait until it ends", i.Job)
	}
	l.find(i.Job).left = true
	if err := t.keep(l); err != nil {
		return err
	}
	if _, err := t.exec("settle-cancel", i.Job); err != nil {
		return err
	}
	job.token++
	return t.interrupted(job.member, l, "taken from its worker by a manual retry")
}
