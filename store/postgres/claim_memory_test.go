package postgres

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// These tests need no database: the memory of the planner is pure.

func mustScope(t *testing.T, queues ...string) *lane.Scope {
	t.Helper()
	scope, err := lane.NewScope(store.Claim{Queues: queues})
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// filledMemory returns a memory of one place in each of these lanes, whose ids are 1, 2 and so on.
func filledMemory(t *testing.T, lanes ...path) *lineMemory {
	t.Helper()
	m := &lineMemory{}
	var found []place
	for i, p := range lanes {
		m.addLane(int32(i+1), p)
		found = append(found, place{int32(i + 1), 0})
	}
	m.replaceScope(mustScope(t, "default"), time.Now(), m.beginScan(), found)
	return m
}

func (l *lineMemory) has(p place) bool {
	_, there := l.at[p]
	return there
}

func TestAPlaceThatIsFilledDuringAScanSurvivesItsResult(t *testing.T) {
	m := filledMemory(t, path{queue: "default", kind: "mail"}, path{queue: "default", kind: "bill"})
	step := m.beginScan()
	m.add(place{1, 0})
	m.replaceScope(mustScope(t, "default"), time.Now(), step, nil)
	if !m.has(place{1, 0}) {
		t.Error("jobs that became claimable after the scan began are forgotten")
	}
	if m.has(place{2, 0}) {
		t.Error("a place is remembered that the scan found empty")
	}
}

func TestAClaimRemovesOnlyPlacesThatItFoundEmpty(t *testing.T) {
	m := filledMemory(t, path{queue: "default", kind: "mail"}, path{queue: "default", kind: "bill"}, path{queue: "default", kind: "scan"})
	step, _ := m.cached(mustScope(t, "default"))
	m.add(place{2, 0})
	m.removeEmpty(step, []place{{1, 0}, {2, 0}})
	if got := m.inScope(mustScope(t, "default")); !slices.Equal(got, []int32{2, 3}) {
		t.Errorf("the lines %v are left: 1 was empty, and 2 got a job after the claim began", got)
	}
}

func TestAScanOfOneScopeLeavesOtherScopesAlone(t *testing.T) {
	m := filledMemory(t, path{queue: "default", kind: "mail"}, path{queue: "other", kind: "mail"})
	m.replaceScope(mustScope(t, "default"), time.Now(), m.beginScan(), nil)
	if m.has(place{1, 0}) || !m.has(place{2, 0}) {
		t.Errorf("the places %v are left", m.at)
	}
	if _, trusted := m.cached(mustScope(t, "other")); trusted {
		t.Error("lines are trusted that were never scanned for")
	}
}

func TestOpenLinesFollowTheMemory(t *testing.T) {
	m := filledMemory(t, path{queue: "default", kind: "mail", owner: "acme"}, path{queue: "default", kind: "mail", owner: "zeta"}, path{queue: "default", kind: "bill", owner: "wolf"})
	open, _ := m.openLines(mustScope(t, "default"), []store.Hold{{Kind: "bill"}})
	if names := slices.Sorted(slices.Values(open.owners())); !slices.Equal(names, []string{"acme", "zeta"}) {
		t.Errorf("owners with open lines: %v", names)
	}
	m.removeEmpty(m.beginScan(), []place{{1, 0}})
	if names := open.owners(); !slices.Equal(names, []string{"zeta"}) {
		t.Errorf("owners with open lines after one has no jobs left: %v", names)
	}
	m.add(place{-1, 0}, place{4, 0}) // a retry, and a lane that is not read yet
	if names := slices.Sorted(slices.Values(open.owners())); !slices.Equal(names, []string{"acme", "zeta"}) {
		t.Errorf("owners with open lines after one has a retry: %v", names)
	}
	if unread := m.unreadLanes(); !slices.Equal(unread, []int32{4}) {
		t.Errorf("lanes to read: %v", unread)
	}
	m.addLane(4, path{queue: "default", kind: "mail", owner: "late"})
	if m.ownerCount(open) != 3 || len(m.unreadLanes()) != 0 {
		t.Errorf("owners with open lines after the lane was read: %v", open.owners())
	}
}

func TestADeclaredDependencyClosesTheLinesOfItsKind(t *testing.T) {
	m := filledMemory(t, path{queue: "default", kind: "mail", owner: "acme"}, path{queue: "default", kind: "mail", owner: "zeta", dependency: "relay"})
	holds := []store.Hold{{Dependency: "smtp"}}
	before, version := m.openLines(mustScope(t, "default"), holds)
	if m.ownerCount(before) != 2 {
		t.Errorf("open before the kind has a dependency: %v", before.owners())
	}
	if next := m.setKinds(map[string]string{"mail": "smtp"}); next == version {
		t.Error("a plan cannot notice that a kind has declared a dependency")
	}
	after, _ := m.openLines(mustScope(t, "default"), holds)
	if names := after.owners(); !slices.Equal(names, []string{"zeta"}) {
		t.Errorf("open after the kind has a dependency that is held: %v", names)
	}
}

func TestPrioritiesAreMixedOnlyWithinAScope(t *testing.T) {
	m := filledMemory(t, path{queue: "default", kind: "mail"}, path{queue: "other", kind: "mail"})
	m.add(place{2, 5})
	if m.mixedPriorities(mustScope(t, "default")) || !m.mixedPriorities(mustScope(t, "other")) {
		t.Error("priorities are mixed in the queue other, not in the queue default")
	}
}

func TestHeadsOfLaterRoundsWereNotReadBefore(t *testing.T) {
	mail, bill := &lane.Lane{ID: 1, Owner: "acme"}, &lane.Lane{ID: 2, Owner: "acme"}
	of := &ownerPlaces{owner: "acme", places: []lanePlace{{place{1, 0}, mail}, {place{1, 5}, mail}, {place{2, 0}, bill}}}
	for _, even := range []bool{false, true} {
		t.Run(fmt.Sprint("even ", even), func(t *testing.T) {
			h := planHeads{even: even, peeked: map[place]bool{}}
			h.begin(10, 1, 1)
			h.addOwner(of)
			want := [][]place{{{1, 0}, {1, 5}}, {{2, 0}}} // one head for each line
			if even {
				want = [][]place{{{1, 0}}, {{1, 5}}, {{2, 0}}} // one head for each priority
			}
			if !slices.EqualFunc(h.places, want, slices.Equal[[]place]) || len(h.list) != len(want) || !h.all || h.depth != 11 {
				t.Errorf("heads of %v, to a depth of %d", h.places, h.depth)
			}
			if h.begin(10, 1, 1); !h.allPeeked(of) {
				t.Error("places that were read are not left out")
			}
			if h.addOwner(of); len(h.list) != 0 {
				t.Errorf("%v is read twice", h.places)
			}
		})
	}
}

func TestEachRoundOfHeadsConsidersFourTimesAsManyOwners(t *testing.T) {
	h := planHeads{}
	for round, want := range []int{10, 40, 160} {
		if got := h.wanted(10); got != want {
			t.Errorf("round %d: %d jobs", round, got)
		}
		h.begin(10, 1, 9)
	}
	if h = (planHeads{factor: 1.5}); h.wanted(10) != 15 {
		t.Errorf("a reach of 1.5 times as many owners: %d jobs instead of 10", h.wanted(10))
	}
}

func TestTheReachGrowsWhileClaimsTakeNothingAndThenPauses(t *testing.T) {
	r := &ownerReach{}
	factor, try := r.next()
	if factor != 1 || !try {
		t.Fatalf("the first claim: %v, %v", factor, try)
	}
	for range 3 {
		r.learn(false)
	}
	if _, try := r.next(); try || r.factor <= 1 {
		t.Errorf("after three claims that took nothing: factor %v, another try %v", r.factor, try)
	}
	factor, try = r.next()
	if !try {
		t.Fatal("it does not try again after a pause")
	}
	if r.learn(true); r.factor >= factor || r.failed != 0 {
		t.Errorf("after a claim that took jobs the factor is %v, not below %v", r.factor, factor)
	}
}

func TestPlacesThatGaveLessThanTheirRunAreEmpty(t *testing.T) {
	starts := []runStart{{place: place{1, 0}}, {place: place{2, 0}}, {place: place{3, 0}}}
	taken := &claimResult{rows: 20, perPlace: map[place]int{{1, 0}: 4, {2, 0}: 16}}
	if got := exhausted(starts, taken, 16, 20); !slices.Equal(got, []place{{1, 0}}) {
		t.Errorf("a full claim that did not come to the last place: %v are empty", got)
	}
	taken = &claimResult{rows: 18, perPlace: map[place]int{{1, 0}: 2, {2, 0}: 16}}
	if got := exhausted(starts, taken, 16, 20); !slices.Equal(got, []place{{1, 0}, {3, 0}}) {
		t.Errorf("a claim that came back short: %v are empty", got)
	}
}

func TestAClaimUnderWaySetsNoMarkBehindAJobThatBecomesClaimable(t *testing.T) {
	at := place{1, 0}
	var m marks
	scan := m.beginScan(false)
	m.lower(holdfast.ID{5}, holdfast.ID{7})
	m.endScan(scan, map[place]holdfast.ID{at: {9}}, true)
	if m.at[at] != previousID(holdfast.ID{5}) {
		t.Errorf("the mark is %v: it hides a job that became claimable during the claim", m.at[at])
	}
	next := m.beginScan(false)
	if !next.marked || m.beginScan(true).marked {
		t.Error("a claim starts at the marks unless it must read everything")
	}
	m.clear() // jobs with unknown ids
	m.endScan(next, map[place]holdfast.ID{at: {9}}, true)
	if len(m.at) != 0 {
		t.Errorf("the mark is %v, and may hide a job whose id is not known", m.at)
	}
}

func TestAClaimThatComesShortLeavesNoMarks(t *testing.T) {
	at := place{1, 0}
	var m marks
	m.endScan(m.beginScan(false), map[place]holdfast.ID{at: {9}}, true)
	if m.at[at] != (holdfast.ID{9}) {
		t.Errorf("the mark of a full claim is %v", m.at[at])
	}
	if m.endScan(m.beginScan(false), map[place]holdfast.ID{at: {10}}, false); len(m.at) != 0 {
		t.Errorf("marks %v", m.at)
	}
}

func TestHeadsAreLowerBounds(t *testing.T) {
	a, b, unknown := place{1, 0}, place{2, 0}, place{3, 0}
	var m marks
	scan := m.beginHeadScan()
	m.lower(holdfast.ID{3})
	m.endHeadScan(scan, map[place]holdfast.ID{a: {8}, b: {2}})
	starts := m.sortStarts([]place{a, b, unknown, {4, -1}})
	var order []int32
	for _, s := range starts {
		order = append(order, s.place.lane)
	}
	if !slices.Equal(order, []int32{4, 3, 2, 1}) {
		t.Errorf("the order is %v: by priority, unknown heads first, then by id", order)
	}
	if m.heads[a] != previousID(holdfast.ID{3}) || m.heads[b] != (holdfast.ID{2}) {
		t.Errorf("heads %v: job 3 may be in any of the lines", m.heads)
	}
}
