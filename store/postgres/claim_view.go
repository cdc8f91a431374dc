package postgres

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A view is what is open of what waits, by owner. It is the same from claim to claim but for what comes and goes, so it is kept
// up to date instead of being made anew. Whoever uses it has locked the lines.
type view struct {
	scope   *lane.Scope
	holds   []holdfast.Hold
	valves  *lane.Valves
	byOwner map[string]*ownerPlaces
	ordered []*ownerPlaces
	names   []string // of the groups
	start   int32
	removed bool // some groups have ended
}

// A group is all that one owner has.
type ownerPlaces struct {
	owner  string
	first  int32 // the lane that was there first
	places []lanePlace
}

// A spot is a place and its lane.
type lanePlace struct {
	place place
	lane  *lane.Lane
}

// maxViews is how many scopes are worth remembering.
const maxViews = 8

// view answers with what is open in a scope behind some holds, and with how often kinds had been declared by then.
func (l *lineMemory) view(scope *lane.Scope, holds []holdfast.Hold) (*view, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := scope.Key()
	if known := l.views[name]; known != nil && sameRules(known.holds, holds) {
		return known, l.kindsVersion
	}
	v := &view{scope: scope, holds: holds, valves: lane.NewValves(holds, time.Time{}), byOwner: map[string]*ownerPlaces{}}
	for p := range l.at {
		if known := l.lanes[max(p.lane, -p.lane)]; known != nil {
			v.add(p, known)
		}
	}
	v.sort()
	if l.views == nil || len(l.views) >= maxViews {
		l.views = map[string]*view{}
	}
	l.views[name] = v
	return v, l.kindsVersion
}

// owners is how many have something in a view.
func (l *lineMemory) ownerCount(v *view) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(v.byOwner)
}

// some reports whether a line in a view is such a one.
func (l *lineMemory) anyLine(v *view, such func(l *lane.Lane, retries bool) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range v.byOwner {
		if slices.ContainsFunc(g.places, func(at lanePlace) bool { return such(at.lane, at.place.lane < 0) }) {
			return true
		}
	}
	return false
}

// add puts a place that is not there yet into the view, if it is open.
func (v *view) add(p place, l *lane.Lane) {
	if !v.scope.Covers(l) || !v.valves.Open(l, p.lane < 0) {
		return
	}
	g := v.byOwner[l.Owner]
	if g == nil {
		g = &ownerPlaces{owner: l.Owner, first: max(p.lane, -p.lane)}
		v.byOwner[l.Owner] = g
		v.ordered, v.names = append(v.ordered, g), append(v.names, l.Owner)
	}
	g.places = append(g.places, lanePlace{p, l})
}

// remove takes a place out of the view, and its owner with the last one.
func (v *view) remove(p place, owner string) {
	g := v.byOwner[owner]
	if g == nil {
		return
	}
	if g.places = slices.DeleteFunc(g.places, func(at lanePlace) bool { return at.place == p }); len(g.places) == 0 {
		delete(v.byOwner, owner)
		v.removed = true
	}
}

// owners are those who have something, mostly in the order of their lanes.
func (v *view) owners() []string {
	if v.removed {
		v.ordered, v.removed = slices.DeleteFunc(v.ordered, func(g *ownerPlaces) bool { return len(g.places) == 0 }), false
		v.rebuildNames()
	}
	return v.names
}

// sort puts the owners in the order of their lanes: those who are served together have their jobs close to each other. Where
// that begins is random, so that processes do not all go for the same.
func (v *view) sort() {
	if v.start == 0 && len(v.ordered) > 0 {
		v.start = v.ordered[rand.IntN(len(v.ordered))].first
	}
	slices.SortFunc(v.ordered, func(a, b *ownerPlaces) int { return cmp.Compare(uint32(a.first-v.start), uint32(b.first-v.start)) })
	v.rebuildNames()
}

func (v *view) rebuildNames() {
	v.names = v.names[:0]
	for _, g := range v.ordered {
		v.names = append(v.names, g.owner)
	}
}
