package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// A groupRow is a group, locked.
type groupRow struct {
	holdfast.Group
	ending          string
	sealed, settled bool
	attend          bool
	live            holdfast.ID // every member with a higher id has ended
	left            bool        // it is to end, and not all of it has heard
	inside          bool        // a group inside it has not settled
	unreadable      error       // its continuations are damaged
}

// highest is above every id, and nobody below the one that is zero.
var highest = holdfast.ID(bytes.Repeat([]byte{0xff}, 16))

func scanGroup(rows pgx.Rows) (*groupRow, error) {
	g := &groupRow{live: highest}
	var parent, live pgtype.UUID
	var then *string
	err := rows.Scan((*[16]byte)(&g.ID), &g.Name, &g.Owner, &parent, &g.Quorum, &then, &g.ending, &g.Generation, &g.sealed, &g.settled, &g.attend, &live)
	if err != nil {
		return nil, err
	}
	g.Parent = parent.Bytes
	if live.Valid {
		g.live = live.Bytes
	}
	if then != nil {
		if json.Unmarshal([]byte(*then), &g.Then) != nil {
			g.Then, g.unreadable = nil, rule.ErrThenUnreadable
		}
	}
	return g, err
}

// judge ends what is to end, and settles the groups of which no member is live.
func (c *concluding) judge(ctx context.Context) error {
	var all []*groupRow
	for _, id := range slices.SortedFunc(maps.Keys(c.groups), func(a, b holdfast.ID) int { return bytes.Compare(b[:], a[:]) }) {
		all = append(all, c.groups[id])
	}
	for _, g := range all {
		if g.ending == "" || g.settled {
			continue
		}
		if err := c.end(ctx, g); err != nil {
			return err
		}
	}
	if err := c.findLive(ctx, all); err != nil {
		return err
	}
	var over []*groupRow
	for _, g := range all {
		if g.sealed && !g.settled && !g.inside && g.live.IsZero() {
			over = append(over, g)
		} else {
			c.seen(g)
		}
	}
	if len(over) == 0 {
		return nil
	}
	return c.settle(ctx, over)
}

// end cancels the next members of a group that is to end: those that wait at once, those at work when they have answered.
func (c *concluding) end(ctx context.Context, g *groupRow) error {
	p, sql, now := c.p, c.s.sql, stamp(c.now)
	reason := rule.EndedWith(holdfast.GroupState(g.ending))
	var rest []holdfast.ID
	var id [16]byte
	p.each(sql["find_uncancelled_members"], []any{g.ID.String(), g.live.String(), c.limit}, []any{&id}, func() error { rest = append(rest, id); return nil })
	if err := p.flush(ctx); err != nil {
		return err
	}
	if len(rest) > 0 {
		p.Queue(sql["group_cancel_queued"], now, ids(rest), reason).Exec(func(tag pgconn.CommandTag) error { c.did += int(tag.RowsAffected()); return nil })
		p.Queue(sql["group_cancel_leased"], now, ids(rest), reason).Exec(func(tag pgconn.CommandTag) error {
			c.did += int(tag.RowsAffected())
			c.asked = c.asked || tag.RowsAffected() > 0
			return nil
		})
	}
	p.each(sql["end_child_groups"], []any{g.ID.String(), g.ending, now, c.limit}, []any{&id}, func() error {
		c.did++
		if inside := c.groups[id]; inside != nil { // looked at in this very step, and it is to be looked at again
			inside.ending, inside.sealed, inside.left = g.ending, true, true
		}
		return nil
	})
	p.one(sql["check_group_end"], []any{g.ID.String(), g.live.String()}, &g.left)
	return p.flush(ctx)
}

// findLive looks in each sealed group for a member that has not ended, from where one was found the last time downwards.
func (c *concluding) findLive(ctx context.Context, all []*groupRow) error {
	var id, from column
	for _, g := range all {
		if g.sealed && !g.settled {
			id.id(g.ID)
			from.id(g.live)
		}
	}
	if len(id.text) == 0 {
		return nil
	}
	var group [16]byte
	var live pgtype.UUID
	var inside bool
	c.p.each(c.s.sql["find_live_members"], []any{id.String(), from.String()}, []any{&group, &live, &inside}, func() error {
		g := c.groups[group]
		g.live, g.inside = live.Bytes, inside
		if !live.Valid {
			g.live = holdfast.ID{}
		}
		return nil
	})
	return c.p.flush(ctx)
}

// seen keeps what was learned of a group that goes on.
func (c *concluding) seen(g *groupRow) {
	var live any
	if g.sealed && !g.settled {
		live = g.live.String()
	}
	attend := !g.settled && (g.left || g.attend && (c.full || !slices.Contains(c.attended, g.ID)))
	if g.attend && !attend {
		c.did++
	}
	c.p.Queue(c.s.sql["save_group_check"], g.ID.String(), live, attend)
}

// settle gives groups their outcome, counted from the members themselves, with the jobs that continue it.
func (c *concluding) settle(ctx context.Context, over []*groupRow) error {
	var group [16]byte
	var complete, failed, cancelled int
	var which []holdfast.ID
	for _, g := range over {
		which = append(which, g.ID)
	}
	c.p.each(c.s.sql["group_count"], []any{ids(which)}, []any{&group, &complete, &failed, &cancelled}, func() error {
		c.groups[group].Members = holdfast.Members{Total: complete + failed + cancelled, Complete: complete, Failed: failed, Cancelled: cancelled}
		return nil
	})
	if err := c.p.flush(ctx); err != nil {
		return err
	}
	var next []entry
	for _, g := range over {
		g.State = g.Members.Outcome(g.Quorum)
		if g.ending != "" {
			g.State = holdfast.GroupState(g.ending)
		}
		drafts, refused := rule.Continuations(&g.Group)
		next = append(next, c.entries(drafts)...)
		m := g.Members
		c.p.Queue(c.s.sql["group_settle"], g.ID.String(), string(g.State), stamp(c.now), m.Complete, m.Failed, m.Cancelled, rule.Outcome(m, errors.Join(g.unreadable, refused)))
		if !g.Parent.IsZero() {
			c.p.Queue(c.s.sql["flag_parent_group"], g.Parent.String())
		}
		c.did++
	}
	if len(c.unknown) > 0 {
		return errLanes
	}
	if len(next) == 0 {
		return nil
	}
	fresh, err := c.s.enqueueIn(ctx, c.p, next)
	c.fresh = append(c.fresh, fresh...)
	return err
}

// entries are drafts on their way into their lanes, as far as these are known.
func (c *concluding) entries(drafts []holdfast.Draft) (entries []entry) {
	for _, draft := range drafts {
		e := entry{Draft: &draft}
		if lane, known := c.s.lanes.Load(e.path()); known {
			e.lane = lane.(int32)
		} else {
			c.unknown[e.path()] = true
		}
		entries = append(entries, e)
	}
	return entries
}
