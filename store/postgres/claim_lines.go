package postgres

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// Lines remember where something waits, so that five thousand owners do not cost a walk along all of them at every claim. What
// this store makes claimable is added at once. What others do is found when the memory has aged, or when a claim would come
// back short: then the walk is made again.
type lineMemory struct {
	mu            sync.Mutex
	at            map[place]int // when it was added, in steps; nil: nothing is known
	step          int
	staleAt       map[string]time.Time // by scope: from then on what is known of its lanes is not trusted
	callerPlaces  map[place]time.Time  // where a caller's own transaction puts something: until then it may commit
	lanes         map[int32]*lane.Lane
	ownDependency map[int32]string  // the dependency that a lane's jobs name themselves
	kinds         map[string]string // what the other lanes' kinds were declared to call
	kindsVersion  int               // how often that has changed

	unread map[int32][]place // where something waits in lanes that were not read yet
	views  map[string]*view  // what is open, by scope
}

// put notes that something waits at a place.
func (l *lineMemory) put(p place, step int) {
	if _, known := l.at[p]; !known {
		l.addToViews(p)
	}
	l.at[p] = step
}

// drop notes that nothing waits at a place.
func (l *lineMemory) drop(p place) {
	if _, known := l.at[p]; !known {
		return
	}
	delete(l.at, p)
	id := max(p.lane, -p.lane)
	known := l.lanes[id]
	if known == nil {
		if l.unread[id] = slices.DeleteFunc(l.unread[id], func(at place) bool { return at == p }); len(l.unread[id]) == 0 {
			delete(l.unread, id)
		}
		return
	}
	for _, v := range l.views {
		v.remove(p, known.Owner)
	}
}

// show adds a place to the views. A lane that nobody has heard of has to be read first.
func (l *lineMemory) addToViews(p place) {
	id := max(p.lane, -p.lane)
	known := l.lanes[id]
	if known == nil {
		if l.unread == nil {
			l.unread = map[int32][]place{}
		}
		l.unread[id] = append(l.unread[id], p)
		return
	}
	for _, v := range l.views {
		v.add(p, known)
	}
}

// add says that something waits at these places by now.
func (l *lineMemory) add(places ...place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		return
	}
	l.step++
	for _, p := range places {
		l.put(p, l.step)
	}
}

// arrived adds the places of entries that may start at once.
func (l *lineMemory) addEntries(entries []entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		return
	}
	l.step++
	for i := range entries {
		if e := &entries[i]; e.Delay == 0 && len(e.After) == 0 { // one whose time has not come is a false alarm at worst
			l.put(place{e.lane, e.Priority}, l.step)
		}
	}
}

// walkShare says that a walk along the lines may take a fortieth of the time.
const walkShare = 40

// guestAge is how long a caller's transaction is expected to take at most. What a slower one brings is found like what others do.
const callerTxAge = 2 * time.Second

// invited adds the places of entries that are there when a caller's transaction commits.
func (l *lineMemory) addCallerPlaces(entries []entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.callerPlaces == nil || len(l.callerPlaces) > maxMarks {
		l.callerPlaces = map[place]time.Time{}
	}
	for i := range entries {
		l.callerPlaces[place{entries[i].lane, entries[i].Priority}] = time.Now().Add(callerTxAge)
	}
}

// welcome adds the places where a guest may have put something by now.
func (l *lineMemory) admitCallerPlaces() {
	for p, until := range l.callerPlaces {
		if _, known := l.at[p]; time.Now().After(until) {
			delete(l.callerPlaces, p)
		} else if !known {
			l.put(p, l.step)
		}
	}
}

// recall reports whether the places that are known in a scope can be trusted.
func (l *lineMemory) cached(scope *lane.Scope) (step int, trusted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil || !time.Now().Before(l.staleAt[scope.Key()]) {
		return l.currentStep(), false
	}
	l.admitCallerPlaces()
	return l.step, true
}

// now is the present step. What is added from here on is not forgotten by a walk that began before.
func (l *lineMemory) currentStep() int {
	if l.at == nil {
		l.at, l.staleAt = map[place]int{}, nil
	}
	return l.step
}

