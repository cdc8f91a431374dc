package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

func (s *Store) mustEnqueue(t testing.TB, n int, draft func(i int) holdfast.Draft) {
	t.Helper()
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i] = draft(i)
	}
	if _, err := s.Enqueue(t.Context(), drafts); err != nil {
		t.Fatal(err)
	}
}

func (s *Store) mustClaim(t testing.TB, limit int, queues ...string) []holdfast.Lease {
	t.Helper()
	leases, err := s.Claim(t.Context(), holdfast.Claim{Worker: "w", Queues: queues, Limit: limit, Start: limit, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

func (s *Store) mustPause(t testing.TB, h holdfast.Hold) {
	t.Helper()
	h.Actor = "ada"
	if err := s.Pause(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

// rivalClaim claims in the transaction in which another claim is about to take what it planned.
func (s *Store) rivalClaim(limit int) func(*tx) error {
	return func(t *tx) error {
		p := &claimPlanner{lanes: s.planner.lanes}
		e := claimRequest{Claim: holdfast.Claim{Worker: "rival", Queues: []string{"default"}, Limit: limit, Lease: time.Minute}, scope: &lane.Scope{Queues: []string{"default"}}}
		seen, err := p.plan(&claimView{session: t.session, now: t.now, lanes: p.lanes, scope: e.scope, onWriter: true}, e)
		if err == nil {
			_, err = p.claim(t, e, seen)
		}
		return err
	}
}

func TestALimitIsNotExceededByClaimsThatReadTheSameCapacity(t *testing.T) {
	for name, hold := range map[string]holdfast.Hold{
		"jobs in workers' hands": {Kind: "mail", AtMost: 3},
		"tokens in a bucket":     {Kind: "mail", Rate: &holdfast.Rate{Burst: 3, Level: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			store, _, _ := openCounted(t)
			store.mustEnqueue(t, 10, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail"} })
			store.mustPause(t, hold)
			if got := store.claimAfter(t, 10, store.rivalClaim(2)); len(got) != 1 {
				t.Errorf("%d jobs were let through beside two that were there already, and three may be", len(got))
			}
		})
	}
}

func TestAConcurrentClaimLeavesTheOtherItsJobs(t *testing.T) {
	store, _, _ := openCounted(t)
	store.mustEnqueue(t, 4, func(i int) holdfast.Draft { return holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner", i%2)} })
	if got := store.claimAfter(t, 4, store.rivalClaim(2)); len(got) != 2 {
		t.Errorf("%d of the two jobs that were left", len(got))
	}
}

func TestLanesThatAnotherProcessMadeAreLearnedAndNoneIsReadTwice(t *testing.T) {
	store, path, _ := openCounted(t)
	other, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for round := 1; round <= 3; round++ {
		other.mustEnqueue(t, 100, func(i int) holdfast.Draft {
			return holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner", round, "-", i)}
		})
		if got := store.mustClaim(t, 1000, "default"); len(got) != 100 {
			t.Errorf("%d jobs of 100 new owners", len(got))
		}
		if last := store.planner.lanes.lastID; last != int64(100*round) {
			t.Errorf("lanes are known up to %d after %d", last, 100*round)
		}
		store.mustEnqueue(t, 1, func(int) holdfast.Draft {
			return holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner", round, "-", 7)}
		})
		store.mustClaim(t, 1, "default")
	}
}

func TestAClaimLooksOnlyIntoLinesInWhichJobsWait(t *testing.T) {
	store, _, _ := openCounted(t)
	store.mustEnqueue(t, 2000, func(i int) holdfast.Draft { return holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner", i)} })
	for left := 2000; left > 0; {
		left -= len(store.mustClaim(t, 1000, "default"))
	}
	store.mustEnqueue(t, 1, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail", Owner: "owner7"} })
	if got := store.mustClaim(t, 10, "default"); len(got) != 1 || store.planner.nonEmpty != 1 {
		t.Errorf("%d jobs, after %d lines were met", len(got), store.planner.nonEmpty)
	}
	store.mustEnqueue(t, 500, func(i int) holdfast.Draft {
		return holdfast.Draft{Kind: "mail", Queue: "crowd", Owner: fmt.Sprint("owner", i)}
	})
	for i := range 100 { // soon it probes the few lines of its own queue instead
		store.mustEnqueue(t, 2, func(i int) holdfast.Draft {
			return holdfast.Draft{Kind: "mail", Queue: "quiet", Owner: fmt.Sprint("guest", i)}
		})
		if got := store.mustClaim(t, 10, "quiet", "quiet"); len(got) != 2 {
			t.Fatalf("claim %d took %d jobs, after %d lines were met", i, len(got), store.planner.nonEmpty)
		}
	}
}

func TestJobsBehindAHeldTagDoNotKeepAClaimForEver(t *testing.T) {
	store, _, _ := openCounted(t)
	store.mustEnqueue(t, maxSetAside+500, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail", Tags: []string{"held"}} })
	store.mustEnqueue(t, 1, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail"} })
	store.mustPause(t, holdfast.Hold{Tag: "held"})
	if got := store.mustClaim(t, 500, "default"); len(got) != 0 {
		t.Errorf("%d jobs were claimed, though only the next claim comes to one", len(got))
	}
	if wake, err := store.Await(t.Context(), []string{"default"}, time.Minute); err != nil || !wake.Work {
		t.Errorf("nobody is told that there is more: %v %v", wake, err)
	}
	if got := store.mustClaim(t, 500, "default"); len(got) != 1 {
		t.Errorf("%d jobs were claimed, not the free one", len(got))
	}
	if n := store.countJobs(t); n != maxSetAside+501 {
		t.Errorf("%d jobs are left", n)
	}
}

func TestWeightsThatWereKeptHereAreInForceAtOnce(t *testing.T) {
	store, _, _ := openCounted(t)
	store.mustEnqueue(t, 400, func(i int) holdfast.Draft { return holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner", i%2)} })
	store.mustClaim(t, 8, "default")
	if err := store.Keep(t.Context(), holdfast.Change{Records: []holdfast.Record{{Room: weightRoom, Name: "owner1", Body: []byte(`{"weight":3}`)}}}); err != nil {
		t.Fatal(err)
	}
	of := map[string]int{}
	for _, l := range store.mustClaim(t, 100, "default") {
		of[l.Owner]++
	}
	if of["owner1"] < 74 || of["owner1"] > 76 {
		t.Errorf("an owner of weight three and one of weight one got %v", of)
	}
}
