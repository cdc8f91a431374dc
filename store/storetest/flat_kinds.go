package storetest

import (
	"slices"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// kindsFactor is how much more two hundred kinds in one queue may cost a claim than one kind.
const kindsFactor = 1.1

// Kinds checks the cost of claims in a queue with two hundred kinds: a worker that handles one of them pays for that one, and a worker that handles
// all of them pays little more, whether jobs of one or of all are ready. It compares the claims after the first few, by which a store has learned the
// number of lanes.
func Kinds(t *testing.T, m *BlockMeter) {
	f := &flat{TB: t, BlockMeter: m, jobs: map[string][]holdfast.ID{}, held: map[string][]store.Lease{}}
	all, one := kindNames(200), []string{"kind-7"}
	m.Run(func(s store.Store) {
		f.store = s
		for _, kind := range all {
			f.put("crowded", 2, ofKind(kind))
			f.put("idle", 1, ofKind(kind))
		}
		for range 20 {
			for _, kind := range all {
				f.put("full", 1, ofKind(kind))
			}
		}
		f.held["idle"] = f.claim("idle", len(all), store.Claim{})
		f.settle("idle", completes)
		for _, queue := range []string{"alone", "crowded", "idle"} {
			f.put(queue, 4000, ofKind(one[0]))
		}
	})
	m.Analyze()
	base := f.perClaims("alone", store.Claim{Kinds: one})
	for _, c := range []struct {
		name, queue string
		claim       store.Claim
	}{
		{"no kinds named, one kind in the queue", "alone", store.Claim{}},
		{"one kind, jobs of two hundred wait", "crowded", store.Claim{Kinds: one}},
		{"one kind, two hundred known, jobs of it wait", "idle", store.Claim{Kinds: one}},
		{"two hundred kinds, jobs of one wait", "idle", store.Claim{Kinds: all}},
		{"no kinds named, two hundred known, jobs of one wait", "idle", store.Claim{}},
		{"two hundred kinds, jobs of all wait", "full", store.Claim{Kinds: all}},
		{"no kinds named, jobs of two hundred wait", "full", store.Claim{}},
	} {
		got := f.perClaims(c.queue, c.claim)
		t.Logf("%-55s %5d blocks a hundred jobs, %5d with one kind", c.name, got, base)
		if float64(got) > kindsFactor*float64(base) {
			t.Errorf("%s: a hundred jobs are claimed with %d blocks, and with %d in a queue with one kind; %g times as many are allowed", c.name, got, base, kindsFactor)
		}
	}
}

// perClaims returns how many blocks five more claims of twenty jobs touch. The cheapest of three rounds counts, because a round on a slow machine may
// include a scan of all lanes, which a store does from time to time.
func (f *flat) perClaims(queue string, c store.Claim) int {
	f.Helper()
	var rounds []int
	for range 3 {
		first := f.Run(func(s store.Store) { f.store = s; f.take(queue, 8, c) })
		more := f.Run(func(s store.Store) { f.store = s; f.take(queue, 13, c) })
		rounds = append(rounds, more-first)
	}
	return slices.Min(rounds)
}
