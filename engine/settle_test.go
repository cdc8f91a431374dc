package engine

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

// This test is inside the package because the moment between the return of a handler and the queueing of its outcome cannot be observed from outside. A stop at
// that moment must wait for the outcome, or the job would have to be reclaimed.
func TestAStopWaitsForAnOutcomeThatIsNotQueuedYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		db, err := sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(t.TempDir(), "jobs.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		if _, err := db.Enqueue(ctx, []holdfast.Draft{{Kind: "note", Queue: "default"}}); err != nil {
			t.Fatal(err)
		}
		e, err := New(db, Config{})
		if err == nil {
			err = e.begin(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		leases, err := db.Claim(ctx, store.Claim{Worker: e.worker, Queues: []string{"default"}, Limit: 1, Start: 1, Lease: time.Minute})
		if err != nil || len(leases) != 1 {
			t.Fatal(leases, err)
		}
		a := &attempt{lease: &leases[0], asked: time.Now()}
		e.leases.admit([]*attempt{a}, time.Now().Add(time.Minute), claimSize{})

		if _, _, valid := e.leases.finish(a); !valid { // the handler has returned, and the slot is free
			t.Fatal("the attempt was not running")
		}
		var intake, settler sync.WaitGroup
		settler.Go(e.settler.settle)
		stopped := make(chan error, 1)
		go func() { stopped <- e.drain(&intake, &settler) }()
		synctest.Wait()
		select {
		case err := <-stopped:
			t.Errorf("the stop did not wait for the outcome of the job: %v", err)
		default:
			e.settler.outcomes.add(a, failure.Outcome{Event: failure.Returned})
			if err := <-stopped; err != nil {
				t.Error(err)
			}
		}
		e.cancelStore()
		job, err := db.Job(ctx, leases[0].ID)
		if err != nil || job.State != holdfast.Complete {
			t.Errorf("the job is %s (%v), want complete: its outcome was known before the engine stopped", job.State, err)
		}
	})
}
