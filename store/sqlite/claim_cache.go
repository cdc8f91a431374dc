package sqlite

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// Searching all lines takes long when there are many, so their result is remembered for a while. A line that gets its
// first job meanwhile is found when the cache has expired, or as soon as the remembered lines have too few jobs for a
// claim.
const (
	minCachedLines = 64                     // lines of several owners are remembered if there are more; lines of one owner, if there are more than manyLines
	minCacheAge    = 100 * time.Millisecond // a cache lives at least this long,
	cacheAgeFactor = 20                     // or this many times as long as the search took
	maxCaches      = 8                      // scopes that are remembered
	spareOwners    = 4                      // choose this many times as many owners as needed: some have few jobs left
)

// A lineCache is the non-empty lines of a scope, as they were found behind certain holds, by owner.
type lineCache struct {
	until       time.Time
	holds       []holdRow
	kinds       map[string]string
	lines       []line
	owners      []string
	byOwner     map[string][]line
	heads       *headHeap // the first keys of these lines; nil: not read yet
	onePriority bool      // a claim of the only owner found a single priority
}

func newLineCache(v *claimView, began time.Time) *lineCache {
	now := time.Now()
	c := &lineCache{until: now.Add(max(minCacheAge, cacheAgeFactor*now.Sub(began))), holds: v.holds, kinds: v.kinds}
	c.group(v.lines)
	return c
}

// group sets the lines and groups them by owner.
func (c *lineCache) group(lines []line) {
	c.lines, c.owners, c.byOwner = lines, c.owners[:0], make(map[string][]line, len(lines))
	for _, l := range lines {
		if c.byOwner[l.lane.Owner] == nil {
			c.owners = append(c.owners, l.lane.Owner)
		}
		c.byOwner[l.lane.Owner] = append(c.byOwner[l.lane.Owner], l)
	}
}

// dropEmpty removes lines of some owners that a claim empties. If they get jobs again, the next search finds them.
func (c *lineCache) dropEmpty(empty map[int64]bool, owners []string) {
	if len(empty) == 0 {
		return
	}
	c.lines = slices.DeleteFunc(c.lines, func(l line) bool { return empty[l.number] })
	gone := map[string]bool{}
	for _, owner := range owners {
		if c.byOwner[owner] = slices.DeleteFunc(c.byOwner[owner], func(l line) bool { return empty[l.number] }); len(c.byOwner[owner]) == 0 {
			delete(c.byOwner, owner)
			gone[owner] = true
		}
	}
	if len(gone) > 0 {
		c.owners = slices.DeleteFunc(slices.Clone(c.owners), func(owner string) bool { return gone[owner] })
	}
}

// validFor reports whether a view would find the same lines: the cache is young, and the holds and the dependencies of
// kinds are the same.
func (c *lineCache) validFor(v *claimView) bool {
	return c != nil && time.Now().Before(c.until) && maps.Equal(c.kinds, v.kinds) &&
		slices.EqualFunc(c.holds, v.holds, func(a, b holdRow) bool {
			a.level, a.levelAt = b.level, b.levelAt // the level of a rate limit does not close a line
			return a == b
		})
}

// linesOf returns the lines of these owners.
func (v *claimView) linesOf(turn map[string]bool) (lines []line) {
	if v.cache == nil {
		for _, l := range v.lines {
			if turn[l.lane.Owner] {
				lines = append(lines, l)
			}
		}
		return lines
	}
	for _, owner := range v.cache.owners {
		if turn[owner] {
			lines = append(lines, v.cache.byOwner[owner]...)
		}
	}
	return lines
}

// A turnRequest is how a claim is divided between owners.
type turnRequest struct {
	owners []string
	depth  int
	lane.Order
}

