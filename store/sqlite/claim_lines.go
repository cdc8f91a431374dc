package sqlite

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A line is the ready jobs of a lane: its first attempts or, under the negative of the lane's number, its retries.
type line struct {
	number int64
	lane   *lane.Lane
}

func (l line) retries() bool { return l.number < 0 }

// An openLines is the open lines of a scope by owner, as they were found at one moment under certain holds: those with
// ready jobs that no hold closes. Claims remove the lines that they empty.
type openLines struct {
	until       time.Time
	holds       []holdRow
	kinds       map[string]string
	lines       []line
	owners      []string
	byOwner     map[string][]line
	heads       *headHeap // the first keys of these lines; nil: not read yet
	onePriority bool      // a claim of the only owner found a single priority
}

// newOpenLines groups the lines that a view has found in a search that began at this time.
func newOpenLines(v *claimView, began time.Time) *openLines {
	now := time.Now()
	c := &openLines{until: now.Add(max(minMemoryAge, memoryAgeFactor*now.Sub(began))), holds: v.holds, kinds: v.kinds}
	c.group(v.lines)
	return c
}

// group sets the lines and groups them by owner.
func (c *openLines) group(lines []line) {
	c.lines, c.owners, c.byOwner = lines, c.owners[:0], make(map[string][]line, len(lines))
	for _, l := range lines {
		if c.byOwner[l.lane.Owner] == nil {
			c.owners = append(c.owners, l.lane.Owner)
		}
		c.byOwner[l.lane.Owner] = append(c.byOwner[l.lane.Owner], l)
	}
}

// dropEmpty removes lines of some owners that a claim empties. If they get jobs again, the next search finds them.
func (c *openLines) dropEmpty(empty map[int64]bool, owners []string) {
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

// validFor reports whether a view would find the same lines: they are young, and the holds and the dependencies of kinds
// are the same.
func (c *openLines) validFor(v *claimView) bool {
	return c != nil && time.Now().Before(c.until) && maps.Equal(c.kinds, v.kinds) &&
		slices.EqualFunc(c.holds, v.holds, func(a, b holdRow) bool {
			a.level, a.levelAt = b.level, b.levelAt // the level of a rate limit does not close a line
			return a == b
		})
}
