package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Purge deletes ended jobs whose retention time is over, in one transaction with the tombstones and counts that remain of them.
func (s *Store) Purge(ctx context.Context, c store.Purge) (done store.PurgeResult, err error) {
	if err := c.Check(); err != nil {
		return done, err
	}
	ctx, cancel := withDeadline(ctx, manyDeadline)
	defer cancel()
	err = s.withRetries(ctx, "purge", true, func(ctx context.Context) error {
		done = store.PurgeResult{}
		return s.transact(ctx, s.work, func(p *pipeline) error {
			u := &purgeStep{s: s, p: p, c: &c, done: &done}
			if err := u.readEnded(ctx); err != nil {
				return err
			}
			u.decide()
			return u.write(ctx)
		})
	})
	if err != nil {
		return store.PurgeResult{}, err
	}
	return done, nil
}

// A purgeStep is one call of Purge in progress.
type purgeStep struct {
	s    *Store
	p    *pipeline
	c    *store.Purge
	done *store.PurgeResult
	now  time.Time

	seen  []endedJob             // read in this step
	rules map[holdfast.ID]string // the retention rule of each job in purge
	purge []endedJob
}

// An endedJob is an ended job as it was read.
type endedJob struct {
	store.Tombstone
	token, generation int
	dead, needed      bool // a dead letter; not to be deleted whatever the rules say: its group is not settled, or it has an artifact
}

// readEnded reads the next ended jobs, in the order of their ids.
func (u *purgeStep) readEnded(ctx context.Context) error {
	u.p.queueRow(u.s.sql["now"], nil, &u.now)
	u.p.Queue(u.s.sql["find_ended_jobs"], u.c.After.String(), u.c.Scan).Query(func(rows pgx.Rows) error {
		var e endedJob
		var group pgtype.UUID
		var state, of string
		into := []any{(*[16]byte)(&e.Job), &e.token, &e.generation, &state, &e.Code, &e.FinishedAt, &e.dead, &e.Kind, &e.Queue, &e.Owner, &group, &of, &e.needed}
		_, err := pgx.ForEachRow(rows, into, func() error {
			e.State, e.GroupState, e.Group = holdfast.State(state), holdfast.GroupState(of), group.Bytes
			u.seen = append(u.seen, e)
			return nil
		})
		return err
	})
	return u.p.flush(ctx)
}

// decide applies the retention rules to each job.
func (u *purgeStep) decide() {
	u.rules = map[holdfast.ID]string{}
	for _, e := range u.seen {
		if e.needed {
			continue
		}
		rule, purge := u.c.Decide(e.Tombstone, u.now)
		switch {
		case !purge:
		case e.dead && u.c.SpareDeadLetters:
			count(&u.done.Spared, rule)
		default:
			u.rules[e.Job] = rule
			u.purge = append(u.purge, e)
		}
	}
	if len(u.seen) == u.c.Scan {
		u.done.Next = u.seen[len(u.seen)-1].Job
	}
}

// count increments a counter in a map that may be nil.
func count(of *map[string]int, name string) {
	if *of == nil {
		*of = map[string]int{}
	}
	(*of)[name]++
}

// write deletes the jobs that are still as they were read. It locks them first and skips those that another transaction has locked. The rows of
// holdfast_finished and holdfast_job are deleted last.
func (u *purgeStep) write(ctx context.Context) error {
	if len(u.purge) == 0 {
		return nil
	}
	var job, token, generation column
	for _, e := range u.purge {
		job.id(e.Job)
		token.int(e.token)
		generation.int(e.generation)
	}
	var held []holdfast.ID
	var id [16]byte
	u.p.queueRows(u.s.sql["purge_lock"], arrayArgs([]column{job, token, generation}), []any{&id}, func() error { held = append(held, id); return nil })
	if err := u.p.flush(ctx); err != nil || len(held) == 0 {
		return err
	}
	var rules column
	for _, id := range held {
		rules.quote(u.rules[id])
		count(&u.done.Rules, u.rules[id])
	}
	u.done.Jobs = len(held)
	sql := u.s.sql
	u.p.Queue(sql["insert_tombstones"], timestamp(u.now), ids(held), rules.String())
	u.p.Queue(sql["purge_count"], timestamp(u.now), ids(held), rules.String())
	for _, name := range []string{"purge_redriven", "purge_keys", "purge_expiry", "purge_attempt", "purge_late", "purge_carry", "purge_deadline",
		"purge_artifact", "purge_order", "purge_upstreams", "purge_steps", "purge_waiters", "unique_free", "cancel_drop", "purge_job"} {
		u.p.Queue(sql[name], ids(held))
	}
	return nil
}