// divideFromCache divides a claim between owners of cached lines. It reads only the first depth rows of each line (one
// more than an equal part of the claim), in the order of the owners' turns, and adds owners until there are enough
// jobs. So no owner takes more than depth jobs from a line in one claim, and none loses by it. The facts of the picked
// jobs are then read in the order of their ids, where neighbours lie on the same pages, and not owner by owner.
//
// It returns false if there are not enough jobs, if a tag is held (some jobs might have to be set aside), if priorities
// are to share evenly, or if a job has no facts. Then the caller divides the claim in the general way.
func (p *claimPlanner) divideFromCache(v *claimView, plan *claimPlan, c turnRequest) (done bool, err error) {
	if c.Even || len(v.valves.Tags()) > 0 {
		return false, nil
	}
	c.depth = c.Jobs/lane.Owners(c.Jobs) + 1
	r, err := p.readCachedLines(v, &c)
	if err != nil {
		return false, err
	}
	valves := v.valvesWith(plan.live)
	if picked, _ := p.turns.Pick(r.heads, valves, c.Order); total(picked) < c.Jobs {
		p.turns.Undo()
		return false, nil
	}
	empty := r.keepPicked()
	leases, whole, err := v.leasesOf(r.members)
	if err != nil || !whole {
		p.turns.Undo()
		return false, err
	}
	plan.valves, plan.shares, plan.leases, plan.sorted = valves, r.shares, leases, true
	v.cache.dropEmpty(empty, c.owners)
	return true, nil
}

// lineRows is what was read from the lines of a claim.
type lineRows struct {
	heads   []lane.Head
	shares  []share
	members []member // the rows of all shares, one share after the other
}

// readCachedLines reads the lines of the owners whose turn it is, and of more owners while these are not enough.
func (p *claimPlanner) readCachedLines(v *claimView, c *turnRequest) (r lineRows, err error) {
	done := map[int64]bool{}
	enough := func() bool { return len(r.members) >= c.Jobs && len(r.shares) >= lane.Owners(c.Jobs) }
	for asked := spareOwners * c.Jobs; !enough(); {
		for _, owner := range c.owners {
			for _, l := range v.cache.byOwner[owner] {
				if done[l.number] || enough() {
					continue
				}
				done[l.number] = true
				if err := r.readLine(v, l, c.depth); err != nil {
					return r, err
				}
			}
		}
		if len(c.owners) == len(v.cache.owners) {
			break
		}
		asked *= 2
		c.owners = p.turns.Choose(v.cache.owners, asked)
	}
	return r, nil
}

// readLine reads the first rows of one line.
func (r *lineRows) readLine(v *claimView, l line, depth int) error {
	s := share{line: l, limit: depth, rows: make([]readyRow, 0, depth)}
	h := lane.Head{Share: lane.Share{Lane: l.lane, Line: l.number}, Keys: make([]lane.Key, 0, depth)}
	err := v.rows("read_ready_rows", []any{l.number, depth}, func(st *sqlite.Stmt) error {
		m := member{job: columnID(st, 1), token: st.ColumnInt(2), failures: st.ColumnInt(3), crashes: st.ColumnInt(4), interrupts: st.ColumnInt(5), generation: st.ColumnInt(6)}
		r.members = append(r.members, m)
		s.rows = append(s.rows, readyRow{st.ColumnInt64(0), m.job, m.token})
		h.Keys = append(h.Keys, lane.Key{Priority: int16(st.ColumnInt64(0)), Job: m.job})
		return nil
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
			empty[s.number] = true
		}
		kept = append(kept, r.members[next:next+taken]...)
		s.rows = s.rows[:taken]
		next += all
	}
	r.members = kept
	return empty
}

// leasesOf reads the facts of jobs and returns their leases by priority and age. whole is false if a job has no facts.
func (v *claimView) leasesOf(members []member) (leases []store.Lease, whole bool, err error) {
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.job[:], b.job[:]) })
	ids := make([]holdfast.ID, len(members))
	for i := range members {
		ids[i] = members[i].job
	}
	leases = make([]store.Lease, len(members))
	next, found := 0, 0
	err = v.rowsByID("read_facts", ids, func(st *sqlite.Stmt) error {
		id := columnID(st, 0)
		for next < len(ids) && ids[next] != id {
			next++
		}
		if next == len(ids) {
			return nil
		}
		l, m := &leases[next], &members[next]
		readFacts(st, l)
		l.Token, l.Failures, l.Crashes, l.Releases, l.Generation = m.token, m.failures, m.crashes, m.interrupts, m.generation
		found++
		return nil
	})
	urgent := func(a, b store.Lease) int { return cmp.Compare(a.Priority, b.Priority) }
	if !slices.IsSortedFunc(leases, urgent) {
		slices.SortStableFunc(leases, urgent)
	}
	return leases, found == len(members), err
}
