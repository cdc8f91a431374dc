package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
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

func (s *Store) mustClaim(t testing.TB, limit int, queues ...string) []store.Lease {
	t.Helper()
	leases, err := s.Claim(t.Context(), store.Claim{Worker: "w", Queues: queues, Limit: limit, Start: limit, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return leases
}

func (s *Store) mustPause(t testing.TB, h store.Hold) {
	t.Helper()
	h.Actor = "ada"
	if err := s.Pause(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

// rivalClaim claims in the transaction in which another claim is about to take what it planned.
func (s *Store) rivalClaim(limit int) func(*tx) error {
	return func(t *tx) error {
		p := newClaimPlanner(s.planner.lanes)
		e := claimRequest{Claim: store.Claim{Worker: "rival", Queues: []string{"default"}, Limit: limit, Lease: time.Minute}, scope: &lane.Scope{Queues: []string{"default"}}}
		plan, err := p.planOnWriter(t, e)
		if err == nil {
			_, err = p.take(t, e, plan)
		}
		return err
	}
}

func TestALimitIsNotExceededByClaimsThatReadTheSameCapacity(t *testing.T) {
	for name, hold := range map[string]store.Hold{
		"jobs in workers' hands": {Kind: "mail", AtMost: 3},
		"tokens in a bucket":     {Kind: "mail", Rate: &store.Rate{Burst: 3, Level: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			db, _, _ := openCounted(t)
			db.mustEnqueue(t, 10, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail"} })
			db.mustPause(t, hold)
			if got := db.claimAfter(t, 10, db.rivalClaim(2)); len(got) != 1 {
				t.Errorf("%d jobs were let through beside two that were there already, and three may be", len(got))
			}
		})
	}
}

func TestAConcurrentClaimLeavesTheOtherItsJobs(t *testing.T) {
	db, _, _ := openCounted(t)
	db.mustEnqueue(t, 4, func(i int) holdfast.Draft { return holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner", i%2)} })
	if got := db.claimAfter(t, 4, db.rivalClaim(2)); len(got) != 2 {
		t.Errorf("%d of the two jobs that were left", len(got))
	}
}

func TestLanesThatAnotherProcessMadeAreLearnedAndNoneIsReadTwice(t *testing.T) {
	db, path, _ := openCounted(t)
	other, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for round := 1; round <= 3; round++ {
		other.mustEnqueue(t, 100, func(i int) holdfast.Draft {
			return holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner", round, "-", i)}
		})
		if got := db.mustClaim(t, 1000, "default"); len(got) != 100 {
			t.Errorf("%d jobs of 100 new owners", len(got))
		}
		if last := db.planner.lanes.lastID; last != int64(100*round) {
			t.Errorf("lanes are known up to %d after %d", last, 100*round)
		}
		db.mustEnqueue(t, 1, func(int) holdfast.Draft {
			return holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner", round, "-", 7)}
		})
		db.mustClaim(t, 1, "default")
	}
}

func TestAClaimLooksOnlyIntoLinesInWhichJobsWait(t *testing.T) {
	db, _, _ := openCounted(t)
	db.mustEnqueue(t, 2000, func(i int) holdfast.Draft { return holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner", i)} })
	for left := 2000; left > 0; {
		left -= len(db.mustClaim(t, 1000, "default"))
	}
	db.mustEnqueue(t, 1, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail", Owner: "owner7"} })
	if got := db.mustClaim(t, 10, "default"); len(got) != 1 || db.planner.memory.nonEmpty != 1 {
		t.Errorf("%d jobs, after %d lines were met", len(got), db.planner.memory.nonEmpty)
	}
	db.mustEnqueue(t, 500, func(i int) holdfast.Draft {
		return holdfast.Draft{Kind: "mail", Queue: "crowd", Owner: fmt.Sprint("owner", i)}
	})
	for i := range 100 { // soon it probes the few lines of its own queue instead
		db.mustEnqueue(t, 2, func(i int) holdfast.Draft {
			return holdfast.Draft{Kind: "mail", Queue: "quiet", Owner: fmt.Sprint("guest", i)}
		})
		if got := db.mustClaim(t, 10, "quiet", "quiet"); len(got) != 2 {
			t.Fatalf("claim %d took %d jobs, after %d lines were met", i, len(got), db.planner.memory.nonEmpty)
		}
	}
}

func TestJobsBehindAHeldTagDoNotKeepAClaimForEver(t *testing.T) {
	db, _, _ := openCounted(t)
	db.mustEnqueue(t, lane.MaxSetAside+500, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail", Tags: []string{"held"}} })
	db.mustEnqueue(t, 1, func(int) holdfast.Draft { return holdfast.Draft{Kind: "mail"} })
	db.mustPause(t, store.Hold{Tag: "held"})
	if got := db.mustClaim(t, 500, "default"); len(got) != 0 {
		t.Errorf("%d jobs were claimed, though only the next claim comes to one", len(got))
	}
	if wake, err := db.Await(t.Context(), []string{"default"}, time.Minute); err != nil || !wake.Work {
		t.Errorf("nobody is told that there is more: %v %v", wake, err)
	}
	if got := db.mustClaim(t, 500, "default"); len(got) != 1 {
		t.Errorf("%d jobs were claimed, not the free one", len(got))
	}
	if n := db.countJobs(t); n != lane.MaxSetAside+501 {
		t.Errorf("%d jobs are left", n)
	}
}

func TestWeightsThatWereKeptHereAreInForceAtOnce(t *testing.T) {
	db, _, _ := openCounted(t)
	db.mustEnqueue(t, 400, func(i int) holdfast.Draft { return holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner", i%2)} })
	db.mustClaim(t, 8, "default")
	if err := db.Apply(t.Context(), store.Change{Records: []store.Record{{Namespace: lane.NamespaceWeights, Name: "owner1", Body: []byte(`{"weight":3}`)}}}); err != nil {
		t.Fatal(err)
	}
	of := map[string]int{}
	for _, l := range db.mustClaim(t, 100, "default") {
		of[l.Owner]++
	}
	if of["owner1"] < 74 || of["owner1"] > 76 {
		t.Errorf("an owner of weight three and one of weight one got %v", of)
	}
}
