package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// longestRun is how many jobs of one kind a claim may take in a row if many kinds are ready.
const longestRun = 16

var runLaws = []law{
	{"with many kinds ready, each is claimed in its own order, and a job is overtaken by at most a run of each other kind", func(s *scene) {
		const kinds, each = 40, 30
		s.enqueueAll(ofKinds(kinds, each, 0)...)
		order := s.drainInClaimsOf(25, kinds*each)
		for i, l := range order {
			younger := map[string]int{}
			for _, before := range order[:i] {
				if slices.Compare(before.ID[:], l.ID[:]) > 0 {
					younger[before.Kind]++
				}
			}
			if younger[l.Kind] > 0 {
				s.Fatalf("a younger job of %s was claimed before %s", l.Kind, l.ID)
			}
			for kind, n := range younger {
				if n > longestRun {
					s.Fatalf("job %s was overtaken by %d jobs of %s", l.ID, n, kind)
				}
			}
		}
	}},
	{"with many kinds ready, urgent jobs come first, except in the one claim of sixteen that shares evenly", func(s *scene) {
		const kinds, each, limit = 40, 10, 25
		s.enqueueAll(ofKinds(kinds, each, 5)...)
		s.enqueueAll(ofKinds(kinds, each, -5)...)
		s.claimUrgent(limit, kinds*each)
	}},
	{"with many kinds ready, an urgent job and a released one are claimed within seconds", func(s *scene) {
		const kinds, each = 40, 30
		s.enqueueAll(ofKinds(kinds, each, 0)...)
		first := s.claim(25)
		s.claim(25)
		back := first[3]
		s.settle(store.Settlement{Batch: back.Batch, Job: back.ID, Token: back.Token, To: holdfast.Queued, Charge: store.ChargeRelease})
		urgent := s.enqueue(func(d *holdfast.Draft) { d.Kind, d.Priority = "kind7", -5 })
		wanted := map[holdfast.ID]bool{back.ID: true, urgent: true}
		began := time.Now()
		for n := 0; len(wanted) > 0; n++ {
			leases := s.claim(1)
			if len(leases) == 0 {
				s.Fatalf("%d jobs were never claimed", len(wanted))
			}
			if n > 600 && time.Since(began) > 30*time.Second {
				s.Fatalf("after %d claims %d jobs still wait", n, len(wanted))
			}
			delete(wanted, leases[0].ID)
			s.settle(store.Settlement{Batch: leases[0].Batch, Job: leases[0].ID, Token: leases[0].Token, To: holdfast.Complete})
		}
	}},
	{"with many kinds ready, the next claim obeys a hold on one of them", func(s *scene) {
		const kinds, each = 40, 30
		s.enqueueAll(ofKinds(kinds, each, 0)...)
		s.claim(25)
		s.claim(25)
		s.must(s.Store.Pause(s.ctx, store.Hold{Kind: "kind9", Actor: "ada"}))
		for _, l := range s.claim(kinds * each) {
			if l.Kind == "kind9" {
				s.Fatalf("a job of a kind that is held was claimed")
			}
		}
		same(s, "left", s.claimable(), 0)
		s.must(s.Store.Resume(s.ctx, store.Hold{Kind: "kind9", Actor: "ada"}))
		if s.claimable() == 0 {
			s.Fatal("nothing of the kind that was held is left")
		}
	}},
}

// ofKinds returns drafts of many kinds in turn.
func ofKinds(kinds, each int, priority int16) (drafts []holdfast.Draft) {
	for i := range kinds * each {
		drafts = append(drafts, holdfast.Draft{Kind: fmt.Sprint("kind", i%kinds), Priority: priority})
	}
	return drafts
}

// drainInClaimsOf claims all jobs, and expects that every claim is full and no job is claimed twice.
func (s *scene) drainInClaimsOf(limit, jobs int) (order []store.Lease) {
	s.Helper()
	met := map[holdfast.ID]bool{}
	for len(order) < jobs {
		leases := s.claim(limit)
		same(s, "what a claim brings", len(leases), min(limit, jobs-len(order)))
		for _, l := range leases {
			if met[l.ID] {
				s.Fatalf("job %s was claimed twice", l.ID)
			}
			met[l.ID] = true
		}
		order = append(order, leases...)
	}
	return order
}

// claimUrgent claims n jobs of the lowest priority number, and counts the claims that returned others as well.
func (s *scene) claimUrgent(limit, urgent int) {
	s.Helper()
	claims, shared := 0, 0
	for urgent > 0 {
		others := 0
		leases := s.claim(limit)
		for _, l := range leases {
			if l.Priority < 0 {
				urgent--
			} else {
				others++
			}
		}
		if claims++; len(leases) == 0 {
			s.Fatalf("%d urgent jobs were never claimed", urgent)
		}
		if others > 0 && urgent > 0 {
			shared++
		}
	}
	if shared > claims/16+1 {
		s.Fatalf("%d of %d claims returned jobs while more urgent ones were ready", shared, claims)
	}
}

// claimable is how many jobs one more claim of a thousand returns.
func (s *scene) claimable() int {
	s.Helper()
	return len(s.claim(1000))
}
