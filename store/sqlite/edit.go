package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/inspect"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Edit changes a queued or failed job, and returns it as it is then.
func (s *Store) Edit(ctx context.Context, e store.Edit) (job holdfast.Job, err error) {
	if err := e.Check(); err != nil {
		return holdfast.Job{}, err
	}
	err = s.writer.write(ctx, func(t *tx) error {
		shown := s.Inspector.On(txQuerier{t})
		if err := t.edit(shown, &e); err != nil {
			return err
		}
		job, err = shown.Job(context.Background(), e.Job) // the call is in its transaction, and its result is waited for
		return err
	})
	if err != nil {
		return holdfast.Job{}, err
	}
	return job, nil
}

// edit checks an edit, writes the facts, moves the job where it waits by its new facts, and records what was replaced.
// It raises the edit counter, so that a claim that has read the old facts plans again.
func (t *tx) edit(shown *inspect.Inspector, e *store.Edit) error {
	job, err := t.findJob(e.Intervention)
	if err != nil {
		return err
	}
	now, err := shown.Job(context.Background(), e.Job)
	if err != nil {
		return err
	}
	var args string
	if _, err := t.one("read_args", []any{e.Job}, &args); err != nil {
		return err
	}
	revised, err := rule.Edit(&now, json.RawMessage(args), e)
	if err != nil {
		return err
	}
	if job.place == "finished" { // it waits nowhere: a later retry uses its new facts
		err = t.updateFacts(job, revised, e)
	} else {
		err = t.putBack(job, now, revised, e)
	}
	if err != nil {
		return err
	}
	if _, err := t.exec("count_edit"); err != nil {
		return err
	}
	t.wake(revised.Queue)
	i := e.Intervention
	i.Reason = revised.Reason
	return t.addJobChange(i, "edit", job.token, job.generation, revised.Was)
}

// putBack removes the job from where it waits, changes its facts, and inserts it where it waits by these. A job that
// was set aside behind a held tag becomes ready: the next claim reads whether one of its tags is held.
func (t *tx) putBack(job jobState, now holdfast.Job, revised rule.Revision, e *store.Edit) error {
	aside, err := t.one("check_set_aside", []any{e.Job})
	if err == nil {
		err = t.removeQueued(e.Job)
	}
	if err == nil {
		err = t.updateFacts(job, revised, e)
	}
	if err != nil {
		return err
	}
	due := now.DueAt.UnixMicro()
	ready := job.place == "ready" || aside
	if e.Delay != nil {
		due = t.at(*e.Delay)
		ready = due <= t.now
	}
	switch {
	case job.waiting && e.Delay != nil && due <= t.now: // it no longer has a time of its own
		_, err = t.exec("wait_for_members", job.created, e.Job, job.token, job.generation)
	case job.waiting:
		_, err = t.exec("wait_for_members", due, e.Job, job.token, job.generation)
	case ready:
		_, err = t.exec("return_to_ready", e.Job, job.token, job.failures, job.crashes, job.releases, job.generation, dueUnlessCreated(due, job.created))
	default:
		_, err = t.exec("return_to_later", e.Job, job.token, job.failures, job.crashes, job.releases, job.generation, due)
	}
	return err
}

// dueUnlessCreated returns a due time, or nil if it is the creation time of a job that was never delayed.
func dueUnlessCreated(due, created int64) any {
	if due == created {
		return nil
	}
	return due
}

// updateFacts writes the changed facts.
func (t *tx) updateFacts(job jobState, revised rule.Revision, e *store.Edit) error {
	lane, err := t.lane(laneKey{revised.Queue, job.kind, job.owner, job.dependency})
	if err != nil {
		return err
	}
	var args, tags any
	if revised.Args != nil {
		args = revised.Args
	}
	if len(revised.Tags) > 0 {
		text, _ := json.Marshal(revised.Tags) // strings always marshal
		tags = string(text)
	}
	if _, err := t.exec("edit_job", e.Job, args, revised.Queue, lane, int64(revised.Priority), tags, revised.MaxAttempts); err != nil {
		return err
	}
	if e.Delay == nil || job.token > 0 {
		return nil
	}
	var run any
	if due := t.at(*e.Delay); due > t.now {
		run = due
	}
	_, err = t.exec("edit_time", e.Job, run)
	return err
}

// A txQuerier lets the inspector read inside a write transaction.
type txQuerier struct{ t *tx }

// Now returns when the call began.
func (q txQuerier) Now(context.Context) (time.Time, error) { return instant(q.t.now), nil }

// Query runs one statement in the transaction.
func (q txQuerier) Query(_ context.Context, sql string, args []any, each func(inspect.Row) error) error {
	return q.t.queryText(sql, args, func(st *sqlite.Stmt) error { return each(row{st}) })
}
