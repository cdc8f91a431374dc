package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// copyThreshold is the number of rows from which COPY is cheaper than an INSERT, despite its extra round trip.
const copyThreshold = 100

// An entry is a draft that is being enqueued, with its lane.
type entry struct {
	*holdfast.Draft
	lane  int32
	edges []rule.Edge // the members for which it waits
	given bool        // the caller chose the id, so another job may have it
}

// keyed reports whether the entry has a unique key or an idempotency key.
func (e *entry) keyed() bool { return e.UniqueKey != "" || e.IdempotencyKey != "" }

// mayConflict reports whether existing rows other than a job with the same id can refuse the entry: a key or a sealed group. An order key
// needs the same transaction of its own.
func (e *entry) mayConflict() bool { return e.keyed() || !e.Group.IsZero() || e.Order != "" }

// waits reports whether the job is inserted as one that waits for others: members of its group, or those before it in its line, of which there may be none.
func (e *entry) waits() bool { return len(e.edges) > 0 || e.Order != "" }

// Enqueue stores the drafts, all or none. Small calls whose drafts have neither keys nor groups and that arrive at the same time share one commit
// (see coalescer); calls of copyThreshold drafts and more use COPY.
func (s *Store) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	if len(drafts) == 0 {
		return []holdfast.Receipt{}, nil
	}
	ctx, cancel := withDeadline(ctx, defaultDeadline+time.Duration(len(drafts))*time.Millisecond)
	defer cancel()
	entries, err := s.prepare(ctx, s.work, drafts, rule.Drafts)
	if err != nil {
		return nil, err
	}
	if err := s.size.check(ctx, s.beside, s.sql); err != nil {
		return nil, err
	}
	receipts := make([]holdfast.Receipt, len(entries))
	for i := range entries {
		receipts[i].ID = entries[i].ID
	}
	switch {
	case slices.ContainsFunc(entries, func(e entry) bool { return e.mayConflict() }): // a refusal must affect this call only, so it is not coalesced
		if receipts, err = s.insertKeyed(ctx, entries); err == nil {
			for _, r := range receipts {
				if r.Replaced { // it is older than the draft
					s.planner.noteJobs(r.ID)
				}
			}
			s.announceEnqueued(entries) // a draft that matched an existing job causes at most an unnecessary wake-up
		}
	case len(entries) >= copyThreshold:
		err = s.insert(ctx, entries)
	default:
		err = s.coalescer.submit(ctx, entries)
	}
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// prepare checks all drafts, with one error that names every problem, and finds their lanes over the given connections.
func (s *Store) prepare(ctx context.Context, via connections, drafts []holdfast.Draft, check func([]holdfast.Draft) error) ([]entry, error) {
	prepared := slices.Clone(drafts)
	if err := check(prepared); err != nil {
		return nil, err
	}
	entries := make([]entry, len(drafts))
	for i := range prepared {
		entries[i] = entry{Draft: &prepared[i], edges: rule.Edges(&prepared[i]), given: !drafts[i].ID.IsZero()}
	}
	return entries, s.lanes.find(ctx, via, entries)
}

// announceEnqueued publishes entries that have just been committed: it tells the planner, and wakes workers.
func (s *Store) announceEnqueued(entries []entry) {
	s.planner.noteEnqueued(entries)
	s.hub.wake(queuesOf(entries), false)
}

// insert writes entries without keys in a transaction of their own. If the answer is lost, it first checks whether the entries were committed. That
// is conclusive: this process generated the ids, so no other process can have written them.
func (s *Store) insert(ctx context.Context, entries []entry) error {
	lost := false
	err := s.withRetries(ctx, "enqueue", true, func(ctx context.Context) error {
		if lost {
			if committed, err := s.committed(ctx, entries); err != nil || committed {
				return err
			}
		}
		err := s.write(ctx, entries)
		if lost && isDuplicate(err) { // the first attempt committed in the meantime
			if committed, err := s.committed(ctx, entries); err != nil || committed {
				return err
			}
		}
		lost = lost || err != nil && mayHaveCommitted(err)
		return s.explainDuplicate(ctx, s.work, entries, err)
	})
	if err == nil {
		s.announceEnqueued(entries)
	}
	return err
}

// write inserts entries, with COPY if there are many.
func (s *Store) write(ctx context.Context, entries []entry) error {
	if len(entries) < copyThreshold {
		name, args := enqueueArgs(entries)
		return s.work.exec(ctx, s.sql[name], args...)
	}
	return s.runTx(ctx, func(tx pgx.Tx) error { return s.copyIn(ctx, tx.Conn(), entries) })
}

// isDuplicate reports whether the database refused a row because of a unique constraint.
func isDuplicate(err error) bool {
	var refusal interface{ SQLState() string } // any driver: the transaction may be the caller's
	return errors.As(err, &refusal) && refusal.SQLState() == "23505"
}

// committed reports whether all entries exist with the same kind, queue and arguments.
func (s *Store) committed(ctx context.Context, entries []entry) (bool, error) {
	var id, kind, queue, args column
	for _, e := range entries {
		id.id(e.ID)
		kind.quote(e.Kind)
		queue.quote(e.Queue)
		args.quoteBytes(e.Args)
	}
	var n int
	err := s.work.queryRow(ctx, s.sql["count_committed"], []any{id.String(), kind.String(), queue.String(), args.String()}, &n)
	return n == len(entries), err
}

// enqueueArgs returns the name of the statement that inserts the entries, and its parameters.
func enqueueArgs(entries []entry) (string, []any) {
	var c [21]column
	plain := true
	for i := range entries {
		e := &entries[i]
		plain = plain && e.Delay == 0 && e.RunAt.IsZero() && e.ExpireIn == 0 && e.ExpireAt.IsZero() && !e.keyed() && e.Dependency == "" && e.RetryWithin == 0 && e.Group.IsZero() && e.Order == ""
		c[0].id(e.ID)
		c[1].int(int(e.lane))
		c[2].quote(e.Kind)
		c[3].quote(e.Queue)
		c[4].int(int(e.Priority))
		c[5].int(e.MaxAttempts)
		c[6].textOrNull(e.Owner)
		if len(e.Tags) == 0 {
			c[7].null()
		} else {
			c[7].quote(textArray(e.Tags))
		}
		c[8].quoteBytes(e.Args)
		c[9].textOrNull(e.Trace)
	}
	if plain {
		return "enqueue_plain", arrayArgs(c[:10])
	}
	for i := range entries {
		e := &entries[i]
		c[10].time(e.RunAt)
		c[11].duration(e.Delay)
		c[12].time(e.ExpireAt)
		c[13].duration(e.ExpireIn)
		c[14].textOrNull(e.UniqueKey)
		c[15].bool(e.UniqueDone)
		c[16].textOrNull(e.IdempotencyKey)
		c[17].textOrNull(e.Dependency)
		c[18].duration(e.RetryWithin)
		if e.Group.IsZero() {
			c[19].null()
		} else {
			c[19].id(e.Group)
		}
		c[20].bool(e.waits())
	}
	return "enqueue", arrayArgs(c[:])
}

// arrayArgs turns columns into parameters.
func arrayArgs(c []column) []any {
	list := make([]any, len(c))
	for i := range c {
		list[i] = c[i].String()
	}
	return list
}
