package sqlite

import (
	"maps"
	"slices"
	"strconv"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/lane"
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
	queues []string
	writes bool // the connection is the writer's: it may see lanes that are never committed

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
		err = v.rows("claim-kinds", nil, func(st *sqlite.Stmt) error {
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
	return lane.NewValves(holds, instant(v.now))
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

// survey finds the lines of the view's queues that are not empty and, by the valves, open. It goes from line to line through
// ready, or asks for its own lines one by one when there are fewer of these; many is how many lines were not empty of late.
// The answer is all lines that it met, if it went through all.
func (v *view) survey(many int) (all []int64, err error) {
	if err := v.learn(); err != nil {
		return nil, err
	}
	own := v.lanes.many(v.queues) + len(v.extra)
	if own == 0 {
		return nil, nil
	}
	if 4*own < many {
		lines := numbers(slices.AppendSeq(v.lanes.in(v.queues), maps.Values(v.extra)))
		return nil, v.rows("claim-probe", []any{lines}, func(st *sqlite.Stmt) error {
			v.admit(st.ColumnInt64(0))
			return nil
		})
	}
	all = []int64{}
	err = v.rows("claim-lines", nil, func(st *sqlite.Stmt) error {
		all = append(all, st.ColumnInt64(0))
		v.admit(st.ColumnInt64(0))
		return nil
	})
	return all, err
}

// admit adds a line to the view, if it is one of its queues' and open.
func (v *view) admit(number int64) {
	l := v.lane(max(number, -number))
	if l != nil && slices.Contains(v.queues, l.Queue) && (v.valves == nil || v.valves.Open(l, number < 0)) {
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
	err = v.rows("claim-peek", []any{l.number, from, []byte{}, to, depth}, func(st *sqlite.Stmt) error {
		keys = append(keys, lane.Key{Priority: int16(st.ColumnInt64(0)), Job: columnID(st, 1)})
		return nil
	})
	return keys, err
}

// priorities are those that wait in a line, lowest first.
func (v *view) priorities(l line) (all []int16, err error) {
	err = v.rows("claim-priorities", []any{l.number}, func(st *sqlite.Stmt) error {
		all = append(all, int16(st.ColumnInt64(0)))
		return nil
	})
	return all, err
}
