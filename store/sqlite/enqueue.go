package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Enqueue makes the drafts durable, all or none.
func (s *Store) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	prepared, err := prepareAll(drafts, rule.Drafts)
	if err == nil {
		err = s.space.check()
	}
	if err != nil || len(drafts) == 0 {
		return nil, err
	}
	var receipts []holdfast.Receipt
	submit, into := s.writer.writeShared, func(t *tx) executor { return t }
	for i := range prepared {
		if len(prepared[i].After)+len(prepared[i].When) > 0 || prepared[i].Step != "" {
			submit = s.writer.write // a draft that waits for members, or has a name, reads rows that other calls may have added
		}
		if prepared[i].Replace != nil || prepared[i].Order != "" {
			submit, into = s.writer.write, func(t *tx) executor { return unbatched{t} } // it changes rows that other calls, or this one, may have added
		}
	}
	err = submit(ctx, func(t *tx) (err error) {
		receipts, err = enqueue(into(t), t.now, prepared)
		t.wakeQueues(prepared)
		return err
	})
	if violatesConstraint(err) || len(prepared) > 1 && errors.Is(err, holdfast.ErrConflict) {
		// A draft conflicts with another job. Only inserting row by row shows which draft is the first to do so, and
		// lets existing keys answer with their jobs.
		err = s.writer.write(ctx, func(t *tx) error {
			receipts, err = enqueue(unbatched{t}, t.now, prepared)
			t.wakeQueues(prepared)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	s.planner.noteEnqueued(prepared)
	return receipts, nil
}

// enqueueAll enqueues prepared drafts for which no caller waits for an answer. A draft whose keys are taken is left
// out.
func (t *tx) enqueueAll(prepared []holdfast.Draft) error {
	_, err := (&enqueuer{executor: unbatched{t}, now: t.now, lenient: true}).enqueue(prepared)
	t.wakeQueues(prepared)
	return err
}

// wakeQueues wakes the waiters of the drafts' queues after the commit.
func (t *tx) wakeQueues(drafts []holdfast.Draft) {
	for i := range drafts {
		t.wake(drafts[i].Queue)
	}
}

// wake wakes the waiters of a queue after the commit.
func (t *tx) wake(queue string) {
	if !slices.Contains(t.wakeup.queues, queue) {
		t.wakeup.queues = append(t.wakeup.queues, queue)
	}
}

// prepareAll checks all drafts before the first is written. It changes copies, not the caller's drafts.
func prepareAll(drafts []holdfast.Draft, prepare func([]holdfast.Draft) error) ([]holdfast.Draft, error) {
	prepared := slices.Clone(drafts)
	if err := prepare(prepared); err != nil {
		return nil, err
	}
	return prepared, nil
}

// An executor runs the statements of an enqueue: on the writer's connection, or in the application's transaction. All
// ways to enqueue share the code that uses it.
type executor interface {
	exec(name string, args ...any) (changed int, err error)
	one(name string, args []any, into ...any) (found bool, err error)
	lane(w laneKey) (int64, error)
	// add inserts a row, possibly later and together with others. It returns false if the row is known to exist.
	add(name string, row ...any) (added bool, err error)
	// emitQueued emits the events of the new jobs among the receipts, if they have a listener.
	emitQueued(now int64, receipts []holdfast.Receipt) error
	// tell adds an event of the store itself to the story of a job.
	tell(now int64, e jobEvent) error
	// startWaiting starts a job that waited for others of its line.
	startWaiting(now int64, job holdfast.ID) error
}

// unbatched is a transaction that inserts every row at once and by itself.
type unbatched struct{ *tx }

func (a unbatched) add(name string, row ...any) (bool, error) {
	added, err := a.exec(name, row...)
	return added > 0, err
}

func (t *tx) add(name string, row ...any) (bool, error) { return true, t.addRow(name, row...) }

func (t *tx) emitQueued(_ int64, receipts []holdfast.Receipt) error {
	if t.listened.includes(store.EventQueued) {
		for i := range receipts {
			if !receipts[i].Existing {
				t.emit(store.EventQueued, &receipts[i].ID, 0)
			}
		}
	}
	return nil
}

// enqueue enqueues the drafts and returns their receipts.
func enqueue(to executor, now int64, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	return (&enqueuer{executor: to, now: now}).enqueue(drafts)
}

// enqueue enqueues the drafts, and emits the events of the new jobs.
func (e *enqueuer) enqueue(drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	receipts := make([]holdfast.Receipt, len(drafts))
	for i := range drafts {
		receipt, err := e.enqueueOne(&drafts[i])
		if err != nil {
			return nil, err
		}
		receipts[i] = receipt
	}
	return receipts, e.emitQueued(e.now, receipts)
}

// enqueueOne enqueues one draft, or returns the existing job that has its idempotency key or its unique key.
func (e *enqueuer) enqueueOne(d *holdfast.Draft) (holdfast.Receipt, error) {
	if d.IdempotencyKey != "" {
		existing, err := e.takeIdempotencyKey(d)
		if err != nil || !existing.IsZero() {
			e.rememberID(d, existing, true)
			return holdfast.Receipt{ID: existing, Existing: true}, err
		}
	}
	if d.UniqueKey != "" {
		existing, replaced, err := e.takeUniqueKey(d)
		if err != nil || !existing.IsZero() {
			e.rememberID(d, existing, true)
			return holdfast.Receipt{ID: existing, Existing: true, Replaced: replaced}, err
		}
	}
	e.rememberID(d, d.ID, false)
	return holdfast.Receipt{ID: d.ID}, e.insert(d)
}

// insert writes the facts of a job, and the row of the place where it begins: ready, later, or waiting for members of
// its group.
func (e *enqueuer) insert(d *holdfast.Draft) error {
	waits, err := e.checkGroup(d)
	if err != nil {
		return err
	}
	lane, err := e.lane(laneKey{d.Queue, d.Kind, d.Owner, d.Dependency})
	if err != nil {
		return err
	}
	due, expire := instantOrNil(e.now, d.Delay, d.RunAt), instantOrNil(e.now, d.ExpireIn, d.ExpireAt)
	if due != nil && due.(int64) <= e.now {
		due = nil
	}
	var tags, within, group any
	if len(d.Tags) > 0 {
		text, _ := json.Marshal(d.Tags) // strings always marshal
		tags = string(text)
	}
	if d.RetryWithin > 0 {
		within = d.RetryWithin.Microseconds()
	}
	if !d.Group.IsZero() {
		group = &d.Group
	}
	added, err := e.add("job_add", &d.ID, lane, &d.Kind, &d.Queue, int64(d.Priority), d.MaxAttempts, &e.now, due, expire, nullIfEmpty(d.Owner), tags,
		nullIfEmpty(d.UniqueKey), d.UniqueDone, nullIfEmpty(d.IdempotencyKey), d.Args, nullIfEmpty(d.Dependency), within, group, nullIfEmpty(d.Trace))
	if err != nil {
		return err
	}
	if !added {
		return rule.JobExists(d.ID)
	}
	switch {
	case d.Order != "": // it starts when it is the first of its line, which may be at once
		err = e.insertWaiting(d, waits, due)
	case len(waits.edges) > 0:
		err = e.insertWaiting(d, waits, due)
	case due == nil:
		_, err = e.add("ready_add", lane, int64(d.Priority), &d.ID)
	default:
		_, err = e.add("later_add", due, d.ID)
	}
	if err == nil && d.Step != "" {
		err = e.addStep(d)
	}
	if err == nil && expire != nil {
		_, err = e.add("expiry_add", expire, d.ID)
	}
	if err == nil && d.Order != "" {
		err = e.joinLine(d)
	}
	return err
}

// instantOrNil returns an instant that is given as a time or as a duration from now, or nil.
func instantOrNil(now int64, in time.Duration, at time.Time) any {
	switch {
	case !at.IsZero():
		return at.UnixMicro()
	case in > 0:
		return now + in.Microseconds()
	}
	return nil
}
