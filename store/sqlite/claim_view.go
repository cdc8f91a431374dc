package sqlite

import (
	"maps"
	"slices"
	"strconv"

	"zombiezen.com/go/sqlite"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A line is the ready jobs of a lane: its first attempts or, under the negative of the lane's number, its retries.
type line struct {
	number int64
	lane   *lane.Lane
}

func (l line) retries() bool { return l.number < 0 }

// A claimView is what one claim reads of lanes and holds on one connection, within one transaction.
type claimView struct {
	*session
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
	cache            *lineCache        // the same lines by owner, if there are many
}

// readHolds reads the holds and the edit counter and, if a dependency is held, which kinds depend on what.
func (v *claimView) readHolds() (err error) {
	if v.holds, v.edits, err = readHolds(v.session); err != nil {
		return err
	}
	v.valves = v.newValves()
	if slices.ContainsFunc(v.holds, func(h holdRow) bool { return h.scope == "dependency" && h.inForce(v.now) }) {
		v.kinds = map[string]string{}
		err = v.rows("kind_read", nil, func(st *sqlite.Stmt) error {
			v.kinds[st.ColumnText(0)] = st.ColumnText(1)
			return nil
		})
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

// lane returns a lane as the holds see it: with the dependency of its kind, unless its jobs name their own.
func (v *claimView) lane(id int64) *lane.Lane {
	l := v.uncommittedLanes[id]
	if l == nil {
		l = v.lanes.lane(id)
	}
	if l == nil || l.Dependency != "" || v.kinds[l.Kind] == "" {
		return l
	}
	resolved := *l
	resolved.Dependency = v.kinds[l.Kind]
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
	return nil, many, v.rows("probe_lines", []any{lineNumbers(own)}, func(st *sqlite.Stmt) error {
		v.addLine(st.ColumnInt64(0))
		return nil
	})
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
	all = []int64{}
	err = v.rows("find_lines", []any{most}, func(st *sqlite.Stmt) error {
		all = append(all, st.ColumnInt64(0))
		return nil
	})
	if err != nil || len(all) == most {
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
		return v.lanes.load(v.session)
	}
	beyond, err := v.lanes.newer(v.session)
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

// lineNumbers returns the numbers of the lanes' lines as a JSON list.
func lineNumbers(of []*lane.Lane) string {
	list := append(make([]byte, 0, 16*len(of)), '[')
	for i, l := range of {
		for j, number := range l.Lines() {
			if i+j > 0 {
				list = append(list, ',')
			}
			list = strconv.AppendInt(list, number, 10)
		}
	}
	return string(append(list, ']'))
}

// peek reads the first keys of a line between two priorities.
func (v *claimView) peek(l line, from, to int64, depth int) (keys []lane.Key, err error) {
	return v.peekAfter(l, from, nil, to, depth)
}

// peekAfter reads the first keys of a line that follow the job after in priority from, up to priority to.
func (v *claimView) peekAfter(l line, from int64, after []byte, to int64, depth int) (keys []lane.Key, err error) {
	err = v.rows("peek", []any{l.number, from, after, to, depth}, func(st *sqlite.Stmt) error {
		keys = append(keys, lane.Key{Priority: int16(st.ColumnInt64(0)), Job: columnID(st, 1)})
		return nil
	})
	return keys, err
}

// priorities returns the priorities that have jobs in a line, lowest number first.
func (v *claimView) priorities(l line) (all []int16, err error) {
	err = v.rows("find_priorities", []any{l.number}, func(st *sqlite.Stmt) error {
		all = append(all, int16(st.ColumnInt64(0)))
		return nil
	})
	return all, err
}
