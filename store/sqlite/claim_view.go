package sqlite

import (
	"maps"
	"slices"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A claimView is what one claim sees of holds, lanes and lines on one connection, within one transaction.
type claimView struct {
	read     claimReader
	now      int64
	lanes    *laneCache
	scope    *lane.Scope
	slots    int            // the claim's limit for each owner; 0: none
	busy     map[string]int // how many jobs of each owner the caller already runs
	bytes    int            // the claim's limit for the bytes of all jobs; 0: none
	onWriter bool           // the connection is the writer's: it sees lanes that may never be committed

	uncommittedLanes map[int64]*lane.Lane // lanes that only this transaction sees
	edits            int64                // holdfast_feed.edits: how often facts of queued jobs were changed
	holds            []holdRow
	kinds            map[string]string // the dependency of each kind; nil: not needed
	valves           *lane.Valves      // the holds in force, before processing jobs are counted
	lines            []line            // not empty, and not closed by a hold
	open             *openLines        // the same lines by owner, if there are many
}

// readHolds reads the holds and the edit counter and, if a dependency is held, which kinds depend on what.
func (v *claimView) readHolds() (err error) {
	if v.holds, v.edits, err = v.read.holds(); err != nil {
		return err
	}
	v.valves = v.newValves()
	if slices.ContainsFunc(v.holds, func(h holdRow) bool { return h.scope == "dependency" && h.inForce(v.now) }) {
		v.kinds, err = v.read.kinds()
	}
	return err
}

// newValves returns the valves of the holds in force, with the claim's own limits.
func (v *claimView) newValves() *lane.Valves {
	holds := make([]store.Hold, 0, len(v.holds))
	for i := range v.holds {
		if v.holds[i].inForce(v.now) {
			holds = append(holds, v.holds[i].toHold(v.now))
		}
	}
	valves := lane.NewValves(holds, instant(v.now))
	valves.Bound(v.slots, v.busy)
	return valves
}

// valvesWith returns new valves that have counted the processing jobs.
func (v *claimView) valvesWith(live map[int64]int) *lane.Valves {
	valves := v.newValves()
	for number, jobs := range live {
		if l := v.lane(max(number, -number)); l != nil {
			valves.Live(l, number < 0, jobs)
		}
	}
	return valves
}

// lane returns a lane as the holds see it: with the dependency of its kind, unless its jobs name their own.
func (v *claimView) lane(id int64) *lane.Lane {
	l := v.uncommittedLanes[id]
	if l == nil {
		l = v.lanes.lane(id)
	}
	if l == nil {
		return nil
	}
	dependency := lane.Dependency(l.Dependency, l.Kind, v.kinds)
	if dependency == l.Dependency {
		return l
	}
	resolved := *l
	resolved.Dependency = dependency
	return &resolved
}

// probeFactor bounds the search for lines. After walking past this many times as many lines as the claim has lanes, it
// probes the claim's own lines one by one.
const probeFactor = 4

// findLines finds the lines in the view's scope that are not empty and not closed by a hold. It walks from line to line
// through holdfast_ready; if more lines are not empty than the claim has lanes (times probeFactor), it probes the lines
// of the claim's own lanes instead, so that other jobs cost the claim nothing. many is how many lines were not empty at
// the last search. findLines returns all non-empty lines if it met all of them, and at least how many there are.
func (v *claimView) findLines(many int) (all []int64, n int, err error) {
	if err := v.loadLanes(); err != nil {
		return nil, many, err
	}
	own := v.ownLanes()
	if len(own) == 0 {
		return nil, many, nil
	}
	if most := probeFactor * len(own); many <= most {
		if all, err = v.walkLines(most + 1); err != nil || len(all) <= most {
			return all, len(all), err
		}
		many = len(all)
	}
	return nil, many, v.read.linesOf(own, v.addLine)
}

// ownLanes returns the lanes in the view's scope, without those whose lines are all closed.
func (v *claimView) ownLanes() []*lane.Lane {
	all := slices.AppendSeq(v.lanes.inScope(v.scope), maps.Values(v.uncommittedLanes))
	if v.valves == nil || len(v.holds) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(l *lane.Lane) bool {
		l = v.lane(l.ID)
		return !v.valves.Open(l, false) && !v.valves.Open(l, true)
	})
}

// walkLines returns up to most non-empty lines. If these are all, it adds them to the view.
func (v *claimView) walkLines(most int) (all []int64, err error) {
	if all, err = v.read.lines(most); err != nil || len(all) == most {
		return all, err
	}
	for _, number := range all {
		v.addLine(number)
	}
	return all, nil
}

// addLine adds a line to the view if it is in the scope and open.
func (v *claimView) addLine(number int64) {
	l := v.lane(max(number, -number))
	if l != nil && v.scope.Covers(l) && (v.valves == nil || v.valves.Open(l, number < 0)) {
		v.lines = append(v.lines, line{number, l})
	}
}

// loadLanes makes all lanes known that the transaction sees. On the writer's connection, lanes that are not committed
// stay with the view: the transaction may still be rolled back.
func (v *claimView) loadLanes() error {
	if !v.onWriter {
		return v.lanes.load(v.read.session)
	}
	beyond, err := v.lanes.newer(v.read.session)
	for i := range beyond {
		if v.lanes.lane(beyond[i].ID) != nil {
			continue
		}
		if v.uncommittedLanes == nil {
			v.uncommittedLanes = map[int64]*lane.Lane{}
		}
		v.uncommittedLanes[beyond[i].ID] = &beyond[i]
	}
	return err
}

// needsTurns reports whether the order of keys alone does not decide: several owners share, or a hold lets only some
// jobs through.
func (v *claimView) needsTurns() bool { return !v.singleOwner() || v.valves.Selective(v.anyLine) }

// anyLine reports whether a line of the view satisfies a condition.
func (v *claimView) anyLine(such func(l *lane.Lane, retries bool) bool) bool {
	return slices.ContainsFunc(v.lines, func(l line) bool { return such(l.lane, l.retries()) })
}

// countsLive reports whether a hold in force limits how many jobs are processing, among the lines of the view.
func (v *claimView) countsLive() bool {
	return slices.ContainsFunc(v.holds, func(h holdRow) bool { return h.atMost > 0 && h.inForce(v.now) }) && v.anyLine(v.valves.Capped)
}

// singleOwner reports whether all lines belong to one owner.
func (v *claimView) singleOwner() bool {
	return !slices.ContainsFunc(v.lines, func(l line) bool { return l.lane.Owner != v.lines[0].lane.Owner })
}

// owners returns the owners of the lines.
func (v *claimView) owners() (names []string) {
	if v.open != nil {
		return v.open.owners
	}
	met := map[string]bool{}
	for _, l := range v.lines {
		if !met[l.lane.Owner] {
			met[l.lane.Owner] = true
			names = append(names, l.lane.Owner)
		}
	}
	return names
}

// linesOf returns the lines of these owners.
func (v *claimView) linesOf(turn map[string]bool) (lines []line) {
	if v.open == nil {
		for _, l := range v.lines {
			if turn[l.lane.Owner] {
				lines = append(lines, l)
			}
		}
		return lines
	}
	for _, owner := range v.open.owners {
		if turn[owner] {
			lines = append(lines, v.open.byOwner[owner]...)
		}
	}
	return lines
}
