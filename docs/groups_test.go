package docs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/holdfasttest"
	"github.com/holdfastdev/holdfast/store"
)

// The code of groups.md.

// A Card is a job.
type Card struct{ To string }

// Kind names the kind.
func (Card) Kind() string { return "card" }

// Count is a job.
type Count struct{}

// Kind names the kind.
func (Count) Kind() string { return "count" }

func sendCards(jobs store.Store, cards []Card) error {
	// README start create
	group, err := jobs.CreateGroup(ctx, holdfast.Group{Name: "spring campaign", Owner: "acme",
		Then: []holdfast.Then{{On: holdfast.GroupReady, Draft: holdfast.Draft{Kind: "announce"}}}})
	if err != nil {
		return err
	}
	inGroup := func(d *holdfast.Draft) { d.Group = group.ID }
	if _, err := holdfast.EnqueueAll(ctx, jobs, cards, inGroup); err != nil { // as often as you like; members begin at once
		return err
	}
	return jobs.SealGroup(ctx, group.ID) // no more members: now it can end
	// README end
}

func enqueueSteps(jobs store.Store, group holdfast.Group) error {
	// README start after
	download := holdfast.Draft{ID: holdfast.NewID(), Kind: "download", Group: group.ID}
	parse := holdfast.Draft{ID: holdfast.NewID(), Kind: "parse", Group: group.ID, After: []holdfast.ID{download.ID}}
	clean := holdfast.Draft{Kind: "clean", Group: group.ID, After: []holdfast.ID{parse.ID}, AfterAll: true}
	_, err := jobs.Enqueue(ctx, []holdfast.Draft{download, parse, clean})
	// README end
	return err
}

func enqueueOrder(jobs store.Store, group holdfast.Group) error {
	// README start when
	_, err := jobs.Enqueue(ctx, []holdfast.Draft{
		{Kind: "charge", Group: group.ID, Step: "charge"},
		{Kind: "ship", Group: group.ID, Step: "ship", When: []holdfast.Condition{{Step: "charge"}}},                                                                  // charge is complete
		{Kind: "refund", Group: group.ID, Step: "refund", When: []holdfast.Condition{{Step: "ship", On: holdfast.OnFailed}, {Step: "charge", On: holdfast.OnEnded}}}, // a compensation
		{Kind: "report", Group: group.ID, When: []holdfast.Condition{{Step: "ship", On: holdfast.OnEnded}, {Step: "charge", On: holdfast.OnEnded}}},
	})
	// README end
	return err
}

func countRows(e *engine.Engine, jobs store.Store, group holdfast.Group) error {
	// README start results
	load := holdfast.Draft{ID: holdfast.NewID(), Kind: "load", Group: group.ID, Step: "load"}
	count := holdfast.Draft{Kind: "count", Group: group.ID, Step: "count", After: []holdfast.ID{load.ID}}

	engine.Handle(e, func(ctx context.Context, job *engine.Job[Count]) error {
		var loaded struct{ Rows int }
		if err := job.Upstream(ctx, "load", &loaded); err != nil { // what the handler of load passed to job.Result
			return err
		}
		job.Result(loaded.Rows)
		return nil
	})
	// README end
	_, err := jobs.Enqueue(ctx, []holdfast.Draft{load, count})
	return err
}

// members runs the jobs that enqueue has put into a group, until all have ended. Those of the kinds parse and ship fail for good.
func members(t *testing.T, enqueue func(jobs store.Store, group holdfast.Group) error, kinds ...string) holdfasttest.Stories {
	t.Helper()
	jobs := holdfasttest.Open(t)
	group, err := jobs.CreateGroup(ctx, holdfast.Group{})
	must(err)
	must(enqueue(jobs, group))
	must(jobs.SealGroup(ctx, group.ID))
	return holdfasttest.Drain(t, jobs, func(e *engine.Engine) {
		for _, kind := range kinds {
			engine.HandleRaw(e, kind, func(context.Context, *engine.Raw) error {
				if kind == "ship" || kind == "parse" {
					return failure.NeverRetry(errExample)
				}
				return nil
			})
		}
	})
}

func TestACampaignAnnouncesThatAllCardsWereSent(t *testing.T) {
	jobs := holdfasttest.Open(t)
	must(sendCards(jobs, []Card{{To: "ann@example.com"}, {To: "bob@example.com"}}))
	announced := make(chan struct{})
	e, err := engine.New(jobs, engine.Config{})
	must(err)
	engine.Handle(e, func(context.Context, *engine.Job[Card]) error { return nil })
	engine.HandleRaw(e, "announce", func(context.Context, *engine.Raw) error { close(announced); return nil })
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(running) }()
	<-announced
	stop()
	must(<-ended)
}

func TestTheLastStepRunsAfterAStepThatFailed(t *testing.T) {
	stories := members(t, enqueueSteps, "download", "parse", "clean")
	stories.Of("download").RequireComplete(t)
	stories.Of("clean").RequireComplete(t)
}

func TestAnOrderThatCannotBeShippedIsRefunded(t *testing.T) {
	stories := members(t, enqueueOrder, "charge", "ship", "refund", "report")
	for _, kind := range []string{"charge", "refund", "report"} {
		stories.Of(kind).RequireComplete(t)
	}
}

func TestAStepReadsTheResultOfTheOneBeforeIt(t *testing.T) {
	jobs := holdfasttest.Open(t)
	group, err := jobs.CreateGroup(ctx, holdfast.Group{})
	must(err)
	var enqueued error
	stories := holdfasttest.Drain(t, jobs, func(e *engine.Engine) {
		engine.HandleRaw(e, "load", func(_ context.Context, job *engine.Raw) error {
			job.Result(map[string]int{"Rows": 7})
			return nil
		})
		enqueued = errors.Join(countRows(e, jobs, group), jobs.SealGroup(ctx, group.ID))
	})
	must(enqueued)
	if count := stories.Of("count"); len(count) != 1 || string(count[0].Job.Result) != "7" {
		t.Errorf("the step count ended as %v, want the result 7", count)
	}
}
