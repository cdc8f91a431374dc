package store

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast/internal/check"
)

// A WorkerInfo describes a worker process, as it last reported itself.
type WorkerInfo struct {
	Worker string   `json:"worker"`
	Queues []string `json:"queues"`
	Kinds  []string `json:"kinds"`
	// Depends gives the dependency of each kind. The store keeps it: holds on a dependency apply to jobs of these kinds
	// that name no dependency themselves.
	Depends   map[string]string `json:"depends,omitempty"`
	Version   string            `json:"version,omitempty"` // of the application
	Slots     int               `json:"slots"`
	Codes     string            `json:"codes,omitempty"`  // name of the record in namespace "code" that holds the worker's own failure codes; empty: it has none
	Policy    int               `json:"policy,omitempty"` // version of the applied policy that it uses; 0: none
	Misses    string            `json:"misses,omitempty"` // parts of the applied policy that it does not apply, and why; empty: it applies all of it
	StartedAt time.Time         `json:"started_at"`       // set by the store at the first report
	SeenAt    time.Time         `json:"seen_at"`          // set by the store
	Until     time.Time         `json:"until"`            // set by the store: considered gone after this time
	For       time.Duration     `json:"-"`                // how long the report is valid; 0: the worker is stopping
}

// Check validates the report. The error wraps ErrInvalid and names every problem. Stores call it first.
func (r *WorkerInfo) Check() error {
	var p check.Problems
	if r.Worker == "" {
		p.Add("a worker report without a worker: give the worker's name")
	}
	p.Text("worker", r.Worker)
	if r.For < 0 || r.For > check.MaxDelay {
		p.Add("a worker report valid for %v: give a duration between 0 and 100 years", r.For)
	}
	if r.Slots < 0 || r.Slots > math.MaxInt32 {
		p.Add("%d slots: give a number between 0 and %d", r.Slots, math.MaxInt32)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Depends)) {
		p.Name("kind", kind)
		p.Name("dependency", r.Depends[kind])
	}
	return p.Err(invalid)
}
