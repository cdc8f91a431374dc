package sqlite

import (
	"bytes"
	"cmp"
	"slices"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// divideByTurns divides a claim between owners in fair turns, within what the holds let through. It reads the first
// keys of the lines of the owners whose turn it is and lets lane.Turns pick. If the pick needs keys behind those that
// were read, it reads twice as deep; if these owners have too few jobs, it adds owners. Each pick that is repeated is
// undone first.
func (p *claimPlanner) divideByTurns(v *claimView, e claimRequest, plan *claimPlan) (err error) {
	if v.countsLive() {
		if plan.live, err = p.live.count(v.read); err != nil {
			return err
		}
	}
	order := lane.Order{Jobs: e.Limit, Even: e.even}
	if order.Weights, err = p.readWeights(v.read); err != nil {
		return err
	}
	if v.valves.Caps() {
		valves := v.valvesWith(plan.live)
		v.lines, v.open = slices.DeleteFunc(slices.Clone(v.lines), func(l line) bool { return valves.Remaining(l.lane, l.retries()) < 1 }), nil
	}
	owners := v.owners()
	asked := e.Limit
	if v.open != nil {
		if done, err := p.divideFromMemory(v, plan, turnRequest{p.turns.Choose(owners, spareOwners*asked), 0, order}); done || err != nil {
			return err
		}
	}
	turn, depth := p.turns.Next(owners, asked)
	if len(order.Weights) > 0 {
		depth = e.Limit // the owner with the largest weight may get nearly all
	}
	for {
		heads, err := v.readLineHeads(turn, depth, e.even)
		if err != nil {
			return err
		}
		plan.valves = v.valvesWith(plan.live)
		picked, deeper := p.turns.Pick(heads, plan.valves, order)
		if !deeper && (lane.Total(picked) >= e.Limit || len(turn) == len(owners)) {
			plan.addShares(picked...)
			return nil
		}
		p.turns.Undo()
		if deeper {
			depth *= 2
			continue
		}
		asked *= 4
		turn, _ = p.turns.Next(owners, asked)
	}
}

// readLineHeads reads the first keys of the lines of these owners; if the claim shares evenly, the first keys of each
// priority separately.
func (v *claimView) readLineHeads(turn map[string]bool, depth int, even bool) (heads []lane.Head, err error) {
	for _, l := range v.linesOf(turn) {
		head := lane.Head{Share: lane.Share{Lane: l.lane, Line: l.number}}
		if !even {
			if heads, err = v.appendHead(heads, head, depth); err != nil {
				return nil, err
			}
			continue
		}
		priorities, err := v.read.priorities(l.number)
		if err != nil {
			return nil, err
		}
		for _, priority := range priorities {
			head.Priority = &priority
			if heads, err = v.appendHead(heads, head, depth); err != nil {
				return nil, err
			}
		}
	}
	return heads, nil
}

// appendHead reads the first keys of a head and appends it.
func (v *claimView) appendHead(to []lane.Head, head lane.Head, depth int) (heads []lane.Head, err error) {
	low, high := head.Priorities()
	head.Keys, err = v.read.keys(nil, keySpan{line: head.Line, from: int64(low), to: int64(high), limit: depth})
	head.More = len(head.Keys) == depth
	return append(to, head), err
}

// spareOwners is how many times as many owners as needed divideFromMemory chooses: some have few jobs left.
const spareOwners = 4

// A turnRequest is how a claim is divided between owners.
type turnRequest struct {
	owners []string
	depth  int
	lane.Order
}

// divideFromMemory divides a claim between owners of remembered lines. It reads only the first depth rows of each line
// (one more than an equal part of the claim), in the order of the owners' turns, and adds owners until there are enough
// jobs. So no owner takes more than depth jobs from a line in one claim, and none loses by it. The facts of the picked
// jobs are then read in the order of their ids, where neighbours lie on the same pages, and not owner by owner.
//
// It returns false if there are not enough jobs, if a tag is held (some jobs might have to be set aside), if priorities
// are to share evenly, or if a job has no facts. Then the caller divides the claim in the general way.
func (p *claimPlanner) divideFromMemory(v *claimView, plan *claimPlan, c turnRequest) (done bool, err error) {
	if c.Even || len(v.valves.Tags()) > 0 {
		return false, nil
	}
	c.depth = c.Jobs/lane.Owners(c.Jobs) + 1
	r, err := p.readOpenLines(v, &c)
	if err != nil {
		return false, err
	}
	valves := v.valvesWith(plan.live)
	if picked, _ := p.turns.Pick(r.heads, valves, c.Order); lane.Total(picked) < c.Jobs {
		p.turns.Undo()
		return false, nil
	}
	empty := r.keepPicked()
	leases, whole, err := r.leases(v.read)
	if err != nil || !whole {
		p.turns.Undo()
		return false, err
	}
	plan.valves, plan.shares, plan.leases, plan.sorted = valves, r.shares, leases, true
	v.open.dropEmpty(empty, c.owners)
	return true, nil
}

// lineRows is what was read from the lines of a claim.
type lineRows struct {
	heads   []lane.Head
	shares  []share
	members []member // the rows of all shares, one share after the other
}

// readOpenLines reads the lines of the owners whose turn it is, and of more owners while these are not enough.
func (p *claimPlanner) readOpenLines(v *claimView, c *turnRequest) (r lineRows, err error) {
	done := map[int64]bool{}
	enough := func() bool { return len(r.members) >= c.Jobs && len(r.shares) >= lane.Owners(c.Jobs) }
	for asked := spareOwners * c.Jobs; !enough(); {
		for _, owner := range c.owners {
			for _, l := range v.open.byOwner[owner] {
				if done[l.number] || enough() {
					continue
				}
				done[l.number] = true
				if err := r.readLine(v.read, l, c.depth); err != nil {
					return r, err
				}
			}
		}
		if len(c.owners) == len(v.open.owners) {
			break
		}
		asked *= 2
		c.owners = p.turns.Choose(v.open.owners, asked)
	}
	return r, nil
}

// readLine reads the first rows of one line.
func (r *lineRows) readLine(read claimReader, l line, depth int) error {
	s := share{keySpan: keySpan{line: l.number, limit: depth}, lane: l.lane, rows: make([]readyRow, 0, depth)}
	h := lane.Head{Share: lane.Share{Lane: l.lane, Line: l.number}, Keys: make([]lane.Key, 0, depth)}
	err := read.firstRows(l.number, depth, func(priority int64, m member) {
		r.members = append(r.members, m)
		s.rows = append(s.rows, readyRow{priority, m.job, m.token})
		h.Keys = append(h.Keys, lane.Key{Priority: int16(priority), Job: m.job})
	})
	h.More = len(s.rows) == depth
	r.shares, r.heads = append(r.shares, s), append(r.heads, h)
	return err
}

// keepPicked keeps the rows that were picked, and returns the lines that are empty after the claim.
func (r *lineRows) keepPicked() (empty map[int64]bool) {
	kept, next := r.members[:0], 0
	empty = map[int64]bool{}
	for i := range r.shares {
		s := &r.shares[i]
		all, taken := len(s.rows), r.heads[i].Jobs
		if taken == all && !r.heads[i].More {
			empty[s.line] = true
		}
		kept = append(kept, r.members[next:next+taken]...)
		s.rows = s.rows[:taken]
		next += all
	}
	r.members = kept
	return empty
}

// leases reads the facts of the rows and returns their leases by priority and age. whole is false if a job has no facts.
func (r *lineRows) leases(read claimReader) (leases []store.Lease, whole bool, err error) {
	members := r.members
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.job[:], b.job[:]) })
	ids := make([]holdfast.ID, len(members))
	for i := range members {
		ids[i] = members[i].job
	}
	leases = make([]store.Lease, len(members))
	next, found := 0, 0
	err = read.facts(ids, func(st *sqlite.Stmt) error {
		id := columnID(st, 0)
		for next < len(ids) && ids[next] != id {
			next++
		}
		if next == len(ids) {
			return nil
		}
		l, m := &leases[next], &members[next]
		readFacts(st, l)
		l.Token, l.Failures, l.Crashes, l.Releases, l.Generation = m.token, m.failures, m.crashes, m.releases, m.generation
		found++
		return nil
	})
	urgent := func(a, b store.Lease) int { return cmp.Compare(a.Priority, b.Priority) }
	if !slices.IsSortedFunc(leases, urgent) {
		slices.SortStableFunc(leases, urgent)
	}
	return leases, found == len(members), err
}
