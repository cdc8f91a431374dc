package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

type Invoice struct {
	Number int `json:"number"`
}

func (Invoice) Kind() string { return "invoice" }

// open opens a store in a temporary folder. A program keeps its store in a file of its own, or in a database.
func open(ctx context.Context) (jobs store.Store, remove func()) {
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		panic(err)
	}
	jobs, err = anystore.Open(ctx, filepath.Join(dir, "jobs.db"))
	if err != nil {
		panic(err)
	}
	return jobs, func() {
		jobs.Close()
		os.RemoveAll(dir)
	}
}

func ExampleEnqueue() {
	ctx := context.Background()
	jobs, remove := open(ctx)
	defer remove()

	receipt, err := holdfast.Enqueue(ctx, jobs, Invoice{Number: 4711}, func(d *holdfast.Draft) {
		d.Queue, d.Delay = "billing", time.Hour
	})
	if err != nil {
		panic(err)
	}
	job, err := jobs.Job(ctx, receipt.ID)
	if err != nil {
		panic(err)
	}
	fmt.Println(job.Kind, job.Queue, job.State, string(job.Args))
	// Output: invoice billing queued {"number":4711}
}

// A unique key admits one unfinished job. The second call returns the job that has the key.
func ExampleEnqueue_unique() {
	ctx := context.Background()
	jobs, remove := open(ctx)
	defer remove()

	once := func(d *holdfast.Draft) { d.UniqueKey = "invoice 4711" }
	first, err := holdfast.Enqueue(ctx, jobs, Invoice{Number: 4711}, once)
	if err != nil {
		panic(err)
	}
	second, err := holdfast.Enqueue(ctx, jobs, Invoice{Number: 4711}, once)
	if err != nil {
		panic(err)
	}
	fmt.Println(second.Existing, second.ID == first.ID)
	// Output: true true
}

// Several jobs are enqueued together, all or none.
func ExampleNewDraft() {
	ctx := context.Background()
	jobs, remove := open(ctx)
	defer remove()

	var drafts []holdfast.Draft
	for number := range 3 {
		draft, err := holdfast.NewDraft(Invoice{Number: number})
		if err != nil {
			panic(err)
		}
		drafts = append(drafts, draft)
	}
	receipts, err := jobs.Enqueue(ctx, drafts)
	fmt.Println(len(receipts), err)
	// Output: 3 <nil>
}

// The members of a group end together: when all have ended, the store enqueues the continuation.
func ExampleGroup() {
	ctx := context.Background()
	jobs, remove := open(ctx)
	defer remove()

	group, err := jobs.CreateGroup(ctx, holdfast.Group{
		Name: "invoices of May",
		Then: []holdfast.Then{{On: holdfast.GroupReady, Draft: holdfast.Draft{Kind: "report"}}},
	})
	if err != nil {
		panic(err)
	}
	for number := range 2 {
		_, err := holdfast.Enqueue(ctx, jobs, Invoice{Number: number}, func(d *holdfast.Draft) { d.Group = group.ID })
		if err != nil {
			panic(err)
		}
	}
	if err := jobs.SealGroup(ctx, group.ID); err != nil {
		panic(err)
	}
	group, err = jobs.Group(ctx, group.ID)
	fmt.Println(group.State, group.Members.Total, err)
	// Output: processing 2 <nil>
}

// Errors wrap one of the Err variables, and their message says what to do.
func ExampleError() {
	ctx := context.Background()
	jobs, remove := open(ctx)
	defer remove()

	_, err := jobs.Enqueue(ctx, []holdfast.Draft{{Kind: "two words"}})
	fmt.Println(errors.Is(err, holdfast.ErrInvalid))
	fmt.Println(err)
	// Output:
	// true
	// kind "two words": use 1 to 128 letters, digits and _ - . : /
}