// DeleteHistory deletes up to limit rows of a history (store.HistoryFeed and so on) that are older than the given age, the oldest first.
func (s *Store) DeleteHistory(ctx context.Context, history string, older time.Duration, limit int) (n int, err error) {
	forget := map[string]func(context.Context, *pipeline, *feed, deleteRange) (int, error){
		store.HistoryFeed: s.deleteFeed, store.HistoryStories: s.deleteStory, store.HistoryCounts: s.deleteRows("delete_error_counts", "delete_trend_counts"), store.HistoryTombstones: s.deleteRows("delete_tombstones"),
	}[history]
	if err := rule.DeleteHistory(history, older, limit); err != nil {
		return 0, err
	}
	ctx, cancel := withDeadline(ctx, manyDeadline)
	defer cancel()
	err = s.withRetries(ctx, "delete old data", true, func(ctx context.Context) error {
		return s.transact(ctx, s.work, func(p *pipeline) error {
			var f feed
			f.queueLock(p, s.sql["feed_lock"])
			if err := p.flush(ctx); err != nil {
				return err
			}
			n, err = forget(ctx, p, &f, deleteRange{timestamp(f.now.Add(-older)), clampLimit(limit)})
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// A deleteRange is the age limit and the maximum number of rows.
type deleteRange struct {
	before string
	limit  int
}

// deleteFeed deletes whole pages from the beginning of the feed, and none that groups have not followed yet.
func (s *Store) deleteFeed(ctx context.Context, p *pipeline, f *feed, g deleteRange) (n int, err error) {
	last, cut := f.purged, false
	var first int64
	var events int
	var old bool
	p.queueRows(s.sql["find_old_pages"], []any{g.before, f.purged, f.advanced, g.limit}, []any{&first, &events, &old}, func() error {
		if cut = cut || !old; !cut {
			last = first + int64(events) - 1
			n++
		}
		return nil
	})
	if err := p.flush(ctx); err != nil || n == 0 {
		return 0, err
	}
	p.Queue(s.sql["delete_pages"], f.purged, last)
	return n, nil
}

// deleteStory deletes sealed events from the beginning of the chain, and records that with a mark.
func (s *Store) deleteStory(ctx context.Context, p *pipeline, f *feed, g deleteRange) (n int, err error) {
	var mark rule.Mark
	var link int
	var at, last time.Time
	var old, cut bool
	var hash []byte
	p.queueRows(s.sql["find_last_mark"], []any{rule.MarkSubject, rule.MarkName}, []any{&last}, func() error { return nil })
	p.queueRows(s.sql["find_old_events"], []any{g.before, f.anchor, g.limit}, []any{&link, &old, &hash, &at}, func() error {
		if cut = cut || !old; !cut {
			mark = rule.Mark{Lines: mark.Lines + 1, Link: link, Newest: at, Hash: append([]byte(nil), hash...)}
		}
		return nil
	})
	if err := p.flush(ctx); err != nil || !rule.Shortens(mark.Lines, g.limit, last, f.now) {
		return 0, err
	}
	p.Queue(s.sql["delete_events"], f.anchor, mark.Link, mark.Hash)
	s.queueEvent(p.Batch, mark.Line(), f.now)
	return mark.Lines, nil
}

// deleteRows is for history without references from elsewhere. If it has several tables, each may lose up to the limit, and the result is the
// largest number, so that it is 0 only when all are done.
func (s *Store) deleteRows(names ...string) func(context.Context, *pipeline, *feed, deleteRange) (int, error) {
	return func(ctx context.Context, p *pipeline, _ *feed, g deleteRange) (n int, err error) {
		for _, name := range names {
			p.Queue(s.sql[name], g.before, g.limit).Exec(func(tag pgconn.CommandTag) error { n = max(n, int(tag.RowsAffected())); return nil })
		}
		err = p.flush(ctx)
		return n, err
	}
}
