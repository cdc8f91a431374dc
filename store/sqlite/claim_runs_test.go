package sqlite

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// claimAll claims everything in a queue. It ends before the sixteenth claim, which shares between priorities.
func (s *Store) claimAll(t *testing.T, limit int, between func(claims int)) (all []store.Lease) {
	t.Helper()
	for claims := 1; claims < 16; claims++ {
		some := s.mustClaim(t, limit, "default")
		if all = append(all, some...); len(some) == 0 {
			return all
		}
		between(claims)
	}
	t.Fatalf("fifteen claims of %d are not enough", limit)
	return nil
}

func sortsBefore(a, b *store.Lease) bool {
	return a.Priority < b.Priority || a.Priority == b.Priority && bytes.Compare(a.ID[:], b.ID[:]) < 0
}

// checkOrder checks that jobs were claimed by priority, each kind by age, none twice, and none after more than a run of
// younger jobs of one other kind.
func checkOrder(t *testing.T, all []store.Lease) {
	t.Helper()
	met, last := map[holdfast.ID]bool{}, map[string]*store.Lease{}
	for i := range all {
		l := &all[i]
		if met[l.ID] {
			t.Errorf("job %v was claimed twice", l.ID)
		}
		met[l.ID] = true
		if i > 0 && l.Priority < all[i-1].Priority {
			t.Errorf("claim number %d has priority %d, after one of %d", i, l.Priority, all[i-1].Priority)
		}
		if of := last[l.Kind]; of != nil && sortsBefore(l, of) {
			t.Errorf("%s: %v was claimed after %v", l.Kind, l.ID, of.ID)
		}
		last[l.Kind] = l
		overtaken := map[string]int{}
		for j := range all[:i] {
			if sortsBefore(l, &all[j]) {
				overtaken[all[j].Kind]++
			}
		}
		for kind, jobs := range overtaken {
			if jobs > lane.RunLength {
				t.Fatalf("%s: %d younger jobs of %s were claimed before %v", l.Kind, jobs, kind, l.ID)
			}
		}
	}
}

func TestJobsOfManyKindsAreClaimedByPriorityAndInShortRuns(t *testing.T) {
	for _, limit := range []int{170, 250, 1000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			db, _, _ := openCounted(t)
			random := rand.New(rand.NewPCG(1, uint64(limit)))
			db.mustEnqueue(t, 1900, func(int) holdfast.Draft {
				// Some kinds have many jobs and some have few.
				return holdfast.Draft{Kind: fmt.Sprint("kind", min(random.IntN(40), random.IntN(40))), Priority: int16(random.IntN(3)*7 - 5)}
			})
			for i := range 40 { // each has one job at least, and these come last
				db.mustEnqueue(t, 1, func(int) holdfast.Draft { return holdfast.Draft{Kind: fmt.Sprint("kind", i), Priority: 20} })
			}
			all := db.claimAll(t, limit, func(int) {})
			if len(all) != 1940 {
				t.Errorf("%d of 1940 jobs were claimed", len(all))
			}
			checkOrder(t, all)
		})
	}
}

func TestAClaimOfManyKindsIsFullWhenEnoughWaits(t *testing.T) {
	db, _, _ := openCounted(t)
	db.mustEnqueue(t, 3000, func(i int) holdfast.Draft {
		return holdfast.Draft{Kind: fmt.Sprint("kind", i%(lane.FewLines+4)), Priority: int16(i % 2)}
	})
	for i := range 6 {
		if got := db.mustClaim(t, 500, "default"); len(got) != 500 {
			t.Errorf("claim %d of 500 brought %d jobs", i, len(got))
		}
	}
}

func TestAnUrgentJobIsClaimedBeforeTheRunsOfManyKinds(t *testing.T) {
	db, _, _ := openCounted(t)
	db.mustEnqueue(t, 2000, func(i int) holdfast.Draft { return holdfast.Draft{Kind: fmt.Sprint("kind", i%40)} })
	for _, kind := range []string{"kind7", "kind39", "a-kind-of-which-no-job-waits"} {
		db.mustClaim(t, 20, "default")
		db.mustEnqueue(t, 1, func(int) holdfast.Draft { return holdfast.Draft{Kind: kind, Priority: -3} })
		if got := db.mustClaim(t, 20, "default"); len(got) != 20 || got[0].Kind != kind || got[0].Priority != -3 {
			t.Errorf("%s: not the first of %d jobs", kind, len(got))
		}
	}
}
