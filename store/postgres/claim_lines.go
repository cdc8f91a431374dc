package postgres

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// An openLines is the open lines of a scope by owner: those with ready jobs that no hold closes. It changes little between claims, so the lineMemory
// updates it instead of building it again. All its methods need the lock of the lineMemory.
type openLines struct {
	scope   *lane.Scope
	holds   []store.Hold
	valves  *lane.Valves
	byOwner map[string]*ownerPlaces
	ordered []*ownerPlaces
	names   []string // the owners of ordered
	start   int32
	removed bool // some owners in ordered have no places left
}

// A place is one priority of a line. Its jobs are ordered by id, which is by age.
type place struct {
	lane     int32 // negative: the line of the lane's retries
	priority int16
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

// add adds a place that is not there yet, if it is in the scope and no hold closes it.
func (o *openLines) add(p place, l *lane.Lane) {
	if !o.scope.Covers(l) || !o.valves.Open(l, p.lane < 0) {
		return
	}
	g := o.byOwner[l.Owner]
	if g == nil {
		g = &ownerPlaces{owner: l.Owner, first: max(p.lane, -p.lane)}
		o.byOwner[l.Owner] = g
		o.ordered, o.names = append(o.ordered, g), append(o.names, l.Owner)
	}
	g.places = append(g.places, lanePlace{p, l})
}

// remove removes a place, and its owner with the last one.
func (o *openLines) remove(p place, owner string) {
	g := o.byOwner[owner]
	if g == nil {
		return
	}
	if g.places = slices.DeleteFunc(g.places, func(at lanePlace) bool { return at.place == p }); len(g.places) == 0 {
		delete(o.byOwner, owner)
		o.removed = true
	}
}

// owners returns the owners, mostly in the order of their lanes.
func (o *openLines) owners() []string {
	if o.removed {
		o.ordered, o.removed = slices.DeleteFunc(o.ordered, func(g *ownerPlaces) bool { return len(g.places) == 0 }), false
		o.rebuildNames()
	}
	return o.names
}

// sort orders the owners by their lanes, because jobs of neighbouring lanes lie close to each other in the index. The order starts at a random owner,
// so that processes do not all claim from the same one.
func (o *openLines) sort() {
	if o.start == 0 && len(o.ordered) > 0 {
		o.start = o.ordered[rand.IntN(len(o.ordered))].first
	}
	slices.SortFunc(o.ordered, func(a, b *ownerPlaces) int { return cmp.Compare(uint32(a.first-o.start), uint32(b.first-o.start)) })
	o.rebuildNames()
}

// rebuildNames sets names to the owners in ordered.
func (o *openLines) rebuildNames() {
	o.names = o.names[:0]
	for _, g := range o.ordered {
		o.names = append(o.names, g.owner)
	}
}
