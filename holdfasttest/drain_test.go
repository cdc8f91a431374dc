package holdfasttest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/holdfasttest"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
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

// A countingStore counts the runs of a frequent duty.
type countingStore struct {
	*holdfasttest.Store
	promotes atomic.Int64
}

func (s *countingStore) Promote(ctx context.Context, limit int) (int, error) {
	s.promotes.Add(1)
	return s.Store.Promote(ctx, limit)
}

// Virtual time costs CPU only where something runs, so duties rest while nothing is due, and everything that is due is done in time all the same.
func TestDrainRestsWhileNothingIsDue(t *testing.T) {
	holdfasttest.Run(t, func(t *testing.T, store *holdfasttest.Store) {
		jobs, start := &countingStore{Store: store}, time.Now()
		_, err := ops.New(jobs, ops.Config{}).SetSchedule(t.Context(), schedule.Schedule{Name: "daily", Every: 24 * time.Hour, Draft: holdfast.Draft{Kind: "daily"}}, ops.Actor{Name: "test"})
		if err != nil {
			t.Fatal(err)
		}
		group, err := jobs.CreateGroup(t.Context(), holdfast.Group{Name: "late", ExpireIn: 31*time.Hour + 7*time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := jobs.Enqueue(t.Context(), []holdfast.Draft{{Kind: "stubborn", MaxAttempts: 10}, {Kind: "member", Group: group.ID, Delay: 100 * time.Hour}}); err != nil {
			t.Fatal(err)
		}
		var failed, daily []time.Duration
		stories := holdfasttest.Drain(t, jobs, func(e *engine.Engine) {
			engine.HandleRaw(e, "stubborn", func(context.Context, *engine.Raw) error {
				failed = append(failed, time.Since(start))
				return errors.New("not yet")
			}, engine.KindOptions{Policy: failure.Policy{Backoff: failure.Fixed(8 * time.Hour)}})
			engine.HandleRaw(e, "daily", func(context.Context, *engine.Raw) error {
				daily = append(daily, time.Since(start))
				return nil
			})
		}, func(s *holdfasttest.DrainSetup) { s.Within = 5 * 24 * time.Hour })
		for i, at := range failed {
			if late := at - time.Duration(i)*8*time.Hour; late > 10*time.Second {
				t.Errorf("attempt %d is %v late", i+1, late)
			}
		}
		if len(failed) != 10 || len(daily) < 2 {
			t.Errorf("%d attempts, %d jobs of the schedule", len(failed), len(daily))
		}
		for i, at := range daily {
			if late := at - time.Duration(i+1)*24*time.Hour; late > 10*time.Second || late < -time.Minute {
				t.Errorf("job %d of the schedule ran after %v", i+1, at)
			}
		}
		member := stories.Of("member")[0].Job
		if late := group.ExpireAt.Sub(member.FinishedAt).Abs(); member.State != holdfast.Cancelled || late > time.Minute { // the group expired while the duties rested
			t.Errorf("the member of the group that expired is %s, %v late", member.State, late)
		}
		if n := jobs.promotes.Load(); n > 5000 {
			t.Errorf("a duty ran %d times in three days", n)
		}
	})
}

// A countedStore counts how often records are read, which an engine with a breaker and Drain itself do once a second.
type countedStore struct {
	store.Store
	reads atomic.Int64
}

func (c *countedStore) Records(ctx context.Context, namespace string) ([]store.Record, error) {
	c.reads.Add(1)
	return c.Store.Records(ctx, namespace)
}

func TestTheDutiesRestWhileABreakerIsOpen(t *testing.T) {
	holdfasttest.Run(t, func(t *testing.T, jobs *holdfasttest.Store) {
		for range 20 {
			if _, err := holdfast.Enqueue(t.Context(), jobs, receipt{}); err != nil {
				t.Fatal(err)
			}
		}
		start, counted := time.Now(), &countedStore{Store: jobs}
		stories := holdfasttest.Drain(t, counted, func(e *engine.Engine) {
			engine.Handle(e, func(context.Context, *engine.Job[receipt]) error {
				if time.Since(start) < 3*time.Hour {
					return &failure.HTTPError{Status: 503}
				}
				return nil
			}, engine.KindOptions{Dependency: "payments", Policy: failure.Policy{MaxAttempts: 20}})
		})
		stories.RequireComplete(t)
		if took := time.Since(start); took < 3*time.Hour || took > 4*time.Hour {
			t.Errorf("it took %v", took)
		}
		if n := counted.reads.Load(); n > 5000 {
			t.Errorf("an outage of three hours costs %d reads of records", n)
		}
	})
}
