package sqlite

import (
	"sync"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
	"zombiezen.com/go/sqlite"
)

// A laneKey identifies a lane.
type laneKey struct{ queue, kind, owner, dependency string }

// A laneCache is the committed lanes that this process knows. There may be thousands, and a lane never changes, so each
// is read once. It is safe for concurrent use.
type laneCache struct {
	mu      sync.RWMutex
	byKey   map[laneKey]int64
	byID    map[int64]*lane.Lane
	byQueue map[string]map[string][]*lane.Lane // by queue and kind
	lastID  int64                              // all lanes up to this id are known, and some beyond it may be
}

func newLaneCache() *laneCache {
	l := &laneCache{}
	l.reset()
	return l
}

// reset forgets all lanes. The writer calls it after it has reconnected: the file may be another one.
func (l *laneCache) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byKey, l.byID, l.byQueue, l.lastID = map[laneKey]int64{}, map[int64]*lane.Lane{}, map[string]map[string][]*lane.Lane{}, 0
}

func (l *laneCache) find(w laneKey) (id int64, known bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	id, known = l.byKey[w]
	return id, known
}

func (l *laneCache) lane(id int64) *lane.Lane {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.byID[id]
}

// inScope returns the lanes in a scope.
func (l *laneCache) inScope(s *lane.Scope) (all []*lane.Lane) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	l.each(s, func(some []*lane.Lane) { all = append(all, some...) })
	return all
}

// each visits the lanes of a scope; those of one queue and kind come together. The caller holds the lock.
func (l *laneCache) each(s *lane.Scope, visit func([]*lane.Lane)) {
	queue := func(of map[string][]*lane.Lane) {
		if len(s.Kinds) == 0 {
			for _, some := range of {
				visit(some)
			}
		}
		for _, kind := range s.Kinds {
			visit(of[kind])
		}
	}
	if len(s.Queues) == 0 {
		for _, of := range l.byQueue {
			queue(of)
		}
	}
	for _, name := range s.Queues {
		queue(l.byQueue[name])
	}
}

// queues returns the names of all queues.
func (l *laneCache) queues() (names []string) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for name := range l.byQueue {
		names = append(names, name)
	}
	return names
}

// add makes committed lanes known.
func (l *laneCache) add(committed ...lane.Lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range committed {
		if l.byID[c.ID] == nil {
			l.byKey[laneKey{c.Queue, c.Kind, c.Owner, c.Dependency}] = c.ID
			l.byID[c.ID] = &c
			if l.byQueue[c.Queue] == nil {
				l.byQueue[c.Queue] = map[string][]*lane.Lane{}
			}
			l.byQueue[c.Queue][c.Kind] = append(l.byQueue[c.Queue][c.Kind], &c)
		}
	}
}

// load reads the lanes that were committed since the last load. The session must see committed rows only.
func (l *laneCache) load(s *session) error {
	l.mu.RLock()
	last := l.lastID
	l.mu.RUnlock()
	younger, err := readLanes(s, last)
	if err != nil || len(younger) == 0 {
		return err
	}
	l.add(younger...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastID = max(l.lastID, younger[len(younger)-1].ID)
	return nil
}

// newer returns the lanes behind the last one that load has read, including those that only this session's transaction
// sees.
func (l *laneCache) newer(s *session) (all []lane.Lane, err error) {
	l.mu.RLock()
	last := l.lastID
	l.mu.RUnlock()
	return readLanes(s, last)
}

func readLanes(s *session, last int64) (all []lane.Lane, err error) {
	err = s.rows("lane_list", []any{last}, func(st *sqlite.Stmt) error {
		all = append(all, lane.Lane{ID: st.ColumnInt64(0), Queue: st.ColumnText(1), Kind: st.ColumnText(2), Owner: st.ColumnText(3), Dependency: st.ColumnText(4)})
		return nil
	})
	return all, err
}

// lane returns the id of a lane, and creates the lane if there is none.
func (t *tx) lane(w laneKey) (int64, error) {
	if id, ok := t.lanes.find(w); ok {
		return id, nil
	}
	if id, ok := t.newLanes[w]; ok {
		return id, nil
	}
	id, err := makeLane(t, w)
	if err == nil {
		if t.newLanes == nil {
			t.newLanes = map[laneKey]int64{}
		}
		t.newLanes[w] = id
	}
	return id, err
}

func makeLane(to executor, w laneKey) (id int64, err error) {
	if _, err = to.exec("lane_add", w.queue, w.kind, w.owner, w.dependency); err != nil {
		return 0, err
	}
	found, err := to.one("lane_find", []any{w.queue, w.kind, w.owner, w.dependency}, &id)
	if err == nil && !found {
		err = &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "a lane that was just created cannot be found: run `holdfast doctor`"}
	}
	return id, err
}
