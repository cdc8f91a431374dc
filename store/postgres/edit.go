package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/inspect"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Edit changes a queued or failed job and returns it as it is afterwards. If the job moves to a lane that does not exist, the lane is created first,
// outside the transaction.
func (s *Store) Edit(ctx context.Context, e store.Edit) (job holdfast.Job, err error) {
	if err := e.Check(); err != nil {
		return holdfast.Job{}, err
	}
	lane, err := s.laneOf(ctx, &e)
	if err != nil {
		return holdfast.Job{}, err
	}
	var back readyPlaces
	err = s.intervene(ctx, "edit the job", e.Intervention, func(ctx context.Context, p *pipeline, at *lockedJob) error {
		back = readyPlaces{}
		shown := s.Inspector.On(txQuerier{p, at.now})
		if err := s.edit(ctx, editCall{p, at, shown, &back}, &e, lane); err != nil {
			return err
		}
		if err := p.flush(ctx); err != nil {
			return err
		}
		job, err = shown.Job(ctx, e.Job)
		return err
	})
	if err != nil {
		return holdfast.Job{}, err
	}
	s.planner.noteJobs(e.Job)
	s.announce(&back)
	return job, nil
}

// laneOf returns the lane that an edit moves its job to, or nil if it does not move. If the caller names another owner than the job's, no lane is
// created.
func (s *Store) laneOf(ctx context.Context, e *store.Edit) (lane *int32, err error) {
	if e.Queue == nil {
		return nil, nil
	}
	to := entry{Draft: &holdfast.Draft{Queue: *e.Queue}}
	there := false
	err = s.withRetries(ctx, "edit the job", true, func(ctx context.Context) error {
		return s.work.query(ctx, s.sql["edit_lane"], []any{e.Job.String()}, func(scan func(...any) error) error {
			there = true
			return scan(&to.Kind, &to.Owner, &to.Dependency)
		})
	})
	if err != nil || !there || e.Owner != "" && e.Owner != to.Owner {
		return nil, err
	}
	found := []entry{to}
	err = s.lanes.find(ctx, s.work, found)
	return &found[0].lane, err
}

// An editCall is one edit in progress: the locked job, a reader in the same transaction, and where the job becomes claimable.
type editCall struct {
	p     *pipeline
	at    *lockedJob
	shown *inspect.Inspector
	back  *readyPlaces
}

// edit decides the edit and queues its statements. The ready or later row is deleted and inserted again, never updated, so that a claim that read the
// old facts does not find the row.
func (s *Store) edit(ctx context.Context, in editCall, e *store.Edit, lane *int32) error {
	now, err := in.shown.Job(ctx, e.Job)
	if err != nil {
		return err
	}
	var args string
	var aside bool
	in.p.queueRow(s.sql["read_edit_state"], []any{e.Job.String()}, &args, &aside)
	if err := in.p.flush(ctx); err != nil {
		return err
	}
	revised, err := rule.Edit(&now, json.RawMessage(args), e)
	if err != nil {
		return err
	}
	switch in.at.place {
	case inReady:
		in.p.Queue(s.sql["delete_ready"], e.Job.String())
	case inLater:
		in.p.Queue(s.sql["delete_later"], e.Job.String())
	}
	var patched, tags *string
	if revised.Args != nil {
		text := string(revised.Args)
		patched = &text
	}
	if len(revised.Tags) > 0 {
		text := textArray(revised.Tags)
		tags = &text
	}
	in.p.Queue(s.sql["edit_job"], e.Job.String(), patched, revised.Queue, lane, revised.Priority, tags, revised.MaxAttempts)
	if in.at.place != inFinished { // a failed job has no such row; a later retry uses its new facts
		s.queueReturn(in, now, e, aside)
	}
	i := e.Intervention
	i.Reason = revised.Reason
	s.recordChange(in.p, in.at, "edit", i, revised.Was)
	return nil
}

// queueReturn queues the insertion of the job where it waits with its new facts. A job that was set aside behind a held tag becomes claimable: the
// next claim checks its new tags.
func (s *Store) queueReturn(in editCall, now holdfast.Job, e *store.Edit, aside bool) {
	due, m := now.DueAt, &in.at.member
	ready := in.at.place == inReady || aside
	if e.Delay != nil {
		due = in.at.now.Add(e.Delay.Truncate(time.Microsecond))
		ready = !due.After(in.at.now)
		var run *string
		if !ready {
			text := timestamp(due)
			run = &text
		}
		if m.token == 0 {
			in.p.Queue(s.sql["edit_time"], e.Job.String(), run)
		}
		if in.at.waits && ready { // it waits for other members only
			due = now.CreatedAt
		}
	}
	var n moveRows
	n.add(m)
	if !ready || in.at.waits {
		in.p.Queue(s.sql["edit_later"], append([]any{timestamp(due), in.at.waits}, n.args()...)...)
		return
	}
	var since *string // nil: due since its creation
	if !due.Equal(now.CreatedAt) {
		text := timestamp(due)
		since = &text
	}
	var queue string
	var at place
	in.p.queueRows(s.sql["ready_add gently"], append([]any{since}, n.args()...), []any{&queue, &at.lane, &at.priority}, func() error {
		in.back.add(queue, at)
		return nil
	})
}

// A txQuerier lets the inspector read in a transaction.
type txQuerier struct {
	p   *pipeline
	now time.Time
}

// Now returns the time that the transaction read.
func (q txQuerier) Now(context.Context) (time.Time, error) { return q.now.UTC(), nil }

// Query runs one statement in the transaction.
func (q txQuerier) Query(ctx context.Context, sql string, args []any, each func(inspect.Row) error) error {
	rows, err := q.p.conn.Query(ctx, q.p.schema.qualify(sql), uuidArgs(args)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(row{rows, rows.RawValues()}); err != nil {
			return err
		}
	}
	return rows.Err()
}
