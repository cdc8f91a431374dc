package ops_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// Explain says why a job does not run, and what can be done.
func ExampleService_Explain() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	jobs, err := anystore.Open(ctx, filepath.Join(dir, "jobs.db"))
	if err != nil {
		panic(err)
	}
	defer jobs.Close()
	receipts, err := jobs.Enqueue(ctx, []holdfast.Draft{{Kind: "mail", Queue: "mails"}})
	if err != nil {
		panic(err)
	}

	operator := ops.New(jobs, ops.Config{})
	if err := operator.Pause(ctx, store.Hold{Queue: "mails", Actor: "ann", Reason: "the mail server is being replaced"}); err != nil {
		panic(err)
	}
	explanation, err := operator.Explain(ctx, receipts[0].ID)
	if err != nil {
		panic(err)
	}
	for _, reason := range explanation.Reasons {
		fmt.Println(reason.Name)
	}
	// Output:
	// queue paused
	// no worker
}

// A change has an actor and a reason. Both are in the story of the job.
func ExampleService_Cancel() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "holdfast")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	jobs, err := anystore.Open(ctx, filepath.Join(dir, "jobs.db"))
	if err != nil {
		panic(err)
	}
	defer jobs.Close()
	receipts, err := jobs.Enqueue(ctx, []holdfast.Draft{{Kind: "mail"}})
	if err != nil {
		panic(err)
	}

	operator := ops.New(jobs, ops.Config{})
	state, err := operator.Cancel(ctx, store.Intervention{Job: receipts[0].ID, Actor: "ann", Reason: "sent by hand"})
	if err != nil {
		panic(err)
	}
	history, err := operator.History(ctx, receipts[0].ID)
	if err != nil {
		panic(err)
	}
	last := history.Events[len(history.Events)-1]
	fmt.Println(state, "by", last.Actor, "because", last.Reason)
	// Output: cancelled by ann because sent by hand
}
