package engine_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

type Invite struct {
	Email    string `json:"email"`
	Accepted bool   `json:"accepted,omitempty"`
}

func (Invite) Kind() string { return "invite" }

// A handler that sleeps for days: it saves how far it is and snoozes. Nothing runs meanwhile, and a restart of every process does not matter.
func ExampleJob_Checkpoint_sleep() {
	const threeDays = 10 * time.Millisecond // for this example
	run(engine.Config{}, func(ctx context.Context, e *engine.Engine, jobs store.Store) {
		engine.Handle(e, func(ctx context.Context, job *engine.Job[Invite]) error {
			sent := false
			if _, err := job.Resume(&sent); err != nil {
				return err
			}
			if !sent {
				fmt.Println("invite", job.Args.Email)
				if err := job.Checkpoint(ctx, true); err != nil {
					return err
				}
				return failure.Snooze(threeDays) // spends no attempt
			}
			fmt.Println("remind", job.Args.Email)
			return nil
		})
		if _, err := holdfast.Enqueue(ctx, jobs, Invite{Email: "ada@example.org"}); err != nil {
			panic(err)
		}
	})
	// Output:
	// invite ada@example.org
	// remind ada@example.org
}

// A job that waits for a signal: it snoozes until its deadline, and the signal is an edit that adds to its arguments and makes it run now.
func ExampleJob_Resume_signal() {
	run(engine.Config{}, func(ctx context.Context, e *engine.Engine, jobs store.Store) {
		invited := make(chan struct{})
		engine.Handle(e, func(ctx context.Context, job *engine.Job[Invite]) error {
			sent := false
			if _, err := job.Resume(&sent); err != nil {
				return err
			}
			switch {
			case job.Args.Accepted:
				fmt.Println("accepted")
				return nil
			case sent: // the deadline has passed
				fmt.Println("no answer")
				return nil
			}
			fmt.Println("invite", job.Args.Email)
			if err := job.Checkpoint(ctx, true); err != nil {
				return err
			}
			close(invited)
			return failure.Snooze(7 * 24 * time.Hour)
		})
		receipt, err := holdfast.Enqueue(ctx, jobs, Invite{Email: "ada@example.org"})
		if err != nil {
			panic(err)
		}
		go func() {
			<-invited
			signal := store.Edit{Intervention: store.Intervention{Job: receipt.ID, Actor: "the web site"}, Patch: []byte(`{"accepted":true}`), Delay: new(time.Duration)}
			for {
				_, err := jobs.Edit(ctx, signal)
				if !errors.Is(err, holdfast.ErrConflict) { // ErrConflict: the worker has not settled the attempt yet
					return
				}
				_, _ = jobs.Await(ctx, []string{"none"}, 5*time.Millisecond)
			}
		}()
	})
	// Output:
	// invite ada@example.org
	// accepted
}

// The first member finds out how many others there are, and adds them together with a last one that reads their results.
func ExampleJob_Enqueue() {
	runUntil("sum", engine.Config{}, func(ctx context.Context, e *engine.Engine, jobs store.Store) {
		engine.HandleRaw(e, "list", func(_ context.Context, job *engine.Raw) error {
			sum := holdfast.Draft{Kind: "sum", Group: job.Group}
			for n := range 3 {
				step := fmt.Sprint("page-", n)
				if err := job.Enqueue(holdfast.Draft{Kind: "page", Group: job.Group, Step: step}); err != nil {
					return err
				}
				sum.When = append(sum.When, holdfast.Condition{Step: step})
			}
			return job.Enqueue(sum)
		})
		engine.HandleRaw(e, "page", func(_ context.Context, job *engine.Raw) error {
			job.Result(10)
			return nil
		})
		engine.HandleRaw(e, "sum", func(ctx context.Context, job *engine.Raw) error {
			total := 0
			for n := range 3 {
				var words int
				if err := job.Upstream(ctx, fmt.Sprint("page-", n), &words); err != nil {
					return err
				}
				total += words
			}
			fmt.Println(total, "words")
			return nil
		})
		group, err := jobs.CreateGroup(ctx, holdfast.Group{})
		if err != nil {
			panic(err)
		}
		if _, err := jobs.Enqueue(ctx, []holdfast.Draft{{Kind: "list", Group: group.ID}}); err != nil {
			panic(err)
		}
		if err := jobs.SealGroup(ctx, group.ID); err != nil {
			panic(err)
		}
	})
	// Output: 30 words
}
