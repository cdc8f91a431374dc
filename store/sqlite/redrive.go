package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/statement"
	"zombiezen.com/go/sqlite"
)

// Redrive takes dead letters on their way, each on its own account, all in one transaction.
func (s *Store) Redrive(ctx context.Context, r holdfast.Redrive) ([]error, error) {
	if err := checkRedrive(&r); err != nil {
		return nil, err
	}
	answers := make([]error, len(r.Jobs))
	err := s.writer.write(ctx, func(t *tx) error {
		for i, job := range r.Jobs {
			answers[i] = t.redrive(&r, job)
			if said := (*holdfast.Error)(nil); answers[i] != nil && !errors.As(answers[i], &said) {
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

func checkRedrive(r *holdfast.Redrive) error {
	switch {
	case r.ID.IsZero():
		return invalid("a redrive without an id: give it one, and the same at every step")
	case r.Discard && (r.Patch != nil || r.Queue != ""):
		return invalid("a redrive that discards and changes jobs: do one of them")
	case r.Discard && r.Reason == "":
		return invalid("discarding jobs without a reason: say why nobody needs them any more")
	case r.Patch != nil && (len(r.Patch) > holdfast.MaxArgs || !json.Valid(r.Patch) || !utf8.Valid(r.Patch)):
		return invalid("a patch of %d bytes: give valid JSON of at most %d", len(r.Patch), holdfast.MaxArgs)
	}
	if probe := (holdfast.Draft{Kind: "probe", Queue: r.Queue}); probe.Prepare() != nil {
		return invalid("queue %.140q: use 1 to %d letters, digits and _ - . : /", r.Queue, holdfast.MaxName)
	}
	return checkActor(r.Actor, r.Reason)
}

// redrive takes one job. Whatever may refuse it is asked before the first row is written, so that a refusal leaves no trace.
func (t *tx) redrive(r *holdfast.Redrive, id holdfast.ID) error {
	if before, err := t.one("redriven-find", []any{r.ID, id}); before || err != nil {
		return err
	}
	i := holdfast.Intervention{Job: id, Actor: r.Actor, Reason: r.ID.String()}
	if r.Reason != "" {
		i.Reason += ": " + r.Reason
	}
	job, err := t.standing(i)
	if err != nil {
		return err
	}
	if job.state != holdfast.Failed || job.discarded {
		return conflict(id, "job %s is no dead letter any more: leave it out", id)
	}
	if r.Discard {
		return t.redriveAway(r, i, job)
	}
	if job.expired(t.now) {
		return tooLate(id)
	}
	change, err := t.revised(r, &job)
	if err != nil {
		return err
	}
	if err := t.reopen(i, &job); err != nil {
		return err
	}
	if err := change.write(t, id); err != nil {
		return err
	}
	i.Reason += change.said
	if err := t.anew(i, job, "redrive"); err != nil {
		return err
	}
	_, err = t.exec("redriven-add", r.ID, id, job.generation+1, t.now, nil)
	return err
}

func (t *tx) redriveAway(r *holdfast.Redrive, i holdfast.Intervention, job standing) error {
	if err := t.discard(i, job); err != nil {
		return err
	}
	_, err := t.exec("redriven-add", r.ID, i.Job, job.generation, t.now, "discarded")
	return err
}

// A revision is what a redrive changes in a job's facts.
type revision struct {
	args  json.RawMessage // nil: as they were
	queue string          // empty: as it was
	lane  int64
	said  string // for the story
}

// revised finds out what a redrive changes, and refuses what could not be stored.
func (t *tx) revised(r *holdfast.Redrive, job *standing) (change revision, err error) {
	if r.Patch != nil {
		var args string
		if _, err := t.one("redrive-args", []any{job.job}, &args); err != nil {
			return change, err
		}
		if !json.Valid([]byte(args)) {
			return change, conflict(job.job, "the arguments of job %s cannot be read, so they cannot be patched: run the doctor", job.job)
		}
		change.args = statement.Merge(json.RawMessage(args), r.Patch)
		if len(change.args) > holdfast.MaxArgs {
			return change, conflict(job.job, "the patched arguments of job %s have %d bytes: the limit is %d", job.job, len(change.args), holdfast.MaxArgs)
		}
		change.said += "; arguments patched"
	}
	if r.Queue != "" && r.Queue != job.queue {
		change.said += fmt.Sprintf("; moved from queue %s to %s", job.queue, r.Queue)
		change.queue, job.queue = r.Queue, r.Queue
		change.lane, err = t.lane(where{r.Queue, job.kind, job.owner, job.dependency})
	}
	return change, err
}

func (v *revision) write(t *tx, job holdfast.ID) (err error) {
	if v.args != nil {
		_, err = t.exec("redrive-patch", job, v.args)
	}
	if err == nil && v.queue != "" {
		_, err = t.exec("redrive-move", job, v.queue, v.lane)
	}
	return err
}

// Redriven counts what has become of the jobs a redrive took. What has ended since is read beside the writer, which only
// writes it down.
func (s *Store) Redriven(ctx context.Context, redrive holdfast.ID) (tally holdfast.Tally, err error) {
	ended := map[holdfast.ID]string{}
	err = s.reader.with(ctx, func(beside *session) error {
		return beside.rows("redriven-ended", []any{redrive}, func(st *sqlite.Stmt) error {
			ended[columnID(st, 0)] = st.ColumnText(1)
			return nil
		})
	})
	if err == nil && len(ended) > 0 {
		err = s.writer.write(ctx, func(t *tx) error {
			for job, state := range ended {
				if _, err := t.exec("redriven-end", redrive, job, state); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return tally, explain(err)
	}
	err = s.reader.with(ctx, func(beside *session) error {
		_, err := beside.one("redriven-count", []any{redrive}, &tally.Taken, &tally.InFlight, &tally.Complete, &tally.Failed, &tally.Cancelled, &tally.Discarded)
		return err
	})
	return tally, explain(err)
}
