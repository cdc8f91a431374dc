package holdfasttest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/holdfasttest"
	"github.com/holdfastdev/holdfast/store"
)

type receipt struct{ Of holdfast.ID }

func (receipt) Kind() string { return "receipt" }

func TestDrainRunsEveryJobWithItsRetriesInVirtualTime(t *testing.T) {
	holdfasttest.Run(t, func(t *testing.T, jobs *holdfasttest.Store) {
		start := time.Now()
		enqueue(t, jobs, home, func(d *holdfast.Draft) { d.Delay = 10 * time.Minute })
		stories := holdfasttest.Drain(t, jobs, func(e *engine.Engine) {
			engine.Handle(e, func(ctx context.Context, job *engine.Job[parcel]) error {
				if job.Failures < 2 {
					return errors.New("the road is closed")
				}
				_, err := holdfast.Enqueue(ctx, jobs, receipt{Of: job.ID})
				return err
			}, engine.KindOptions{Policy: failure.Policy{Backoff: failure.Fixed(10 * time.Minute)}})
			engine.Handle(e, func(context.Context, *engine.Job[receipt]) error { return nil })
		})
		stories.RequireComplete(t)
		if len(stories) != 2 || len(stories.Of("receipt")) != 1 {
			t.Errorf("%d stories, want 2", len(stories))
		}
		if took := time.Since(start); took < 30*time.Minute || took > 31*time.Minute {
			t.Errorf("it took %v, want half an hour: the delay and two retries", took)
		}
		text := stories[0].String()
		for _, part := range []string{"10m0", "the road is closed", "complete"} {
			if !strings.Contains(text, part) {
				t.Errorf("the story lacks %q:\n%s", part, text)
			}
		}
	})
}

func TestDrainShowsTheStoryOfAJobThatEndedOtherwise(t *testing.T) {
	holdfasttest.Run(t, func(t *testing.T, jobs *holdfasttest.Store) {
		enqueue(t, jobs, home)
		stories := holdfasttest.Drain(t, jobs, func(e *engine.Engine) {
			engine.Handle(e, func(context.Context, *engine.Job[parcel]) error {
				return failure.NeverRetry(errors.New("no such street"))
			})
		})
		stories[0].RequireFailed(t, "UNKNOWN")
		message := fatal(t, func(t testing.TB) { stories.RequireComplete(t) })
		if !strings.Contains(message, "want: complete") || !strings.Contains(message, "no such street") {
			t.Errorf("message: %s", message)
		}
	})
}

func TestDrainSaysWhyJobsAreLeft(t *testing.T) {
	holdfasttest.Run(t, func(t *testing.T, jobs *holdfasttest.Store) {
		enqueue(t, jobs, home)
		enqueue(t, jobs, receipt{})
		if err := jobs.Pause(t.Context(), store.Hold{Kind: "parcel", Source: store.SourceOperator, Actor: "ada", Reason: "strike"}); err != nil {
			t.Fatal(err)
		}
		message := fatal(t, func(t testing.TB) {
			holdfasttest.Drain(t, jobs, func(e *engine.Engine) {
				engine.Handle(e, func(context.Context, *engine.Job[parcel]) error { return nil })
			})
		})
		for _, part := range []string{"these jobs are left", "paused by ada", "strike", "no live worker"} {
			if !strings.Contains(message, part) {
				t.Errorf("the message lacks %q:\n%s", part, message)
			}
		}
	})
}

func TestDrainWorksInRealTimeToo(t *testing.T) {
	jobs := holdfasttest.Open(t)
	enqueue(t, jobs, home)
	holdfasttest.Drain(t, jobs, func(e *engine.Engine) {
		engine.Handle(e, func(context.Context, *engine.Job[parcel]) error { return nil })
	}).RequireComplete(t)
}

func TestARefusedHandlerEndsADrain(t *testing.T) {
	jobs := holdfasttest.Open(t)
	enqueue(t, jobs, home)
	message := fatal(t, func(t testing.TB) {
		holdfasttest.Drain(t, jobs, func(e *engine.Engine) { engine.Handle[parcel](e, nil) })
	})
	if !strings.Contains(message, "its handler is nil") {
		t.Errorf("message: %s", message)
	}
}
