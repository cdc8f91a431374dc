package sqlite

import (
	"maps"
	"slices"
	"strconv"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
	"zombiezen.com/go/sqlite"
)

// A line is a row of jobs in ready: a lane's first attempts or, under the negative of its number, its retries.
type line struct {
	number int64
	lane   *lane.Lane
}

func (l line) retries() bool { return l.number < 0 }

// A view is what is to be seen of lanes and holds at one moment, on one connection.
type view struct {
	*session
	now    int64
	lanes  *lanes
	scope  *lane.Scope
	slots  int            // that the claim has for each owner; 0: no bound
	busy   map[string]int // how many of them are taken
	bytes  int            // that the claim has for all jobs; 0: no bound
	writes bool           // the connection is the writer's: it may see lanes that are never committed

	extra  map[int64]*lane.Lane // these
	edits  int64                // how often facts of queued jobs were changed
	holds  []held
	kinds  map[string]string // what kinds depend on; nil: nobody asks
	valves *lane.Valves      // before anything is counted
	lines  []line            // not empty and open
	crowd  *crowd            // these, if they are many
}

// behold reads the holds, and how often queued jobs were edited.
func (v *view) behold() (err error) {
	if v.holds, v.edits, err = readHolds(v.session); err != nil {
		return err
	}
	v.valves = v.newValves()
	if slices.ContainsFunc(v.holds, func(h held) bool { return h.scope == "dependency" && h.inForce(v.now) }) {
		v.kinds = map[string]string{}
		err = v.rows("kind_read", nil, func(st *sqlite.Stmt) error {
			v.kinds[st.ColumnText(0)] = st.ColumnText(1)
			return nil
		})
	}
	return err
}

func (v *view) newValves() *lane.Valves {
	holds := make([]holdfast.Hold, 0, len(v.holds))
	for i := range v.holds {
		if v.holds[i].inForce(v.now) {
			holds = append(holds, v.holds[i].hold(v.now))
		}
	}
	valves := lane.NewValves(holds, instant(v.now))
	valves.Bound(v.slots, v.busy)
	return valves
}

// lane is a lane as holds see it: with what its kind depends on, unless its jobs say something else.
func (v *view) lane(id int64) *lane.Lane {
	l := v.extra[id]
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

// farther is how many times as many lines as its own lanes a survey walks past, at most, before it asks for its own lines one by one.
const farther = 4

// survey finds the lines in the view's scope that are not empty and, by the valves, open. It walks from line to line through ready, or probes the lines of
// its own lanes when more lines than that are not empty: lanes of others cost it nothing. Many is how many lines were not empty of late. The answer is
// all lines that are not empty, if it met all of them, and at least how many there are.
func (v *view) survey(many int) (all []int64, n int, err error) {
	if err := v.learn(); err != nil {
		return nil, many, err
	}
	own := v.own()
	if len(own) == 0 {
		return nil, many, nil
	}
	if most := farther * len(own); many <= most {
		if all, err = v.walk(most + 1); err != nil || len(all) <= most {
			return all, len(all), err
		}
		many = len(all)
	}
	return nil, many, v.rows("probe_lines", []any{numbers(own)}, func(st *sqlite.Stmt) error {
		v.admit(st.ColumnInt64(0))
		return nil
	})
}

// own are the lanes in the view's scope, but for those whose lines are all closed.
func (v *view) own() []*lane.Lane {
	all := slices.AppendSeq(v.lanes.in(v.scope), maps.Values(v.extra))
	if v.valves == nil || len(v.holds) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(l *lane.Lane) bool {
		l = v.lane(l.ID)
		return !v.valves.Open(l, false) && !v.valves.Open(l, true)
	})
}

// walk finds lines that are not empty, so many at most, and admits them if these are all.
func (v *view) walk(most int) (all []int64, err error) {
	all = []int64{}
	err = v.rows("find_lines", []any{most}, func(st *sqlite.Stmt) error {
		all = append(all, st.ColumnInt64(0))
		return nil
	})
	if err != nil || len(all) == most {
		return all, err
	}
	for _, number := range all {
		v.admit(number)
	}
	return all, nil
}

// admit adds a line to the view, if it is in the scope and open.
func (v *view) admit(number int64) {
	l := v.lane(max(number, -number))
	if l != nil && v.scope.Covers(l) && (v.valves == nil || v.valves.Open(l, number < 0)) {
		v.lines = append(v.lines, line{number, l})
	}
}

// learn makes sure that no lane is unknown.
func (v *view) learn() error {
	if !v.writes {
		return v.lanes.learn(v.session)
	}
	beyond, err := v.lanes.beyond(v.session)
	for i := range beyond {
		if v.lanes.lane(beyond[i].ID) != nil {
			continue
		}
		if v.extra == nil {
			v.extra = map[int64]*lane.Lane{}
		}
		v.extra[beyond[i].ID] = &beyond[i]
	}
	return err
}

// numbers are those of the lanes' lines, as a list for the database.
func numbers(of []*lane.Lane) string {
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

// peek reads the first keys of a line, from one priority to another.
func (v *view) peek(l line, from, to int64, depth int) (keys []lane.Key, err error) {
	return v.peekAfter(l, from, nil, to, depth)
}

// peekAfter reads the first keys of a line behind a job of the first of these priorities, up to the last of them.
func (v *view) peekAfter(l line, from int64, after []byte, to int64, depth int) (keys []lane.Key, err error) {
	err = v.rows("peek", []any{l.number, from, after, to, depth}, func(st *sqlite.Stmt) error {
		keys = append(keys, lane.Key{Priority: int16(st.ColumnInt64(0)), Job: columnID(st, 1)})
		return nil
	})
	return keys, err
}

// priorities are those that wait in a line, lowest first.
func (v *view) priorities(l line) (all []int16, err error) {
	err = v.rows("find_priorities", []any{l.number}, func(st *sqlite.Stmt) error {
		all = append(all, int16(st.ColumnInt64(0)))
		return nil
	})
	return all, err
}
