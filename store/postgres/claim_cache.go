package postgres

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
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

// A weightCache keeps the weights of owners for a second.
type weightCache struct {
	mu      sync.Mutex
	of      map[string]float64
	staleAt time.Time
}

// weightAge is the maximum time until a changed weight is noticed.
const weightAge = time.Second

// cached returns the weights, and whether they are recent enough to use.
func (w *weightCache) cached() (of map[string]float64, trusted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of, time.Now().Before(w.staleAt)
}

func (w *weightCache) set(of map[string]float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of, w.staleAt = of, time.Now().Add(weightAge)
}

// forget makes the next claim read the weights.
func (w *weightCache) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.staleAt = time.Time{}
}

// readWeights queues the query for the weights. A record that cannot be parsed counts as no weight.
func (s *Store) readWeights(b *pgx.Batch, into map[string]float64) {
	var owner, body string
	b.Queue(s.sql["read_weights"]).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&owner, &body}, func() error {
			var share struct{ Weight float64 }
			if json.Unmarshal([]byte(body), &share) == nil && share.Weight > 0 {
				into[owner] = share.Weight
			}
			return nil
		})
		return err
	})
}

// A scopeSet remembers scopes for scopeAge: those whose claims need a plan, or those with many lanes.
type scopeSet struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// maxScopes bounds the number of scopes that a store remembers.
const maxScopes = 1000

// scopeAge is how long a scope stays in a scopeSet without being added again.
const scopeAge = time.Second

func (d *scopeSet) has(scope *lane.Scope) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.until[scope.Key()])
}

func (d *scopeSet) add(scope *lane.Scope) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.until == nil || len(d.until) > maxScopes {
		d.until = map[string]time.Time{}
	}
	d.until[scope.Key()] = time.Now().Add(scopeAge)
}
