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
	scope  *lane.Scope
	holds  []holdfast.Hold
	valves *lane.Valves
	of     map[string]*group
	groups []*group
	names  []string // of the groups
	start  int32
	gone   bool // some groups have ended
}

// A group is all that one owner has.
type group struct {
	owner  string
	first  int32 // the lane that was there first
	places []spot
}

// A spot is a place and its lane.
type spot struct {
	place place
	lane  *lane.Lane
}

// maxViews is how many scopes are worth remembering.
const maxViews = 8

// view answers with what is open in a scope behind some holds, and with how often kinds had been declared by then.
func (l *lines) view(scope *lane.Scope, holds []holdfast.Hold) (*view, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := scope.Key()
	if known := l.views[name]; known != nil && alike(known.holds, holds) {
		return known, l.told
	}
	v := &view{scope: scope, holds: holds, valves: lane.NewValves(holds, time.Time{}), of: map[string]*group{}}
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
	return v, l.told
}

// owners is how many have something in a view.
func (l *lines) owners(v *view) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(v.of)
}

// some reports whether a line in a view is such a one.
func (l *lines) some(v *view, such func(l *lane.Lane, retries bool) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range v.of {
		if slices.ContainsFunc(g.places, func(at spot) bool { return such(at.lane, at.place.lane < 0) }) {
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
	g := v.of[l.Owner]
	if g == nil {
		g = &group{owner: l.Owner, first: max(p.lane, -p.lane)}
		v.of[l.Owner] = g
		v.groups, v.names = append(v.groups, g), append(v.names, l.Owner)
	}
	g.places = append(g.places, spot{p, l})
}

// remove takes a place out of the view, and its owner with the last one.
func (v *view) remove(p place, owner string) {
	g := v.of[owner]
	if g == nil {
		return
	}
	if g.places = slices.DeleteFunc(g.places, func(at spot) bool { return at.place == p }); len(g.places) == 0 {
		delete(v.of, owner)
		v.gone = true
	}
}

// owners are those who have something, mostly in the order of their lanes.
func (v *view) owners() []string {
	if v.gone {
		v.groups, v.gone = slices.DeleteFunc(v.groups, func(g *group) bool { return len(g.places) == 0 }), false
		v.name()
	}
	return v.names
}

// sort puts the owners in the order of their lanes: those who are served together have their jobs close to each other. Where
// that begins is random, so that processes do not all go for the same.
func (v *view) sort() {
	if v.start == 0 && len(v.groups) > 0 {
		v.start = v.groups[rand.IntN(len(v.groups))].first
	}
	slices.SortFunc(v.groups, func(a, b *group) int { return cmp.Compare(uint32(a.first-v.start), uint32(b.first-v.start)) })
	v.name()
}

func (v *view) name() {
	v.names = v.names[:0]
	for _, g := range v.groups {
		v.names = append(v.names, g.owner)
	}
}
