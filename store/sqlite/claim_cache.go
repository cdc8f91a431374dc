package sqlite

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
	"zombiezen.com/go/sqlite"
)

// Going through all lines takes long when there are many. So that is done once in a while: a line that fills up in between is
// met that much later, unless the others are not enough.
const (
	crowded    = 64                     // lines of several owners; those of one owner are a crowd when they are more than manyLines
	recent     = 100 * time.Millisecond // at least; and a twentieth of the time
	rarely     = 20
	mostCrowds = 8 // scopes that are worth remembering
	spare      = 4 // times as many owners are chosen as there should be: some have little left
)

// A crowd is many lines, as they were seen behind some holds, by owner.
type crowd struct {
	until  time.Time
	holds  []held
	kinds  map[string]string
	lines  []line
	owners []string
	of     map[string][]line
	heads  *heads // of these lines; nil: nobody took runs yet
	even   bool   // a claim of the one owner found jobs of one priority only
}

func newCrowd(v *view, began time.Time) *crowd {
	now := time.Now()
	c := &crowd{until: now.Add(max(recent, rarely*now.Sub(began))), holds: v.holds, kinds: v.kinds}
	c.gather(v.lines)
	return c
}

func (c *crowd) gather(lines []line) {
	c.lines, c.owners, c.of = lines, c.owners[:0], make(map[string][]line, len(lines))
	for _, l := range lines {
		if c.of[l.lane.Owner] == nil {
			c.owners = append(c.owners, l.lane.Owner)
		}
		c.of[l.lane.Owner] = append(c.of[l.lane.Owner], l)
	}
}

// leave strikes out lines of some owners that a claim takes the last of. If they fill up again, the next look at all of them finds out.
func (c *crowd) leave(empty map[int64]bool, owners []string) {
	if len(empty) == 0 {
		return
	}
	c.lines = slices.DeleteFunc(c.lines, func(l line) bool { return empty[l.number] })
	gone := map[string]bool{}
	for _, owner := range owners {
		if c.of[owner] = slices.DeleteFunc(c.of[owner], func(l line) bool { return empty[l.number] }); len(c.of[owner]) == 0 {
			delete(c.of, owner)
			gone[owner] = true
		}
	}
	if len(gone) > 0 {
		c.owners = slices.DeleteFunc(slices.Clone(c.owners), func(owner string) bool { return gone[owner] })
	}
}

// fits reports whether a view would see the same.
func (c *crowd) fits(v *view) bool {
	return c != nil && time.Now().Before(c.until) && maps.Equal(c.kinds, v.kinds) &&
		slices.EqualFunc(c.holds, v.holds, func(a, b held) bool {
			a.level, a.levelAt = b.level, b.levelAt // whether a line is open is not a matter of tokens
			return a == b
		})
}

// of are the lines of those whose turn it is.
func (v *view) of(turn map[string]bool) (lines []line) {
	if v.crowd == nil {
		for _, l := range v.lines {
			if turn[l.lane.Owner] {
				lines = append(lines, l)
			}
		}
		return lines
	}
	for _, owner := range v.crowd.owners {
		if turn[owner] {
			lines = append(lines, v.crowd.of[owner]...)
		}
	}
	return lines
}

// chosen is what a claim goes by when it is divided.
type chosen struct {
	turn  []string
	depth int
	lane.Order
}

// divideCrowd divides a claim of a crowd among the first jobs of those whose turn it is, and goes on to more owners until that is
// enough. Nobody gets more at a turn than the depth, so nobody loses by that. The facts of what was picked are read in the order
// of the jobs, where neighbours lie together, and not owner by owner. It is false when there was not enough, when some might
// have to be set aside, or when a job is without facts.
func (p *planner) divideCrowd(v *view, seen *sight, c chosen) (done bool, err error) {
	if c.Even || len(v.valves.Tags()) > 0 {
		return false, nil
	}
	c.depth = c.Jobs/lane.Owners(c.Jobs) + 1
	r, err := p.readCrowd(v, &c)
	if err != nil {
		return false, err
	}
	valves := v.fill(seen.live)
	if picked, _ := p.turns.Pick(r.heads, valves, c.Order); total(picked) < c.Jobs {
		p.turns.Undo()
		return false, nil
	}
	empty := r.narrow()
	leases, whole, err := v.facts(r.members)
	if err != nil || !whole {
		p.turns.Undo()
		return false, err
	}
	seen.valves, seen.shares, seen.leases, seen.sorted = valves, r.shares, leases, true
	v.crowd.leave(empty, c.turn)
	return true, nil
}

