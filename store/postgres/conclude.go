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

// followMax is how many that waited are moved by one step.
const followMax = 5000

// errLanes says that what continues a group goes where no job has been yet.
var errLanes = errors.New("a lane is not there yet")

// Conclude does what the end of members brings with it. One process does so at a time; who finds another at it has nothing to do. A step is one
// transaction: either all of it was done and the pages are not looked at again, or none was.
func (s *Store) Conclude(ctx context.Context, limit int) (did int, err error) {
	if err := rule.Batch("conclude", limit); err != nil {
		return 0, err
	}
	limit = atMost(limit)
	ctx, cancel := within(ctx, manyDeadline)
	defer cancel()
	pages, err := s.Sequence(ctx, limit) // what is not numbered cannot be followed
	if err != nil {
		return 0, err
	}
	var c *concluding
	err = s.ask(ctx, "conclude groups", true, func(ctx context.Context) error {
		for {
			c = &concluding{s: s, limit: limit, unknown: map[path]bool{}}
			err := s.transact(ctx, s.work, func(p *pipe) error { c.p = p; return c.run(ctx) })
			if !errors.Is(err, errLanes) {
				return err
			}
			if err := s.makeLanes(ctx, c.unknown); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return 0, err
	}
	s.marks.lower(c.started...)
	s.announce(&c.back)
	if len(c.fresh) > 0 {
		s.arrived(c.fresh)
	}
	if c.asked {
		s.wake(nil, true)
	}
	if pages == limit {
		c.did++
	}
	return c.did, nil
}

// A concluding is one step under way.
type concluding struct {
	s     *Store
	p     *pipe
	limit int
	now   time.Time

	last, through int64 // the last page of this step, and its last event
	more          bool  // there are pages after it
	ended         []holdfast.ID
	touched       []holdfast.ID
	attended      []holdfast.ID
	groups        map[holdfast.ID]*groupRow // those that are locked
	busy, full    bool                      // somebody holds a group that was touched; more wait than one step moves

	did     int
	started []holdfast.ID
	back    returned
	fresh   []entry
	asked   bool // somebody at work was asked to stop
	unknown map[path]bool
}

func (c *concluding) run(ctx context.Context) error {
	mine, some := false, false
	c.p.one(c.s.sql["conclude_lock"], nil, &mine)
	c.p.one(c.s.sql["now"], nil, &c.now)
	c.p.one(c.s.sql["check_groups_exist"], nil, &some)
	c.readPages()
	if err := c.p.flush(ctx); err != nil || !mine {
		return err
	}
	if c.more {
		c.did++
	}
	if !some {
		c.follow()
		return nil
	}
	if err := c.look(ctx); err != nil {
		return err
	}
	if err := c.release(ctx); err != nil {
		return err
	}
	if err := c.judge(ctx); err != nil {
		return err
	}
	if !c.busy && !c.full {
		c.follow()
	}
	return nil
}

// readPages finds out how far this step goes.
func (c *concluding) readPages() {
	var first, events int64
	read := int64(0)
	c.p.each(c.s.sql["conclude_pages"], []any{c.limit}, []any{&first, &events}, func() error {
		if read >= int64(c.limit) {
			c.more = true
			return nil
		}
		read += events
		c.last, c.through = first, first+events-1
		return nil
	})
}

// follow remembers how far groups have followed.
func (c *concluding) follow() {
	if c.through > 0 {
		c.p.Queue(c.s.sql["advance_concluded"], c.through)
	}
}

// look finds out who has ended, and takes hold of the groups that this may matter to. It waits for none of them.
func (c *concluding) look(ctx context.Context) error {
	p, sql := c.p, c.s.sql
	var id, of [16]byte
	seen := map[holdfast.ID]bool{}
	p.each(sql["find_ended_members"], []any{c.last}, []any{&id, &of}, func() error {
		c.ended = append(c.ended, id)
		if !seen[of] {
			seen[of] = true
			c.touched = append(c.touched, of)
		}
		return nil
	})
	p.Queue(sql["group_expire"], c.limit).Exec(func(tag pgconn.CommandTag) error { c.did += int(tag.RowsAffected()); return nil })
	if err := p.flush(ctx); err != nil {
		return err
	}
	c.groups = map[holdfast.ID]*groupRow{}
	c.take("lock_flagged_groups", c.limit)
	wanted := 0
	p.one(sql["count_touched_groups"], []any{ids(c.touched)}, &wanted)
	c.take("lock_touched_groups", ids(c.touched))
	p.each(sql["find_flagged_groups"], []any{c.limit}, []any{&id}, func() error { c.attended = append(c.attended, id); return nil })
	if err := p.flush(ctx); err != nil {
		return err
	}
	for _, id := range c.touched {
		if g := c.groups[id]; g != nil && g.sealed && !g.settled {
			wanted--
		}
	}
	c.busy = wanted > 0
	return nil
}

// take queues the locking of groups.
func (c *concluding) take(how string, which any) {
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

// release looks at those who waited for what has ended: they start, or they are cancelled because of it.
func (c *concluding) release(ctx context.Context) error {
	if len(c.ended)+len(c.attended) == 0 {
		return nil
	}
	p, sql := c.p, c.s.sql
	type cause struct {
		upstream holdfast.ID
		state    string
	}
	causes := map[holdfast.ID]*cause{}
	var found []holdfast.ID
	var id [16]byte
	var upstream pgtype.UUID
	var state string
	p.each(sql["after_due"], []any{ids(c.ended), ids(c.attended), followMax}, []any{&id, &upstream, &state}, func() error {
		found = append(found, id)
		if upstream.Valid {
			causes[id] = &cause{upstream.Bytes, state}
		}
		return nil
	})
	if err := p.flush(ctx); err != nil || len(found) == 0 {
		return err
	}
	c.full = len(found) == followMax
	var one member
	var job, because, how, token, generation column
	p.each(sql["after_lock"], []any{ids(found)}, []any{(*[16]byte)(&one.job), &one.token, &one.failures, &one.crashes, &one.interrupts, &one.generation}, func() error {
		c.did++
		if of := causes[one.job]; of == nil {
			c.started = append(c.started, one.job)
		} else {
			job.id(one.job)
			because.id(of.upstream)
			how.add(of.state)
			token.int(one.token)
			generation.int(one.generation)
		}
		return nil
	})
	if err := p.flush(ctx); err != nil {
		return err
	}
	if len(job.text) > 0 {
		now := stamp(c.now)
		p.Queue(sql["after_cancel"], now, job.String(), because.String())
		p.Queue(sql["after_cancel_note"], append([]any{now}, literals([]column{job, because, how, token, generation})...)...)
		p.Queue(sql["unique_free"], job.String())
	}
	if len(c.started) > 0 {
		var queue string
		var at place
		p.each(sql["after_start"], []any{ids(c.started)}, []any{&queue, &at.lane, &at.priority}, func() error { c.back.add(queue, at); return nil })
	}
	return p.flush(ctx)
}
