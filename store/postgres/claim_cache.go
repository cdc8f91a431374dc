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
type holds struct {
	mu   sync.Mutex
	seen []holdfast.Hold
	once bool
	sign string // of these holds and of what kinds were declared to call; none: nobody knows
	told int    // how often that had changed
}

func (h *holds) recall() ([]holdfast.Hold, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen, h.once
}

func (h *holds) keep(seen []holdfast.Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen, h.once, h.sign = seen, true, ""
}

// keepAll keeps the holds, and has the lines keep what kinds call, so that both are as the sign says.
func (h *holds) keepAll(seen []holdfast.Hold, sign string, l *lines, kinds map[string]string) (told int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen, h.once, h.sign = seen, true, sign
	h.told = l.declare(kinds)
	return h.told
}

// signed answers with the holds by their sign, if it is known.
func (h *holds) signed() (seen []holdfast.Hold, sign string, told int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen, h.sign, h.told
}

// alike reports whether holds let the same through, whatever their buckets hold.
func alike(some, others []holdfast.Hold) bool {
	return slices.EqualFunc(some, others, func(a, b holdfast.Hold) bool {
		x, y := limitOf(a.Rate), limitOf(b.Rate)
		a.Rate, b.Rate = nil, nil
		return a == b && x == y
	})
}

// limitOf is a rate whatever its level.
func limitOf(r *holdfast.Rate) holdfast.Rate {
	if r == nil {
		return holdfast.Rate{}
	}
	return holdfast.Rate{PerSecond: r.PerSecond, Burst: r.Burst}
}

// Weights are what owners count for, remembered for a moment.
type weights struct {
	mu   sync.Mutex
	of   map[string]float64
	aged time.Time
}

// weightAge is how long a new weight may go unnoticed.
const weightAge = time.Second

func (w *weights) recall() (of map[string]float64, trusted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of, time.Now().Before(w.aged)
}

func (w *weights) keep(of map[string]float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of, w.aged = of, time.Now().Add(weightAge)
}

// forget makes the next claim ask.
func (w *weights) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.aged = time.Time{}
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
type detours struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// maxScopes is of how many scopes a store remembers when it looked at them.
const maxScopes = 1000

// detour is how long that is believed without another look.
const detour = time.Second

func (d *detours) take(scope *lane.Scope) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.until[scope.Key()])
}

func (d *detours) remember(scope *lane.Scope) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.until == nil || len(d.until) > maxScopes {
		d.until = map[string]time.Time{}
	}
	d.until[scope.Key()] = time.Now().Add(detour)
}