// A reading is what stands in the lines that a claim looked into.
type reading struct {
	heads   []lane.Head
	shares  []share
	members []member // of all shares, one after the other
}

// readCrowd reads the lines of those whose turn it is, and of more owners while that is not enough.
func (p *planner) readCrowd(v *view, c *chosen) (r reading, err error) {
	read := map[int64]bool{}
	enough := func() bool { return len(r.members) >= c.Jobs && len(r.shares) >= lane.Owners(c.Jobs) }
	for asked := spare * c.Jobs; !enough(); {
		for _, owner := range c.turn {
			for _, l := range v.crowd.of[owner] {
				if read[l.number] || enough() {
					continue
				}
				read[l.number] = true
				if err := r.line(v, l, c.depth); err != nil {
					return r, err
				}
			}
		}
		if len(c.turn) == len(v.crowd.owners) {
			break
		}
		asked *= 2
		c.turn = p.turns.Choose(v.crowd.owners, asked)
	}
	return r, nil
}

// line reads the beginning of one line.
func (r *reading) line(v *view, l line, depth int) error {
	s := share{line: l, limit: depth, row: make([]stand, 0, depth)}
	h := lane.Head{Share: lane.Share{Lane: l.lane, Line: l.number}, Keys: make([]lane.Key, 0, depth)}
	err := v.rows("read_ready_rows", []any{l.number, depth}, func(st *sqlite.Stmt) error {
		m := member{job: columnID(st, 1), token: st.ColumnInt(2), failures: st.ColumnInt(3), crashes: st.ColumnInt(4), interrupts: st.ColumnInt(5), generation: st.ColumnInt(6)}
		r.members = append(r.members, m)
		s.row = append(s.row, stand{st.ColumnInt64(0), m.job, m.token})
		h.Keys = append(h.Keys, lane.Key{Priority: int16(st.ColumnInt64(0)), Job: m.job})
		return nil
	})
	h.More = len(s.row) == depth
	r.shares, r.heads = append(r.shares, s), append(r.heads, h)
	return err
}

// narrow keeps of what was read what was picked, and answers with the lines of which nothing is left.
func (r *reading) narrow() (empty map[int64]bool) {
	kept, next := r.members[:0], 0
	empty = map[int64]bool{}
	for i := range r.shares {
		s := &r.shares[i]
		all, taken := len(s.row), r.heads[i].Jobs
		if taken == all && !r.heads[i].More {
			empty[s.number] = true
		}
		kept = append(kept, r.members[next:next+taken]...)
		s.row = s.row[:taken]
		next += all
	}
	r.members = kept
	return empty
}

// facts are the leases of jobs that stand so, by priority and age; whole says that none was without facts.
func (v *view) facts(members []member) (leases []holdfast.Lease, whole bool, err error) {
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.job[:], b.job[:]) })
	ids := make([]holdfast.ID, len(members))
	for i := range members {
		ids[i] = members[i].job
	}
	leases = make([]holdfast.Lease, len(members))
	next, found := 0, 0
	err = v.some("read_facts", ids, func(st *sqlite.Stmt) error {
		id := columnID(st, 0)
		for next < len(ids) && ids[next] != id {
			next++
		}
		if next == len(ids) {
			return nil
		}
		l, m := &leases[next], &members[next]
		readFacts(st, l)
		l.Token, l.Failures, l.Crashes, l.Interrupts, l.Generation = m.token, m.failures, m.crashes, m.interrupts, m.generation
		found++
		return nil
	})
	urgent := func(a, b holdfast.Lease) int { return cmp.Compare(a.Priority, b.Priority) }
	if !slices.IsSortedFunc(leases, urgent) {
		slices.SortStableFunc(leases, urgent)
	}
	return leases, found == len(members), err
}
