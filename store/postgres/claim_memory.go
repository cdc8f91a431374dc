package postgres

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A lineMemory remembers which places (line and priority) have ready jobs, so that a claim among thousands of owners need not search all lines.
//
// The memory may be wrong in both directions without harm. A remembered place that is empty costs one search, and the claim then removes it. A place
// that another process filled is missing until the memory becomes stale or a claim comes back short; then the store scans the lines again. Places
// that this process makes claimable are added at once. Every change has a step number: what was added after a scan or a claim began is not removed by
// its result.
type lineMemory struct {
	mu            sync.Mutex
	at            map[place]int // places with ready jobs, and the step in which each was added; nil: nothing is known
	step          int
	staleAt       map[string]time.Time // by scope: from then on the lines of its lanes must be scanned again
	callerPlaces  map[place]time.Time  // places of jobs in open transactions of callers, and until when they are expected to commit
	lanes         map[int32]*lane.Lane
	ownDependency map[int32]string  // the dependency in the lane itself
	kinds         map[string]string // declared dependencies of kinds, for lanes without one
	kindsVersion  int               // grows with every change of kinds

	unread map[int32][]place     // places in lanes whose row was not read yet
	open   map[string]*openLines // by the key of the scope
}

// put adds a place. The caller holds l.mu, here and in the other methods that do not lock it.
func (l *lineMemory) put(p place, step int) {
	if _, known := l.at[p]; !known {
		l.addToOpen(p)
	}
	l.at[p] = step
}

// drop removes a place.
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
	for _, v := range l.open {
		v.remove(p, known.Owner)
	}
}

// addToOpen adds a place to the open lines it belongs to. A place in an unknown lane waits in unread until its lane is read.
func (l *lineMemory) addToOpen(p place) {
	id := max(p.lane, -p.lane)
	known := l.lanes[id]
	if known == nil {
		if l.unread == nil {
			l.unread = map[int32][]place{}
		}
		l.unread[id] = append(l.unread[id], p)
		return
	}
	for _, v := range l.open {
		v.add(p, known)
	}
}

// add adds places in which jobs have just become claimable.
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

// addEntries adds the places of entries that are claimable at once.
func (l *lineMemory) addEntries(entries []entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil {
		return
	}
	l.step++
	for i := range entries {
		if e := &entries[i]; e.Delay == 0 && len(e.edges) == 0 { // an entry with a future RunAt adds an empty place, which does no harm
			l.put(place{e.lane, e.Priority}, l.step)
		}
	}
}

// scanShare bounds the cost of scans: a scan may take at most one fortieth of the time.
const scanShare = 40

// callerTxAge is how long a caller's transaction is expected to take at most. Jobs of a slower one are found like those of other processes.
const callerTxAge = 2 * time.Second

// addCallerPlaces remembers the places of entries that become claimable when a caller's transaction commits. The store does not notice that commit.
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

// admitCallerPlaces adds the places in which a caller's transaction may have committed jobs by now.
func (l *lineMemory) admitCallerPlaces() {
	for p, until := range l.callerPlaces {
		if _, known := l.at[p]; time.Now().After(until) {
			delete(l.callerPlaces, p)
		} else if !known {
			l.put(p, l.step)
		}
	}
}

// cached returns the current step, and whether the places in the scope are recent enough to use.
func (l *lineMemory) cached(scope *lane.Scope) (step int, trusted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at == nil || !time.Now().Before(l.staleAt[scope.Key()]) {
		return l.currentStep(), false
	}
	l.admitCallerPlaces()
	return l.step, true
}

// beginScan returns the step at which a scan of the lines begins.
func (l *lineMemory) beginScan() (step int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.currentStep()
}

// currentStep returns the current step. Places that are added later survive a scan that began at this step.
func (l *lineMemory) currentStep() int {
	if l.at == nil {
		l.at, l.staleAt = map[place]int{}, nil
	}
	return l.step
}

// replaceScope replaces the places of a scope by those that a scan found, and sets until when they are trusted.
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
	l.staleAt[scope.Key()] = now.Add(min(callerTxAge/2, max(markAge, scanShare*now.Sub(began)))) // shorter than callerTxAge, or places of callers' transactions would expire unseen
	l.admitCallerPlaces()
	for _, v := range l.open {
		v.sort()
	}
}

