package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// bulk is how many drafts it takes for COPY to be worth its extra words.
const copyThreshold = 100

// An entry is a draft on its way in.
type entry struct {
	*holdfast.Draft
	lane  int32
	given bool // the caller chose the id, so it may be taken
}

func (e *entry) keyed() bool { return e.UniqueKey != "" || e.IdempotencyKey != "" }

// refusable reports whether what the store holds may stand against the entry, apart from its id.
func (e *entry) mayConflict() bool { return e.keyed() || !e.Group.IsZero() }

// Enqueue makes the drafts durable, all or none. Calls without keys that arrive together share one commit.
func (s *Store) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	if len(drafts) == 0 {
		return []holdfast.Receipt{}, nil
	}
	ctx, cancel := withDeadline(ctx, defaultDeadline+time.Duration(len(drafts))*time.Millisecond)
	defer cancel()
	entries, err := s.prepare(ctx, drafts, rule.Drafts)
	if err != nil {
		return nil, err
	}
	if err := s.size.check(ctx, s); err != nil {
		return nil, err
	}
	receipts := make([]holdfast.Receipt, len(entries))
	for i := range entries {
		receipts[i].ID = entries[i].ID
	}
	switch {
	case slices.ContainsFunc(entries, func(e entry) bool { return e.mayConflict() }): // a sealed group refuses its own call, and no other's
		if receipts, err = s.insertKeyed(ctx, entries); err == nil {
			s.announceEnqueued(entries) // a twin among them is a false alarm at worst
		}
	case len(entries) >= copyThreshold:
		err = s.insert(ctx, entries)
	default:
		err = s.folds.submit(ctx, entries)
	}
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// prepare checks every draft, naming all problems, and finds their lanes.
func (s *Store) prepare(ctx context.Context, drafts []holdfast.Draft, check func([]holdfast.Draft) error) ([]entry, error) {
	prepared := slices.Clone(drafts)
	if err := check(prepared); err != nil {
		return nil, err
	}
	entries := make([]entry, len(drafts))
	for i := range prepared {
		entries[i] = entry{Draft: &prepared[i], given: !drafts[i].ID.IsZero()}
	}
	return entries, s.findLanes(ctx, entries)
}

// A path names a lane.
type path struct{ queue, kind, owner, dependency string }

func (e *entry) path() path { return path{e.Queue, e.Kind, e.Owner, e.Dependency} }

// findLanes fills in the lane of each entry. Lanes nobody has used before are made on the store's own connection, so that
// a caller's transaction neither waits for them nor takes them back.
func (s *Store) findLanes(ctx context.Context, entries []entry) error {
	unknown := map[path]bool{}
	for i := range entries {
		if id, ok := s.lanes.Load(entries[i].path()); ok {
			entries[i].lane = id.(int32)
		} else {
			unknown[entries[i].path()] = true
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	if err := s.makeLanes(ctx, unknown); err != nil {
		return err
	}
	for i := range entries {
		id, ok := s.lanes.Load(entries[i].path())
		if !ok {
			return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "could not enqueue: the database did not keep a new lane; try again"}
		}
		entries[i].lane = id.(int32)
	}
	return nil
}

func (s *Store) makeLanes(ctx context.Context, unknown map[path]bool) error {
	var queues, kinds, owners, dependencies column
	for p := range unknown {
		queues.quote(p.queue)
		kinds.quote(p.kind)
		owners.quote(p.owner)
		dependencies.quote(p.dependency)
	}
	names := arrayArgs([]column{queues, kinds, owners, dependencies})
	return s.withRetries(ctx, "enqueue", true, func(ctx context.Context) error {
		if _, err := s.work.Exec(ctx, s.sql["lane_make"], names...); err != nil {
			return err
		}
		rows, err := s.work.Query(ctx, s.sql["lane_find"], names...)
		if err != nil {
			return err
		}
		var id int32
		var p path
		_, err = pgx.ForEachRow(rows, []any{&id, &p.queue, &p.kind, &p.owner, &p.dependency}, func() error {
			s.lanes.Store(p, id)
			return nil
		})
		return err
	})
}

// arrived makes sure that entries which just became durable are noticed.
func (s *Store) announceEnqueued(entries []entry) {
	s.marks.lower(slices.MinFunc(entries, func(a, b entry) int { return bytes.Compare(a.ID[:], b.ID[:]) }).ID)
	s.lines.addEntries(entries)
	s.wake(queuesOf(entries), false)
}

// insert writes entries without keys in a transaction of their own. When an answer is lost it looks whether they landed
// before it writes again: the ids were made here, so nobody else can have written them.
func (s *Store) insert(ctx context.Context, entries []entry) error {
	lost := false
	err := s.withRetries(ctx, "enqueue", true, func(ctx context.Context) error {
		if lost {
			if committed, err := s.committed(ctx, entries); err != nil || committed {
				return err
			}
		}
		err := s.write(ctx, entries)
		if lost && isDuplicate(err) { // the first try was still on its way
			if committed, err := s.committed(ctx, entries); err != nil || committed {
				return err
			}
		}
		lost = lost || err != nil && mayHaveCommitted(err)
		return s.explainDuplicate(ctx, pgxSession{s.work}, entries, err)
	})
	if err == nil {
		s.announceEnqueued(entries)
	}
	return err
}

func (s *Store) write(ctx context.Context, entries []entry) error {
	if len(entries) < copyThreshold {
		name, args := enqueueArgs(entries)
		_, err := s.work.Exec(ctx, s.sql[name], args...)
		return err
	}
	return s.runTx(ctx, func(tx pgx.Tx) error { return s.copyIn(ctx, tx.Conn(), entries) })
}

// twice reports whether the database refused a row because there is one like it.
func isDuplicate(err error) bool {
	var refusal interface{ SQLState() string } // of whatever driver the caller's transaction has
	return errors.As(err, &refusal) && refusal.SQLState() == "23505"
}

// landed reports whether entries are already there, to the letter.
func (s *Store) committed(ctx context.Context, entries []entry) (bool, error) {
	var id, kind, queue, args column
	for _, e := range entries {
		id.id(e.ID)
		kind.quote(e.Kind)
		queue.quote(e.Queue)
		args.quoteBytes(e.Args)
	}
	var n int
	err := s.work.QueryRow(ctx, s.sql["count_committed"], id.String(), kind.String(), queue.String(), args.String()).Scan(&n)
	return n == len(entries), err
}

// columns are the name of the statement that writes entries, and its parameters.
func enqueueArgs(entries []entry) (string, []any) {
	var c [21]column
	plain := true
	for i := range entries {
		e := &entries[i]
		plain = plain && e.Delay == 0 && e.RunAt.IsZero() && e.ExpireIn == 0 && e.ExpireAt.IsZero() && !e.keyed() && e.Dependency == "" && e.RetryWithin == 0 && e.Group.IsZero()
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
		c[20].bool(len(e.After) > 0)
	}
	return "enqueue", arrayArgs(c[:])
}

func arrayArgs(c []column) []any {
	list := make([]any, len(c))
	for i := range c {
		list[i] = c[i].String()
	}
	return list
}
