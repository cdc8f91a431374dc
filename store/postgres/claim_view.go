package postgres

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A view is the open places of a scope, by owner: those with ready jobs that no hold closes. It changes little between claims, so it is updated
// instead of being built again. All its methods need the lock of the lineMemory.
type view struct {
	scope   *lane.Scope
	holds   []store.Hold
	valves  *lane.Valves
	byOwner map[string]*ownerPlaces
	ordered []*ownerPlaces
	names   []string // the owners of ordered
	start   int32
	removed bool // some owners in ordered have no places left
}

// An ownerPlaces is the open places of one owner.
type ownerPlaces struct {
	owner  string
	first  int32 // the lane that was added first; the sort key
	places []lanePlace
}

// A lanePlace is a place with its lane.
type lanePlace struct {
	place place
	lane  *lane.Lane
}

// maxViews bounds the number of views that are kept.
const maxViews = 8

// view returns the open places of a scope under the given holds, and the version of the declared dependencies that they depend on.
func (l *lineMemory) view(scope *lane.Scope, holds []store.Hold) (*view, int) {
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

// ownerCount returns the number of owners in a view.
func (l *lineMemory) ownerCount(v *view) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(v.byOwner)
}

// anyLine reports whether a line in a view satisfies such.
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

// add adds a place that is not in the view yet, if it is in the scope and no hold closes it.
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

// remove removes a place, and its owner with the last one.
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

// owners returns the owners of the view, mostly in the order of their lanes.
func (v *view) owners() []string {
	if v.removed {
		v.ordered, v.removed = slices.DeleteFunc(v.ordered, func(g *ownerPlaces) bool { return len(g.places) == 0 }), false
		v.rebuildNames()
	}
	return v.names
}

// sort orders the owners by their lanes, because jobs of neighbouring lanes lie close to each other in the index. The order starts at a random owner,
// so that processes do not all claim from the same one.
func (v *view) sort() {
	if v.start == 0 && len(v.ordered) > 0 {
		v.start = v.ordered[rand.IntN(len(v.ordered))].first
	}
	slices.SortFunc(v.ordered, func(a, b *ownerPlaces) int { return cmp.Compare(uint32(a.first-v.start), uint32(b.first-v.start)) })
	v.rebuildNames()
}

// rebuildNames sets names to the owners in ordered.
func (v *view) rebuildNames() {
	v.names = v.names[:0]
	for _, g := range v.ordered {
		v.names = append(v.names, g.owner)
	}
}
