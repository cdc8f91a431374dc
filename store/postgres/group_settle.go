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

// A groupRow is a locked row of holdfast_group.
type groupRow struct {
	holdfast.Group
	ending          string
	sealed, settled bool
	attend          bool        // flagged: AdvanceGroups must check it although no member has just ended
	live            holdfast.ID // every member with a higher id has ended; the zero id: all have
	endPending      bool        // it is ending, and some member or child group was not cancelled yet
	hasOpenChild    bool        // a child group has not settled
	thenErr         error       // its continuations cannot be parsed
}

// maxID is above every id. As live it means that no member was checked yet.
var maxID = holdfast.ID(bytes.Repeat([]byte{0xff}, 16))

// scanGroup reads one row.
func scanGroup(rows pgx.Rows) (*groupRow, error) {
	g := &groupRow{live: maxID}
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
			g.Then, g.thenErr = nil, rule.ErrThenUnreadable
		}
	}
	return g, err
}

// settleGroups cancels the members of ending groups, and settles sealed groups without a live member or an open child group. Children come before
// their parents: ids are ordered by time, and a parent exists before its children.
func (c *advanceStep) settleGroups(ctx context.Context) error {
	var all []*groupRow
	for _, id := range slices.SortedFunc(maps.Keys(c.groups), func(a, b holdfast.ID) int { return bytes.Compare(b[:], a[:]) }) {
		all = append(all, c.groups[id])
	}
	for _, g := range all {
		if g.ending == "" || g.settled {
			continue
		}
		if err := c.cancelMembers(ctx, g); err != nil {
			return err
		}
	}
	if err := c.findLive(ctx, all); err != nil {
		return err
	}
	var done []*groupRow
	for _, g := range all {
		if g.sealed && !g.settled && !g.hasOpenChild && g.live.IsZero() {
			done = append(done, g)
		} else {
			c.saveCheck(g)
		}
	}
	if len(done) == 0 {
		return nil
	}
	return c.settle(ctx, done)
}

// cancelMembers cancels the next members of an ending group: queued ones at once, processing ones by a cancel request. It marks child groups as
// ending too.
func (c *advanceStep) cancelMembers(ctx context.Context, g *groupRow) error {
	p, sql, now := c.p, c.s.sql, timestamp(c.now)
	reason := rule.EndedWith(holdfast.GroupState(g.ending))
	var rest []holdfast.ID
	var id [16]byte
	p.queueRows(sql["find_uncancelled_members"], []any{g.ID.String(), g.live.String(), c.limit}, []any{&id}, func() error { rest = append(rest, id); return nil })
	if err := p.flush(ctx); err != nil {
		return err
	}
	if len(rest) > 0 {
		p.Queue(sql["group_cancel_queued"], now, ids(rest), reason).Exec(func(tag pgconn.CommandTag) error { c.changes += int(tag.RowsAffected()); return nil })
		p.Queue(sql["group_cancel_leased"], now, ids(rest), reason).Exec(func(tag pgconn.CommandTag) error {
			c.changes += int(tag.RowsAffected())
			c.cancelRequested = c.cancelRequested || tag.RowsAffected() > 0
			return nil
		})
	}
	p.queueRows(sql["end_child_groups"], []any{g.ID.String(), g.ending, now, c.limit}, []any{&id}, func() error {
		c.changes++
		if child := c.groups[id]; child != nil { // locked in this step: it must stay flagged
			child.ending, child.sealed, child.endPending = g.ending, true, true
		}
		return nil
	})
	p.queueRow(sql["check_group_end"], []any{g.ID.String(), g.live.String()}, &g.endPending)
	return p.flush(ctx)
}

// findLive searches each sealed group for a member that has not ended, downwards from the last one found. Within a generation the search
// never starts over, so it costs one pass over the members, however often a group is checked.
func (c *advanceStep) findLive(ctx context.Context, all []*groupRow) error {
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
	var hasOpenChild bool
	c.p.queueRows(c.s.sql["find_live_members"], []any{id.String(), from.String()}, []any{&group, &live, &hasOpenChild}, func() error {
		g := c.groups[group]
		g.live, g.hasOpenChild = live.Bytes, hasOpenChild
		if !live.Valid {
			g.live = holdfast.ID{}
		}
		return nil
	})
	return c.p.flush(ctx)
}

// saveCheck stores what was found about a group that does not settle yet.
func (c *advanceStep) saveCheck(g *groupRow) {
	var live any
	if g.sealed && !g.settled {
		live = g.live.String()
	}
	attend := !g.settled && (g.endPending || g.attend && (c.moreWaiters || !slices.Contains(c.flagged, g.ID)))
	if g.attend && !attend {
		c.changes++
	}
	c.p.Queue(c.s.sql["save_group_check"], g.ID.String(), live, attend)
}

// settle stores the outcome of groups, counted from their members, and enqueues their continuations in the same transaction. The outcome is a
// function of the members as they are now, not of counters, so it is correct after retries too.
func (c *advanceStep) settle(ctx context.Context, done []*groupRow) error {
	var group [16]byte
	var complete, failed, cancelled, skipped int
	var which []holdfast.ID
	for _, g := range done {
		which = append(which, g.ID)
	}
	c.p.queueRows(c.s.sql["group_count"], []any{ids(which)}, []any{&group, &complete, &failed, &cancelled, &skipped}, func() error {
		c.groups[group].Members = holdfast.Members{Total: complete + failed + cancelled + skipped, Complete: complete, Failed: failed, Cancelled: cancelled, Skipped: skipped}
		return nil
	})
	if err := c.p.flush(ctx); err != nil {
		return err
	}
	var next []entry
	for _, g := range done {
		g.State = g.Members.Outcome(g.Quorum)
		if g.ending != "" {
			g.State = holdfast.GroupState(g.ending)
		}
		drafts, refused := rule.Continuations(&g.Group)
		next = append(next, c.continuationEntries(drafts)...)
		m := g.Members
		c.p.Queue(c.s.sql["group_settle"], g.ID.String(), string(g.State), timestamp(c.now), m.Complete, m.Failed, m.Cancelled, rule.Outcome(m, errors.Join(g.thenErr, refused)), m.Skipped)
		if !g.Parent.IsZero() {
			c.p.Queue(c.s.sql["flag_parent_group"], g.Parent.String())
		}
		c.changes++
	}
	if len(c.unknown) > 0 {
		return errUnknownLanes
	}
	if len(next) == 0 {
		return nil
	}
	fresh, err := c.s.enqueueIn(ctx, c.p, next)
	c.fresh = append(c.fresh, fresh...)
	return err
}

// continuationEntries returns entries for drafts, and collects the lanes that do not exist yet.
func (c *advanceStep) continuationEntries(drafts []holdfast.Draft) (entries []entry) {
	for _, draft := range drafts {
		e := entry{Draft: &draft}
		if lane, known := c.s.lanes.known(e.path()); known {
			e.lane = lane
		} else {
			c.unknown[e.path()] = true
		}
		entries = append(entries, e)
	}
	return entries
}
