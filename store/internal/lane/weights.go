package lane

import (
	"encoding/json"
	"sync"
	"time"
)

// NamespaceWeights is the namespace of the records that hold the weights of owners. A record's name is the owner.
const NamespaceWeights = "share"

// weightAge is how long weights are used after they were read, so it is how late a store notices a weight that another
// process has changed.
const weightAge = time.Second

// Weights are the weights of owners as a store has read them last. It is safe for concurrent use.
type Weights struct {
	mu      sync.Mutex
	of      map[string]float64
	until   time.Time
	version int // grows with every Expire
}

// Cached returns the weights, and whether they are recent enough to use. If they are not, the store reads them and
// passes them to Set together with the version. The caller must not change the map.
func (w *Weights) Cached(now time.Time) (of map[string]float64, version int, fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of, w.version, now.Before(w.until)
}

// Set stores weights that were read after Cached returned the version. Weights that expired while they were read are not
// stored: the read may have come before the change.
func (w *Weights) Set(of map[string]float64, version int, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if version == w.version {
		w.of, w.until = of, now.Add(weightAge)
	}
}

// Expire makes the next claim that needs the weights read them again. A store calls it after it has changed a weight.
func (w *Weights) Expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = time.Time{}
	w.version++
}

// AddWeight adds an owner's weight from the body of its record. A body that cannot be read, and a weight that is not
// positive, count as no weight.
func AddWeight(to map[string]float64, owner, body string) {
	var share struct {
		Weight float64 `json:"weight"`
	}
	if json.Unmarshal([]byte(body), &share) == nil && share.Weight > 0 {
		to[owner] = share.Weight
	}
}

// WeightOf returns an owner's weight, 1 if it has none.
func WeightOf(weights map[string]float64, owner string) float64 {
	if w := weights[owner]; w > 0 {
		return w
	}
	return 1
}
