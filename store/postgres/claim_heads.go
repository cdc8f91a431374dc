package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A planHeads is the heads that a plan picks from: lines of the owners whose turn it is. They are chosen in rounds. Each round considers more owners and
// leaves out what was read before.
type planHeads struct {
	even   bool           // each head is one priority of a line, because the claim shares evenly between priorities
	list   []lane.Head    // the heads of this round
	places [][]place      // the places that each head covers
	depth  int            // how many keys of each head are read
	all    bool           // the heads are those of all remaining owners
	round  int            // rounds so far
	factor float64        // multiple of the owners that lane.Turns chooses; see ownerReach
	peeked map[place]bool // heads of all rounds, see headPlace
	empty  []place        // places that were remembered as non-empty, but are empty
}

// wanted returns for how many jobs the owners of the next round are chosen, if this many are left: four times as many in each round.
func (h *planHeads) wanted(left int) int {
	return int(min(float64(left<<min(2*h.round, 16))*max(h.factor, 1), 1<<20))
}

// begin begins a round in which this many jobs are left and this many of the remaining owners were chosen.
func (h *planHeads) begin(left, chosen, owners int) {
	h.round++
	h.list, h.places = h.list[:0], h.places[:0]
	h.depth, h.all = left/max(chosen, 1)+1, chosen == owners
}

// addOwner adds the lines of an owner that were not read yet.
func (h *planHeads) addOwner(of *ownerPlaces) {
	first := len(h.list)
	for _, at := range of.places {
		switch i := h.index(first, at); {
		case i >= 0:
			h.places[i] = append(h.places[i], at.place)
		case !h.peeked[h.headPlace(at.place)]:
			h.peeked[h.headPlace(at.place)] = true
			head := lane.Head{Share: lane.Share{Lane: at.lane, Line: int64(at.place.lane)}}
			if h.even {
				head.Priority = &at.place.priority
			}
			h.list, h.places = append(h.list, head), append(h.places, []place{at.place})
		}
	}
}

// index returns the head, from index first on, that a place is read with, or -1.
func (h *planHeads) index(first int, at lanePlace) int {
	for i := first; i < len(h.list) && !h.even; i++ {
		if h.list[i].Line == int64(at.place.lane) {
			return i
		}
	}
	return -1
}

// allPeeked reports whether all places of an owner were read.
func (h *planHeads) allPeeked(of *ownerPlaces) bool {
	return !slices.ContainsFunc(of.places, func(at lanePlace) bool { return !h.peeked[h.headPlace(at.place)] })
}

// headPlace returns what a place is read with: its whole line, or only its priority in a claim that shares evenly between priorities.
func (h *planHeads) headPlace(at place) place {
	if !h.even {
		at.priority = 0
	}
	return at
}

// queuePeek queues the query for the first depth jobs of each head, without locks. Jobs with a held tag go to held instead of their head.
func (p *claimPlan) queuePeek() {
	h := &p.heads
	if len(h.list) == 0 {
		return
	}
	for i := range h.list {
		h.list[i].Keys, h.list[i].More = nil, false
	}
	p.held = nil
	seen := make([]int, len(h.list))
	p.planner.read.queueKeys(p.pipe.Batch, keyQuery{h.list, h.depth, p.view.tags}, func(n int, key lane.Key, tag pgtype.Text) {
		seen[n]++
		if tag.Valid {
			p.held = append(p.held, tagHeldJob{lineKey{h.list[n].Line, key}, tag.String})
			return
		}
		h.list[n].Keys = append(h.list[n].Keys, key)
	}, func() {
		for i := range h.list {
			h.list[i].More = seen[i] >= h.depth
			if seen[i] == 0 {
				h.empty = append(h.empty, h.places[i]...)
			}
		}
	})
}
