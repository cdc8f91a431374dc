package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Purge deletes ended jobs whose time is up, in one transaction with what remains of them.
func (s *Store) Purge(ctx context.Context, c holdfast.Purge) (done holdfast.Purged, err error) {
	if err := c.Check(); err != nil {
		return done, err
	}
	ctx, cancel := withDeadline(ctx, manyDeadline)
	defer cancel()
	err = s.withRetries(ctx, "purge", true, func(ctx context.Context) error {
		done = holdfast.Purged{}
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
		return holdfast.Purged{}, err
	}
	return done, nil
}

// A purging is one step of retention under way.
type purgeStep struct {
	s    *Store
	p    *pipeline
	c    *holdfast.Purge
	done *holdfast.Purged
	now  time.Time

	seen  []endedJob
	rules map[holdfast.ID]string // of those that are to go
	purge []endedJob
}

// An ended is a job as it was found.
type endedJob struct {
	holdfast.Tombstone
	token, generation int
	dead, needed      bool // a dead letter; somebody needs it whatever the rules say
}

// look reads the next jobs that have ended.
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

// decide asks the rules about each.
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

func count(of *map[string]int, name string) {
	if *of == nil {
		*of = map[string]int{}
	}
	(*of)[name]++
}

// write deletes those that still are as they were found. Their facts go last.
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
		"purge_artifact", "purge_upstreams", "purge_waiters", "unique_free", "cancel_drop", "purge_job"} {
		u.p.Queue(sql[name], ids(held))
	}
	return nil
}

// Forget deletes up to limit things of a shelf that are older than that, the oldest first.
func (s *Store) Forget(ctx context.Context, shelf string, older time.Duration, limit int) (n int, err error) {
	forget := map[string]func(context.Context, *pipeline, *feed, forgetRange) (int, error){
		holdfast.ShelfFeed: s.forgetFeed, holdfast.ShelfStory: s.forgetStory, holdfast.ShelfTallies: s.forgetRows("delete_error_counts", "delete_trend_counts"), holdfast.ShelfTombstones: s.forgetRows("delete_tombstones"),
	}[shelf]
	if err := rule.Forget(shelf, older, limit); err != nil {
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
			n, err = forget(ctx, p, &f, forgetRange{timestamp(f.now.Add(-older)), clampLimit(limit)})
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// A forgetting says what is old, and how much of it may go.
type forgetRange struct {
	before string
	limit  int
}

// forgetFeed takes whole pages from the beginning, none that groups have not followed yet.
func (s *Store) forgetFeed(ctx context.Context, p *pipeline, f *feed, g forgetRange) (n int, err error) {
	last, cut := f.purged, false
	var first int64
	var events int
	var old bool
	p.queueRows(s.sql["find_old_pages"], []any{g.before, f.purged, f.concluded, g.limit}, []any{&first, &events, &old}, func() error {
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

// forgetStory takes sealed lines from the beginning of the chain. A mark tells of it.
func (s *Store) forgetStory(ctx context.Context, p *pipeline, f *feed, g forgetRange) (n int, err error) {
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

// forgetRows is for shelves of which nothing else has to know. Where there are several piles on one, each gives up to the limit, and the
// answer is the largest number, so that it is 0 when all are done.
func (s *Store) forgetRows(names ...string) func(context.Context, *pipeline, *feed, forgetRange) (int, error) {
	return func(ctx context.Context, p *pipeline, _ *feed, g forgetRange) (n int, err error) {
		for _, name := range names {
			p.Queue(s.sql[name], g.before, g.limit).Exec(func(tag pgconn.CommandTag) error { n = max(n, int(tag.RowsAffected())); return nil })
		}
		err = p.flush(ctx)
		return n, err
	}
}
