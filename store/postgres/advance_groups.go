package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// maxReleased is how many waiting members one step moves at most.
const maxReleased = 5000

// errUnknownLanes means that a continuation of a group needs a lane that does not exist yet. The step is rolled back, the lanes are created, and the
// step is repeated.
var errUnknownLanes = errors.New("a lane does not exist yet")

// AdvanceGroups processes the ends of group members: it releases or cancels members that waited for them, cancels the members of groups that were
// cancelled or have expired, and settles groups whose members have all ended. It returns how many changes it made; 0 means that nothing is left to
// do.
//
// One process advances groups at a time, under an advisory lock; another one returns at once. A step is one transaction, which also records up to which
// event groups have followed the feed. If it fails, the next step reads the same events again. No end of a member is missed: events are numbered in
// one order and followed without gaps, and the position is not advanced past a group that another transaction had locked, or while more members wait
// than one step moves.
func (s *Store) AdvanceGroups(ctx context.Context, limit int) (changes int, err error) {
	if err := rule.Batch("advance groups", limit); err != nil {
		return 0, err
	}
	limit = clampLimit(limit)
	ctx, cancel := withDeadline(ctx, manyDeadline)
	defer cancel()
	pages, err := s.Sequence(ctx, limit) // only numbered events are followed
	if err != nil {
		return 0, err
	}
	var c *advanceStep
	err = s.withRetries(ctx, "advance groups", true, func(ctx context.Context) error {
		for {
			c = &advanceStep{s: s, limit: limit, unknown: map[path]bool{}}
			err := s.transact(ctx, s.work, func(p *pipeline) error { c.p = p; return c.run(ctx) })
			if !errors.Is(err, errUnknownLanes) {
				return err
			}
			if err := s.lanes.make(ctx, s.work, c.unknown); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return 0, err
	}
	s.planner.noteJobs(c.started...)
	s.announce(&c.back)
	if len(c.fresh) > 0 {
		s.announceEnqueued(c.fresh)
	}
	if c.cancelRequested {
		s.hub.wake(nil, true)
	}
	if pages == limit {
		c.changes++
	}
	if !c.hasLines {
		return c.changes, nil
	}
	moved, err := s.sweepLines(ctx, limit)
	return c.changes + moved, err
}

// An advanceStep is one step in progress.
type advanceStep struct {
	s     *Store
	p     *pipeline
	limit int
	now   time.Time

	last, through             int64                     // first event of the last page of this step; last event of that page
	more                      bool                      // there are further pages
	ended                     []holdfast.ID             // members that have ended
	touched                   []holdfast.ID             // their groups
	flagged                   []holdfast.ID             // groups that must be checked although no member has just ended
	groups                    map[holdfast.ID]*groupRow // groups that this step has locked
	skippedGroup, moreWaiters bool                      // another transaction has locked a touched group; more members wait than one step moves

	changes         int
	started         []holdfast.ID // members whose wait is over
	back            readyPlaces   // where they became claimable
	fresh           []entry       // continuations that were enqueued
	cancelRequested bool          // a processing member got a cancel request
	unknown         map[path]bool
	hasLines        bool // jobs with order keys are live
}

// run performs one step. If another process has the lock, it does nothing.
func (c *advanceStep) run(ctx context.Context) error {
	locked, hasGroups := false, false
	c.p.queueRow(c.s.sql["advance_lock"], nil, &locked)
	c.p.queueRow(c.s.sql["now"], nil, &c.now)
	c.p.queueRow(c.s.sql["check_work_to_advance"], nil, &hasGroups, &c.hasLines)
	c.readPages()
	if err := c.p.flush(ctx); err != nil || !locked {
		return err
	}
	if c.more {
		c.changes++
	}
	if !hasGroups {
		c.advance()
		return nil
	}
	if err := c.readEnded(ctx); err != nil {
		return err
	}
	if err := c.releaseWaiters(ctx); err != nil {
		return err
	}
	if err := c.settleGroups(ctx); err != nil {
		return err
	}
	if !c.skippedGroup && !c.moreWaiters {
		c.advance()
	}
	return nil
}

// readPages determines how many pages of events this step processes.
func (c *advanceStep) readPages() {
	var first, events int64
	read := int64(0)
	c.p.queueRows(c.s.sql["advance_pages"], []any{c.limit}, []any{&first, &events}, func() error {
		if read >= int64(c.limit) {
			c.more = true
			return nil
		}
		read += events
		c.last, c.through = first, first+events-1
		return nil
	})
}

// advance records up to which event groups have followed the feed.
func (c *advanceStep) advance() {
	if c.through > 0 {
		c.p.Queue(c.s.sql["set_advanced"], c.through)
	}
}

// readEnded reads which members have ended, and locks the groups that this may settle. It waits for no group: one that is locked by another
// transaction is skipped, and processed by a later step.
func (c *advanceStep) readEnded(ctx context.Context) error {
	p, sql := c.p, c.s.sql
	var id, of [16]byte
	seen := map[holdfast.ID]bool{}
	p.queueRows(sql["find_ended_members"], []any{c.last}, []any{&id, &of}, func() error {
		c.ended = append(c.ended, id)
		if !seen[of] {
			seen[of] = true
			c.touched = append(c.touched, of)
		}
		return nil
	})
	p.Queue(sql["group_expire"], c.limit).Exec(func(tag pgconn.CommandTag) error { c.changes += int(tag.RowsAffected()); return nil })
	if err := p.flush(ctx); err != nil {
		return err
	}
	c.groups = map[holdfast.ID]*groupRow{}
	c.queueLockGroups("lock_flagged_groups", c.limit)
	wanted := 0
	p.queueRow(sql["count_touched_groups"], []any{ids(c.touched)}, &wanted)
	c.queueLockGroups("lock_touched_groups", ids(c.touched))
	p.queueRows(sql["find_flagged_groups"], []any{c.limit}, []any{&id}, func() error { c.flagged = append(c.flagged, id); return nil })
	if err := p.flush(ctx); err != nil {
		return err
	}
	for _, id := range c.touched {
		if g := c.groups[id]; g != nil && g.sealed && !g.settled {
			wanted--
		}
	}
	c.skippedGroup = wanted > 0
	return nil
}

// queueLockGroups queues a statement that locks groups and reads them.
func (c *advanceStep) queueLockGroups(how string, which any) {
	c.p.Queue(c.s.sql[how], which).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			g, err := scanGroup(rows)
			if err != nil {
				return err
			}
			if c.groups[g.ID] == nil {
				c.groups[g.ID] = g
			}
		}
		return rows.Err()
	})
}

