package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// open opens a store in a temporary folder, with one job.
func open(ctx context.Context) (jobs store.Store, id holdfast.ID, remove func()) {
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		panic(err)
	}
	jobs, err = anystore.Open(ctx, filepath.Join(dir, "jobs.db"))
	if err != nil {
		panic(err)
	}
	receipts, err := jobs.Enqueue(ctx, []holdfast.Draft{{Kind: "mail"}})
	if err != nil {
		panic(err)
	}
	return jobs, receipts[0].ID, func() {
		jobs.Close()
		os.RemoveAll(dir)
	}
}

// A worker claims a job, which gives it a lease, and settles the lease with the result. Package engine does this for programs.
func ExampleClaimer() {
	ctx := context.Background()
	jobs, _, remove := open(ctx)
	defer remove()

	leases, err := jobs.Claim(ctx, store.Claim{Worker: "worker-1", Queues: []string{holdfast.DefaultQueue}, Limit: 10, Start: 10, Lease: time.Minute})
	if err != nil {
		panic(err)
	}
	for _, lease := range leases {
		answers, err := jobs.Settle(ctx, []store.Settlement{{Batch: lease.Batch, Job: lease.ID, Token: lease.Token, To: holdfast.Complete}})
		if err != nil {
			panic(err)
		}
		fmt.Println(lease.Kind, "token", lease.Token, "settled:", answers[0] == nil)
	}
	// Output: mail token 1 settled: true
}

// A hold keeps jobs from being claimed, at no cost to them.
func ExampleHold() {
	ctx := context.Background()
	jobs, _, remove := open(ctx)
	defer remove()

	pause := store.Hold{Kind: "mail", Actor: "ann", Reason: "the mail server is being replaced"}
	if err := jobs.Pause(ctx, pause); err != nil {
		panic(err)
	}
	claim := store.Claim{Worker: "worker-1", Queues: []string{holdfast.DefaultQueue}, Limit: 10, Start: 10, Lease: time.Minute}
	held, err := jobs.Claim(ctx, claim)
	if err != nil {
		panic(err)
	}
	if err := jobs.Resume(ctx, pause); err != nil {
		panic(err)
	}
	leases, err := jobs.Claim(ctx, claim)
	fmt.Println(len(held), len(leases), err)
	// Output: 0 1 <nil>
}

func ExampleFilter() {
	ctx := context.Background()
	jobs, _, remove := open(ctx)
	defer remove()

	list, _, err := jobs.Jobs(ctx, store.Filter{State: holdfast.Queued, Kind: "mail", Limit: 10})
	fmt.Println(len(list), err)
	// Output: 1 <nil>
}

func ExampleIntervention() {
	ctx := context.Background()
	jobs, id, remove := open(ctx)
	defer remove()

	state, err := jobs.Cancel(ctx, store.Intervention{Job: id, Actor: "ann", Reason: "sent by hand"})
	fmt.Println(state, err)
	// Output: cancelled <nil>
}