// walked replaces what was known of a scope by what a walk found.
func (l *lineMemory) replaceScope(scope *lane.Scope, began time.Time, step int, found []place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	there := make(map[place]bool, len(found))
	for _, p := range found {
		there[p] = true
		l.put(p, max(l.at[p], step))
	}
	for p, added := range l.at {
		if added <= step && !there[p] && l.covers(scope, p) {
			l.drop(p)
		}
	}
	now := time.Now()
	if l.staleAt == nil || len(l.staleAt) > maxScopes {
		l.staleAt = map[string]time.Time{}
	}
	l.staleAt[scope.Key()] = now.Add(min(callerTxAge/2, max(markAge, walkShare*now.Sub(began)))) // no longer than guests are remembered, or theirs would be passed over
	l.admitCallerPlaces()
	for _, v := range l.views {
		v.sort()
	}
}

// covers reports whether a place is in a scope. One whose lane was not read yet is not.
func (l *lineMemory) covers(scope *lane.Scope, p place) bool {
	known := l.lanes[max(p.lane, -p.lane)]
	return known != nil && scope.Covers(known)
}

// strange are the lanes where something waits that were not read yet.
func (l *lineMemory) unreadLanes() []int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.unread))
}

// emptied forgets places where nothing was found, unless something has come since.
func (l *lineMemory) removeEmpty(step int, places []place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range places {
		if l.at[p] <= step {
			l.drop(p)
		}
	}
}

// mixed reports whether jobs of more than one priority wait in a scope. Those in lanes that were not read yet count.
func (l *lineMemory) mixedPriorities(scope *lane.Scope) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := true
	var priority int16
	for p := range l.at {
		if l.lanes[max(p.lane, -p.lane)] != nil && !l.covers(scope, p) {
			continue
		}
		if !first && p.priority != priority {
			return true
		}
		first, priority = false, p.priority
	}
	return false
}

// learn keeps a lane.
func (l *lineMemory) addLane(id int32, p path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lanes == nil {
		l.lanes, l.ownDependency = map[int32]*lane.Lane{}, map[int32]string{}
	}
	l.lanes[id] = &lane.Lane{ID: int64(id), Queue: p.queue, Kind: p.kind, Owner: p.owner, Dependency: dependencyOf(l.kinds, p.kind, p.dependency)}
	l.ownDependency[id] = p.dependency
	shown := l.unread[id]
	delete(l.unread, id)
	for _, at := range shown {
		l.addToViews(at)
	}
}

func dependencyOf(kinds map[string]string, kind, own string) string {
	if own != "" {
		return own
	}
	return kinds[kind]
}

// declare keeps what kinds call, and answers with how often that has changed. Lanes that somebody works with stay as they are;
// those that are asked for next are new.
func (l *lineMemory) setKinds(kinds map[string]string) (kindsVersion int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if maps.Equal(l.kinds, kinds) {
		return l.kindsVersion
	}
	l.kinds = kinds
	l.kindsVersion++
	l.views = nil
	for id, known := range l.lanes {
		if to := dependencyOf(kinds, known.Kind, l.ownDependency[id]); to != known.Dependency {
			changed := *known
			changed.Dependency = to
			l.lanes[id] = &changed
		}
	}
	return l.kindsVersion
}

// walk finds the places of a scope where something waits, and others that it meets on the way.
func (s *Store) scanLines(b *pgx.Batch, scope *lane.Scope, send func() error) error {
	s.lines.mu.Lock()
	step := s.lines.currentStep()
	s.lines.mu.Unlock()
	began := time.Now()
	var found []place
	heads := map[place]holdfast.ID{}
	scan := s.marks.beginHeadScan()
	b.Queue(s.sql["find_lines"], cleanText(textArray(scope.Queues)), cleanText(textArray(scope.Kinds))).Query(func(rows pgx.Rows) error {
		var p place
		var first [16]byte
		_, err := pgx.ForEachRow(rows, []any{&p.lane, &p.priority, &first}, func() error {
			found = append(found, p)
			heads[p] = previousID(first)
			return nil
		})
		return err
	})
	if err := send(); err != nil {
		s.marks.dropScan(scan)
		return err
	}
	s.marks.endHeadScan(scan, heads)
	s.lines.replaceScope(scope, began, step, found)
	return nil
}

// readLanes queues what tells this store about lanes it has not heard of.
func (s *Store) readLanes(b *pgx.Batch, unknown []int32) {
	var id int32
	var p path
	b.Queue(s.sql["lane_read"], unknown).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&id, &p.queue, &p.kind, &p.owner, &p.dependency}, func() error { s.lines.addLane(id, p); return nil })
		return err
	})
}