// covers reports whether a place is in a scope. A place in an unknown lane is not.
func (l *lineMemory) covers(scope *lane.Scope, p place) bool {
	known := l.lanes[max(p.lane, -p.lane)]
	return known != nil && scope.Covers(known)
}

// unreadLanes returns the lanes that have ready jobs and whose row was not read yet.
func (l *lineMemory) unreadLanes() []int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.unread))
}

// removeEmpty removes places that a claim found empty, except those added after the claim's step.
func (l *lineMemory) removeEmpty(step int, places []place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range places {
		if l.at[p] <= step {
			l.drop(p)
		}
	}
}

// mixedPriorities reports whether jobs of more than one priority are ready in a scope. Unknown lanes count as in the scope.
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

// addLane stores a lane and adds its waiting places to the open lines.
func (l *lineMemory) addLane(id int32, p path) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lanes == nil {
		l.lanes, l.ownDependency = map[int32]*lane.Lane{}, map[int32]string{}
	}
	l.lanes[id] = &lane.Lane{ID: int64(id), Queue: p.queue, Kind: p.kind, Owner: p.owner, Dependency: lane.Dependency(p.dependency, p.kind, l.kinds)}
	l.ownDependency[id] = p.dependency
	shown := l.unread[id]
	delete(l.unread, id)
	for _, at := range shown {
		l.addToOpen(at)
	}
}

// setKinds stores the declared dependencies of kinds and returns their version. A lane whose dependency changes is replaced by a copy: claims under
// way keep the lane they have.
func (l *lineMemory) setKinds(kinds map[string]string) (kindsVersion int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if maps.Equal(l.kinds, kinds) {
		return l.kindsVersion
	}
	l.kinds = kinds
	l.kindsVersion++
	l.open = nil
	for id, known := range l.lanes {
		if to := lane.Dependency(l.ownDependency[id], known.Kind, kinds); to != known.Dependency {
			changed := *known
			changed.Dependency = to
			l.lanes[id] = &changed
		}
	}
	return l.kindsVersion
}

// inScope returns the lines of a scope that have ready jobs. Lines of unknown lanes are included.
func (l *lineMemory) inScope(scope *lane.Scope) []int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[int32]bool{}
	for p := range l.at {
		if l.lanes[max(p.lane, -p.lane)] == nil || l.covers(scope, p) {
			found[p.lane] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// maxOpen bounds the number of scopes whose open lines are kept.
const maxOpen = 8

// openLines returns the open lines of a scope under the given holds, and the version of the declared dependencies that they depend on.
func (l *lineMemory) openLines(scope *lane.Scope, holds []store.Hold) (*openLines, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := scope.Key()
	if known := l.open[name]; known != nil && sameRules(known.holds, holds) {
		return known, l.kindsVersion
	}
	v := &openLines{scope: scope, holds: holds, valves: lane.NewValves(holds, time.Time{}), byOwner: map[string]*ownerPlaces{}}
	for p := range l.at {
		if known := l.lanes[max(p.lane, -p.lane)]; known != nil {
			v.add(p, known)
		}
	}
	v.sort()
	if l.open == nil || len(l.open) >= maxOpen {
		l.open = map[string]*openLines{}
	}
	l.open[name] = v
	return v, l.kindsVersion
}

// ownerCount returns the number of owners of open lines.
func (l *lineMemory) ownerCount(v *openLines) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(v.byOwner)
}

// anyLine reports whether an open line satisfies a condition.
func (l *lineMemory) anyLine(v *openLines, such func(l *lane.Lane, retries bool) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range v.byOwner {
		if slices.ContainsFunc(g.places, func(at lanePlace) bool { return such(at.lane, at.place.lane < 0) }) {
			return true
		}
	}
	return false
}

// selective reports whether holds let only some jobs of open lines through, so that their order alone does not decide.
func (l *lineMemory) selective(v *openLines) bool {
	return v.valves.Selective(func(such func(*lane.Lane, bool) bool) bool { return l.anyLine(v, such) })
}

// singleOwnerPlaces returns the open places if they all belong to one owner.
func (l *lineMemory) singleOwnerPlaces(v *openLines) (places []place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(v.byOwner) != 1 {
		return nil
	}
	for _, g := range v.byOwner {
		for _, at := range g.places {
			places = append(places, at.place)
		}
	}
	return places
}
