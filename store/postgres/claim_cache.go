package postgres

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// Holds are those in force when this store last looked. A plan begins with them, and is void if they turn out to be others.
type holdCache struct {
	mu           sync.Mutex
	inForce      []holdfast.Hold
	known        bool
	hash         string // of these holds and of what kinds were declared to call; none: nobody knows
	kindsVersion int    // how often that had changed
}

func (h *holdCache) cached() ([]holdfast.Hold, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.inForce, h.known
}

func (h *holdCache) set(seen []holdfast.Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inForce, h.known, h.hash = seen, true, ""
}

// keepAll keeps the holds, and has the lines keep what kinds call, so that both are as the sign says.
func (h *holdCache) setAll(seen []holdfast.Hold, hash string, l *lineMemory, kinds map[string]string) (kindsVersion int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inForce, h.known, h.hash = seen, true, hash
	h.kindsVersion = l.setKinds(kinds)
	return h.kindsVersion
}

// signed answers with the holds by their sign, if it is known.
func (h *holdCache) withHash() (seen []holdfast.Hold, hash string, kindsVersion int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.inForce, h.hash, h.kindsVersion
}

// alike reports whether holds let the same through, whatever their buckets hold.
func sameRules(some, others []holdfast.Hold) bool {
	return slices.EqualFunc(some, others, func(a, b holdfast.Hold) bool {
		x, y := withoutLevel(a.Rate), withoutLevel(b.Rate)
		a.Rate, b.Rate = nil, nil
		return a == b && x == y
	})
}

// limitOf is a rate whatever its level.
func withoutLevel(r *holdfast.Rate) holdfast.Rate {
	if r == nil {
		return holdfast.Rate{}
	}
	return holdfast.Rate{PerSecond: r.PerSecond, Burst: r.Burst}
}

// Weights are what owners count for, remembered for a moment.
type weightCache struct {
	mu      sync.Mutex
	of      map[string]float64
	staleAt time.Time
}

// weightAge is how long a new weight may go unnoticed.
const weightAge = time.Second

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

// forget makes the next claim ask.
func (w *weightCache) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.staleAt = time.Time{}
}

// readWeights queues the question for the weights. One that cannot be read counts as none.
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

// Detours remember for which scopes one statement is not enough to claim.
type scopeSet struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// maxScopes is of how many scopes a store remembers when it looked at them.
const maxScopes = 1000

// detour is how long that is believed without another look.
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
