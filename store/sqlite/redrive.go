package sqlite

import (
	"context"
	"encoding/json"
	"errors"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Redrive retries or discards dead letters, each independently of the others, all in one transaction. The answers are
// in the order of the jobs.
func (s *Store) Redrive(ctx context.Context, r store.Redrive) ([]error, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	answers := make([]error, len(r.Jobs))
	err := s.writer.write(ctx, func(t *tx) error {
		for i, job := range r.Jobs {
			answers[i] = t.redrive(&r, job)
			if refusal := (*holdfast.Error)(nil); answers[i] != nil && !errors.As(answers[i], &refusal) {
				return answers[i]
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// redrive takes one job. All checks that may refuse it come before the first write, so that a refusal leaves no trace.
// A job that this redrive has taken before is not taken again.
func (t *tx) redrive(r *store.Redrive, id holdfast.ID) error {
	if before, err := t.one("find_redriven", []any{r.ID, id}); before || err != nil {
		return err
	}
	i := store.Intervention{Job: id, Actor: r.Actor}
	job, err := t.findJob(i)
	if err != nil {
		return err
	}
	var args string
	if r.Patch != nil {
		if _, err := t.one("read_args", []any{id}, &args); err != nil {
			return err
		}
	}
	revised, err := rule.Redrive(job.rule(), job.queue, json.RawMessage(args), r, instant(t.now))
	if err != nil {
		return err
	}
	i.Reason = rule.RedriveReason(r)
	if r.Discard {
		return t.redriveDiscard(r, i, job)
	}
	if err := t.reopenJob(i, &job); err != nil {
		return err
	}
	if err := t.applyRevision(&job, &revised); err != nil {
		return err
	}
	if err := t.beginGeneration(i, job, "redrive", revised); err != nil {
		return err
	}
	_, err = t.exec("record_redrive", r.ID, id, job.generation+1, t.now, nil)
	return err
}

func (t *tx) redriveDiscard(r *store.Redrive, i store.Intervention, job jobState) error {
	if err := t.discard(i, job); err != nil {
		return err
	}
	_, err := t.exec("record_redrive", r.ID, i.Job, job.generation, t.now, "discarded")
	return err
}

// applyRevision writes what a redrive changes in the facts of a job.
func (t *tx) applyRevision(job *jobState, revised *rule.Revision) error {
	if revised.Args != nil {
		if _, err := t.exec("update_args", job.job, revised.Args); err != nil {
			return err
		}
	}
	if revised.Queue == job.queue {
		return nil
	}
	lane, err := t.lane(laneKey{revised.Queue, job.kind, job.owner, job.dependency})
	if err != nil {
		return err
	}
	job.queue = revised.Queue
	_, err = t.exec("update_queue", job.job, revised.Queue, lane)
	return err
}

// Redriven counts what has become of the jobs that a redrive took. Ends that are not recorded yet are read beside the
// writer, which only records them.
func (s *Store) Redriven(ctx context.Context, redrive holdfast.ID) (counts store.RedriveCounts, err error) {
	ended := map[holdfast.ID]string{}
	err = s.reader.with(ctx, func(beside *session) error {
		return beside.rows("find_ended_redriven", []any{redrive}, func(st *sqlite.Stmt) error {
			ended[columnID(st, 0)] = st.ColumnText(1)
			return nil
		})
	})
	if err == nil && len(ended) > 0 {
		err = s.writer.write(ctx, func(t *tx) error {
			for job, state := range ended {
				if _, err := t.exec("update_redriven", redrive, job, state); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return counts, explain(err)
	}
	err = s.reader.with(ctx, func(beside *session) error {
		_, err := beside.one("count_redriven", []any{redrive}, &counts.Taken, &counts.InFlight, &counts.Complete, &counts.Failed, &counts.Cancelled, &counts.Discarded)
		return err
	})
	return counts, explain(err)
}
