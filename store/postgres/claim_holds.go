package postgres

import (
	"cmp"
	"slices"
	"sync"

	"github.com/holdfastdev/holdfast/store"
)

// A holdCache keeps the holds as this store last read them. A plan starts with them, verifies them under locks or by hash before it takes anything,
// and starts again if they have changed.
type holdCache struct {
	mu           sync.Mutex
	inForce      []store.Hold
	known        bool
	hash         string // of inForce and of the declared dependencies of kinds (hold_hash); "" if unknown
	kindsVersion int    // lineMemory.kindsVersion that belongs to hash
}

// cached returns the holds, and whether they were ever read.
func (h *holdCache) cached() ([]store.Hold, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.inForce, h.known
}

// set stores holds whose hash is unknown.
func (h *holdCache) set(seen []store.Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inForce, h.known, h.hash = seen, true, ""
}

// setAll stores holds and their hash, and stores the declared dependencies of kinds in the line memory, so that both belong to the same hash.
func (h *holdCache) setAll(seen []store.Hold, hash string, l *lineMemory, kinds map[string]string) (kindsVersion int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inForce, h.known, h.hash = seen, true, hash
	h.kindsVersion = l.setKinds(kinds)
	return h.kindsVersion
}

// withHash returns the holds with their hash, which is "" if unknown, and the version of the declared dependencies that it covers.
func (h *holdCache) withHash() (seen []store.Hold, hash string, kindsVersion int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.inForce, h.hash, h.kindsVersion
}

// sameRules reports whether two lists of holds let the same jobs through, ignoring the levels of rate limits.
func sameRules(some, others []store.Hold) bool {
	return slices.EqualFunc(some, others, func(a, b store.Hold) bool {
		x, y := withoutLevel(a.Rate), withoutLevel(b.Rate)
		a.Rate, b.Rate = nil, nil
		return a == b && x == y
	})
}

// withoutLevel returns the rate without its current level.
func withoutLevel(r *store.Rate) store.Rate {
	if r == nil {
		return store.Rate{}
	}
	return store.Rate{PerSecond: r.PerSecond, Burst: r.Burst}
}

// compareHolds orders holds by scope, name and source: the order in which all transactions lock them.
func compareHolds(a, b store.Hold) int {
	of, name := a.Scope()
	other, called := b.Scope()
	return cmp.Or(cmp.Compare(of, other), cmp.Compare(name, called), cmp.Compare(a.Source, b.Source))
}
