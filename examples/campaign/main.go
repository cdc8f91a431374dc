// Command campaign shows a group: jobs that belong together and run one after the other, and a job that continues the group when it has ended.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/anystore"
)

// Step is one step of the campaign.
type Step struct{ Name string }

// Kind returns the kind of the job.
func (Step) Kind() string { return "step" }

// Outcome are the arguments of a job that continues a group: how the group ended.
type Outcome struct {
	Group      holdfast.ID         `json:"group"`
	State      holdfast.GroupState `json:"state"`
	Generation int                 `json:"generation"`
}

// Kind returns the kind of the job.
func (Outcome) Kind() string { return "announce" }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	jobs, err := anystore.Open(ctx, "campaign.db")
	must(err)
	defer jobs.Close()

	group, err := jobs.CreateGroup(ctx, holdfast.Group{Name: "spring campaign", Then: []holdfast.Then{{Draft: holdfast.Draft{Kind: "announce"}}}})
	must(err)
	draw := step(group, "draw")
	press := step(group, "print", draw.ID)
	clean := step(group, "clean up", press.ID)
	clean.AfterAll = true // also if printing fails
	_, err = jobs.Enqueue(ctx, []holdfast.Draft{draw, press, clean})
	must(err)
	must(jobs.SealGroup(ctx, group.ID)) // no more members: now the group can end

	worker, err := engine.New(jobs, engine.Config{})
	must(err)
	var repaired atomic.Bool
	engine.Handle(worker, func(_ context.Context, job *engine.Job[Step]) error {
		if job.Args.Name == "print" && !repaired.Load() {
			return failure.NeverRetry(fmt.Errorf("out of ink"))
		}
		fmt.Println(job.Args.Name)
		return nil
	}, engine.KindOptions{})
	engine.Handle(worker, func(ctx context.Context, job *engine.Job[Outcome]) error {
		fmt.Printf("the campaign is %s (generation %d)\n", job.Args.State, job.Args.Generation)
		if job.Args.State == holdfast.GroupReady {
			stop()
			return nil
		}
		repaired.Store(true) // an operator fixes the cause and retries the failed member and those that depend on it
		_, err := jobs.RetryGroup(ctx, store.Intervention{Group: job.Args.Group, Actor: "ann", Reason: "ink refilled"})
		return err
	}, engine.KindOptions{})
	must(worker.Run(ctx))
}

// step returns the draft of a member that starts after the given members.
func step(group holdfast.Group, name string, after ...holdfast.ID) holdfast.Draft {
	draft, err := holdfast.NewDraft(Step{Name: name})
	must(err)
	draft.ID, draft.Group, draft.After = holdfast.NewID(), group.ID, after
	return draft
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