// releaseWaiters processes members that wait for others which have ended: they become claimable, or they are cancelled if a member they depend on did
// not complete.
func (c *advanceStep) releaseWaiters(ctx context.Context) error {
	if len(c.ended)+len(c.flagged) == 0 {
		return nil
	}
	p, sql := c.p, c.s.sql
	ends := map[holdfast.ID]*rule.Follower{}
	var found []holdfast.ID
	var id [16]byte
	var upstream pgtype.UUID
	var state string
	var skipped, skips bool
	p.queueRows(sql["after_due"], []any{ids(c.ended), ids(c.flagged), maxReleased}, []any{&id, &upstream, &state, &skipped, &skips}, func() error {
		found = append(found, id)
		if upstream.Valid {
			ends[id] = &rule.Follower{End: true, Skipped: skips, Cause: rule.Upstream{ID: upstream.Bytes, State: holdfast.State(state), Skipped: skipped}}
			if upstream.Bytes == id { // retention deleted it
				ends[id].Cause.ID = holdfast.ID{}
			}
		}
		return nil
	})
	if err := p.flush(ctx); err != nil || len(found) == 0 {
		return err
	}
	c.moreWaiters = len(found) == maxReleased
	var one member
	var job, because, skip, reason, token, generation column
	p.queueRows(sql["after_lock"], []any{ids(found)}, []any{(*[16]byte)(&one.job), &one.token, &one.failures, &one.crashes, &one.releases, &one.generation}, func() error {
		c.changes++
		if f := ends[one.job]; f == nil {
			c.started = append(c.started, one.job)
		} else {
			job.id(one.job)
			because.idOrNull(f.Cause.ID)
			skip.bool(f.Skipped)
			reason.quote(f.Reason())
			token.int(one.token)
			generation.int(one.generation)
		}
		return nil
	})
	if err := p.flush(ctx); err != nil {
		return err
	}
	if len(job.text) > 0 {
		now := timestamp(c.now)
		p.Queue(sql["after_cancel"], now, job.String(), because.String(), skip.String())
		p.Queue(sql["after_cancel_note"], append([]any{now}, arrayArgs([]column{job, reason, token, generation})...)...)
		p.Queue(sql["unique_free"], job.String())
	}
	if len(c.started) > 0 {
		var queue string
		var at place
		p.queueRows(sql["after_start"], []any{ids(c.started)}, []any{&queue, &at.lane, &at.priority}, func() error { c.back.add(queue, at); return nil })
	}
	return p.flush(ctx)
}
