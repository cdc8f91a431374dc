package sqlite

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Retry makes a job claimable at once, as a new generation with counters at zero. It returns how many jobs are ahead of
// it.
func (s *Store) Retry(ctx context.Context, i store.Intervention) (ahead int, err error) {
	if err := i.Check(); err != nil {
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

func retry(t *tx, i store.Intervention) (int, error) {
	job, err := t.findJob(i)
	if err != nil {
		return 0, err
	}
	if err := rule.Retry(job.rule(), i.StuckAfter, instant(t.now)); err != nil {
		return 0, err
	}
	switch job.place {
	case "finished":
		err = t.reopenJob(i, &job)
	case "leased":
		err = t.takeFromWorker(i, &job)
	default:
		_, err = t.exec("delete_later", i.Job)
	}
	if err != nil {
		return 0, err
	}
	if err := t.beginGeneration(i, job, "manual retry", rule.Revision{Reason: i.Reason}); err != nil {
		return 0, err
	}
	return t.countAhead(job.queue, lane.Key{Priority: int16(job.priority), Job: i.Job})
}

// beginGeneration begins the next generation of a job that was removed from its place: it is ready at once, with
// counters at zero. The revision has the reason of the event and the values that were replaced.
func (t *tx) beginGeneration(i store.Intervention, job jobState, name string, revised rule.Revision) error {
	if err := t.restart(i.Job, job.token, job.generation+1); err != nil {
		return err
	}
	if _, err := t.exec("set_generation_start", i.Job, t.now); err != nil {
		return err
	}
	t.wake(job.queue)
	if err := t.reopenGroups(i, job.group); err != nil {
		return err
	}
	i.Reason = revised.Reason
	return t.addJobChange(i, name, job.token, job.generation+1, revised.Was)
}

// reopenJob removes the end of a job. The job needs its unique key again, and is refused if another job has it. In a
// restored store its token is raised above all tokens that were given out before the restore, because it is not known
// which were.
func (t *tx) reopenJob(i store.Intervention, job *jobState) error {
	if job.uniqueKey != "" {
		added, err := t.exec("unique_add", job.owner, job.kind, job.uniqueKey, i.Job)
		if err != nil {
			return err
		}
		var holder holdfast.ID
		if added == 0 {
			if _, err := t.one("unique_find", []any{job.owner, job.kind, job.uniqueKey}, &holder); err != nil {
				return err
			}
		}
		if added == 0 && holder != i.Job {
			return rule.KeyHeld(holder, i.Job)
		}
	}
	var floor int
	if _, err := t.one("read_token_floor", nil, &floor); err != nil {
		return err
	}
	job.token = max(job.token, floor)
	_, err := t.exec("delete_finished", i.Job)
	return err
}

// takeFromWorker takes a job from a stuck worker. Its token grows, so a later settlement of that worker is refused.
func (t *tx) takeFromWorker(i store.Intervention, job *jobState) error {
	l := job.batch
	l.find(i.Job).removed = true
	if err := t.saveBatch(l); err != nil {
		return err
	}
	if _, err := t.exec("cancel_drop", i.Job); err != nil {
		return err
	}
	job.token++
	return t.recordRelease(job.member, l, "taken from its worker by a manual retry")
}
