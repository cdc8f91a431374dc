package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/postgres"
)

// owned returns drafts of one owner.
func owned(owner string, n int) []holdfast.Draft {
	list := make([]holdfast.Draft, n)
	for i := range list {
		list[i] = holdfast.Draft{Kind: "mail", Owner: owner}
	}
	return list
}

func TestAPlannedClaimThatComesShortFindsJobsOfOtherProcesses(t *testing.T) {
	w := newWorld(t)
	other := w.open(postgres.Config{URL: w.url})
	w.enqueue(w.store, append(owned("acme", 3), owned("zeta", 3)...)...)
	if got := len(w.claim(2)); got != 2 {
		t.Fatalf("claimed %d of 2", got)
	}
	w.enqueue(other, owned("late", 5)...) // this store does not notice
	if got := len(w.claim(100)); got != 9 {
		t.Errorf("claimed %d of 9", got)
	}
}

func TestConcurrentClaimsAmongOwnersClaimNoJobTwice(t *testing.T) {
	w := newWorld(t)
	stores := []*postgres.Store{w.store, w.open(postgres.Config{URL: w.url}), w.open(postgres.Config{URL: w.url})}
	const each = 200
	for _, owner := range []string{"acme", "zeta", "wolf"} {
		w.enqueue(w.store, owned(owner, each)...)
	}
	var mu sync.Mutex
	seen := map[holdfast.ID]int{}
	var all sync.WaitGroup
	for i := range 9 {
		all.Go(func() {
			for empty := 0; empty < 3; {
				leases, err := stores[i%3].Claim(w.ctx, store.Claim{Worker: fmt.Sprint("w", i), Queues: []string{"default"}, Limit: 7, Start: 7, Lease: time.Minute})
				if err != nil {
					t.Error(err)
					return
				}
				if len(leases) == 0 {
					empty++
				}
				mu.Lock()
				for _, l := range leases {
					seen[l.ID]++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(seen) != 3*each {
		t.Errorf("%d of %d jobs were claimed", len(seen), 3*each)
	}
	for id, n := range seen {
		if n > 1 {
			t.Errorf("job %v was claimed %d times", id, n)
		}
	}
}

func TestClaimsAmongOwnersKeepTheOrderOfEachOwner(t *testing.T) {
	w := newWorld(t)
	const owners, each, size = 40, 12, 60
	var list []holdfast.Draft
	for n := range each {
		for i := range owners {
			list = append(list, holdfast.Draft{Kind: []string{"mail", "sms", "mail"}[n*3/each], Owner: fmt.Sprint("owner-", i)})
		}
	}
	w.enqueue(w.store, list...)
	last, got, total := map[string]holdfast.ID{}, map[string]int{}, 0
	for range owners * each / size {
		leases := w.claim(size)
		for _, l := range leases {
			if l.ID.String() < last[l.Owner].String() {
				t.Errorf("a job of %s was overtaken", l.Owner)
			}
			last[l.Owner] = l.ID
			got[l.Owner]++
		}
		total += len(leases)
		for owner, n := range got {
			if fair := total / owners; n > fair+3 || n < fair-3 {
				t.Errorf("%s got %d of %d, with %d owners", owner, n, total, owners)
			}
		}
	}
	if total != len(list) {
		t.Errorf("claimed %d of %d", total, len(list))
	}
}

func TestSettlementsThatShareErrorGroupsDoNotDeadlock(t *testing.T) {
	w := newWorld(t)
	const jobs, groups = 240, 12
	w.enqueue(w.store, drafts(jobs)...)
	var all sync.WaitGroup
	for i := range 8 {
		leases := w.claim(jobs / 8) // one batch each, so that they contend only for the error groups
		all.Go(func() {
			var settlements []store.Settlement
			for n, l := range leases {
				group := (n*7 + i*5) % groups // in a different order for each
				s := released(l)
				s.Charge, s.Version = store.ChargeFailure, fmt.Sprint("v", i%2)
				s.Failure = &holdfast.Failure{Code: "GW_5XX", Category: "gateway", Message: "503", Fingerprint: fmt.Sprint("f", group)}
				settlements = append(settlements, s)
			}
			answers, err := w.store.Settle(w.ctx, settlements)
			if err := errors.Join(append(answers, err)...); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := w.count("SELECT sum(failures)::int FROM holdfast_error_group"); n != jobs {
		t.Errorf("%d failures were counted, not %d", n, jobs)
	}
	if n := w.count("SELECT sum(failures)::int FROM holdfast_error_count"); n != jobs {
		t.Errorf("%d failures were counted by time, not %d", n, jobs)
	}
	if n := w.count("SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()"); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

func TestTheNextPlannedClaimObeysHoldsThatAnotherProcessChanged(t *testing.T) {
	w := newWorld(t)
	other := w.open(postgres.Config{URL: w.url})
	w.enqueue(w.store, append(owned("acme", 10), owned("zeta", 10)...)...)
	w.claim(2)
	hold := store.Hold{Owner: "acme", Actor: "ann"}
	w.ok(other.Pause(w.ctx, hold))
	for _, l := range w.claim(5) {
		if l.Owner == "acme" {
			t.Error("a held job was claimed")
		}
	}
	w.ok(other.Resume(w.ctx, hold))
	got := map[string]int{}
	for _, l := range w.claim(6) {
		got[l.Owner]++
	}
	if got["acme"] < 2 {
		t.Errorf("claimed %v: the hold was lifted", got)
	}
}

func TestFiveThousandOwnersAreNotScannedByEveryClaim(t *testing.T) {
	w := newWorld(t)
	const owners = 5000
	list := make([]holdfast.Draft, owners)
	for i := range list {
		list[i] = holdfast.Draft{Kind: "mail", Owner: fmt.Sprint("owner-", i)}
	}
	w.enqueue(w.store, list...)
	began := time.Now()
	const claims = 100
	for range claims {
		if got := len(w.claim(5)); got != 5 {
			t.Fatalf("claimed %d of 5", got)
		}
	}
	took := time.Since(began)
	w.ok(w.store.Close())
	w.awaitSessionsEnd() // they report what they read
	const read = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'holdfast_ready_pkey'"
	scans := w.count(read) / owners
	if may := 2 + int(took/markAge); scans > may {
		t.Errorf("%d claims scanned all lines %d times in %v, %d are enough", claims, scans, took, may)
	}
}

// markAge is the minimum time for which a store uses what it remembers.
const markAge = 100 * time.Millisecond
