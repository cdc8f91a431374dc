package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
)

func TestAStopLetsHandlersFinishAndClaimsNothingMore(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		w := s.startWorker(engine.Config{Slots: 1}, handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error {
			runs.mark()
			time.Sleep(20 * time.Second)
			return ctx.Err()
		}))
		first, second := s.enqueue(), s.enqueue()
		s.waitForState(first, holdfast.Processing)
		w.stop()
		expect(s, "what ran", s.job(first).State, holdfast.Complete)
		expect(s, "what waited", s.job(second).State, holdfast.Queued)
		expect(s, "runs", runs.count(), 1)
		present, err := s.store.Workers(context.Background())
		if err != nil || len(present) != 0 {
			t.Errorf("still present after the stop: %v, %v", present, err)
		}
	})
}

// Solid Queue #568: renewals that stop before the drain let another worker take what still runs.
func TestADrainOfThreeLeasesLosesNothingToOthers(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		cfg := engine.Config{Slots: 5, Lease: 5 * time.Second, Grace: time.Minute}
		work := handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error {
			runs.mark()
			time.Sleep(15 * time.Second)
			return ctx.Err()
		})
		w := s.startWorker(cfg, work)
		ids := s.enqueueMany(5)
		s.waitUntil("all to start", func() bool { return runs.count() == 5 })
		s.startWorker(cfg, work) // reclaims all the while
		w.stop()
		for _, id := range ids {
			job := s.job(id)
			expect(s, "state", job.State, holdfast.Complete)
			expect(s, "crashes", job.Crashes, 0)
			expect(s, "token", job.Token, 1)
		}
		expect(s, "runs", runs.count(), 5)
	})
}

func TestJobsThatDoNotFinishWithinGraceAreReleased(t *testing.T) {
	for _, obedient := range []bool{true, false} {
		inBubble(t, func(s *harness) {
			wall := make(chan struct{})
			defer close(wall)
			var runs starts
			var cause error
			work := handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error {
				if runs.mark() > 1 {
					return nil
				}
				if !obedient {
					<-wall
				}
				<-ctx.Done()
				cause = context.Cause(ctx)
				return errFailed
			})
			w := s.startWorker(engine.Config{Grace: 10 * time.Second, AbandonAfter: 2 * time.Second}, work)
			id := s.enqueue(func(d *holdfast.Draft) { d.MaxAttempts = 1 })
			s.waitForState(id, holdfast.Processing)
			asked := time.Now()
			w.stop()
			if took := time.Since(asked); took < 10*time.Second || took > 13*time.Second {
				t.Errorf("the stop took %v", took)
			}
			job := s.job(id)
			expect(s, "state", job.State, holdfast.Queued)
			expect(s, "failures", job.Failures, 0)
			expect(s, "releases", job.Releases, 1)
			if obedient && !errors.Is(cause, engine.ErrStopping) {
				t.Errorf("cause %v, want ErrStopping", cause)
			}
			s.startWorker(engine.Config{}, work)
			s.waitForState(id, holdfast.Complete)
		})
	}
}

func TestASecondStopEndsTheGrace(t *testing.T) {
	inBubble(t, func(s *harness) {
		w := s.startWorker(engine.Config{Grace: time.Hour}, handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error {
			<-ctx.Done()
			return ctx.Err()
		}, engine.KindOptions{Timeout: 2 * time.Hour}))
		id := s.enqueue()
		s.waitForState(id, holdfast.Processing)
		w.cancel()
		time.Sleep(time.Minute)
		expect(s, "state during the grace", s.job(id).State, holdfast.Processing)
		asked := time.Now()
		if err := w.Stop(ended()); !errors.Is(err, context.Canceled) {
			t.Errorf("Stop: %v, want its context's error", err)
		}
		if took := time.Since(asked); took > time.Second {
			t.Errorf("the second stop took %v", took)
		}
		w.stop()
		expect(s, "state", s.job(id).State, holdfast.Queued)
		expect(s, "failures", s.job(id).Failures, 0)
	})
}

func TestStopWaitsForTheWork(t *testing.T) {
	inBubble(t, func(s *harness) {
		w := s.startWorker(engine.Config{}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			time.Sleep(5 * time.Second)
			return nil
		}))
		id := s.enqueue()
		s.waitForState(id, holdfast.Processing)
		if err := w.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
		expect(s, "state", s.job(id).State, holdfast.Complete)
	})
}

func TestJobsHeldAheadOfASlotAreReleasedAtOnce(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		long := make(chan struct{})
		// With a slow store the engine claims ahead.
		slow := &misbehavingStore{Store: s.store, hang: func(context.Context) bool { time.Sleep(50 * time.Millisecond); return false }}
		w := s.startWorkerOn(slow, engine.Config{Slots: 2, Grace: time.Minute}, handleNotes(func(_ context.Context, job *engine.Job[Note]) error {
			if runs.mark() > 100 {
				<-long
			}
			time.Sleep(time.Millisecond)
			return nil
		}))
		s.enqueueMany(400)
		s.waitUntil("some to be held ahead", func() bool { return runs.count() == 102 && s.countJobs(holdfast.Processing) > 10 })
		w.cancel()
		s.waitUntil("only what runs to be held", func() bool { return s.countJobs(holdfast.Processing) == 2 })
		close(long)
		w.stop()
		expect(s, "processing", s.countJobs(holdfast.Processing), 0)
		expect(s, "complete", s.countJobs(holdfast.Complete), runs.count())
		expect(s, "queued", s.countJobs(holdfast.Queued), 400-runs.count())
	})
}

func (s *harness) countJobs(state holdfast.State) (n int) {
	s.Helper()
	counts, err := s.store.Counts(context.Background())
	if err != nil {
		s.Fatal(err)
	}
	for _, c := range counts {
		if c.State == state {
			n += c.Jobs
		}
	}
	return n
}

func TestAnEngineRunsOnceAndRefusesWhatIsWrongBeforeItClaims(t *testing.T) {
	inBubble(t, func(s *harness) {
		e, err := engine.New(s.store, engine.Config{Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		engine.Handle[Note](e, nil)
		engine.HandleRaw(e, "no such name!", func(context.Context, *engine.Raw) error { return nil })
		engine.HandleRaw(e, "odd", func(context.Context, *engine.Raw) error { return nil }, engine.KindOptions{Policy: failure.Policy{MaxAttempts: -1}})
		id := s.enqueue()
		err = e.Run(context.Background())
		if !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("Run: %v, want every problem", err)
		}
		t.Log(err)
		expect(s, "token", s.job(id).Token, 0)

		w := s.startWorker(engine.Config{}, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		s.waitForState(id, holdfast.Complete)
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, "register handlers before Run") {
					t.Errorf("Handle after Run: %v", text)
				}
			}()
			engine.HandleRaw(w.Engine, "late", func(context.Context, *engine.Raw) error { return nil })
		}()
		w.stop()
		if err := w.Run(context.Background()); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("a second Run: %v", err)
		}
	})
}

func TestABadConfigIsRefusedWhole(t *testing.T) {
	_, err := engine.New(nil, engine.Config{
		Slots: -1, Lease: time.Millisecond, Timeout: -1, AbandonAfter: -1, Grace: -1, Poll: -1, Sweep: -1,
		Queues: []string{"fine", "not fine"}, Policy: failure.Policy{MaxAttempts: -1},
		Middleware: []func(engine.Handler) engine.Handler{nil},
	})
	var all interface{ Unwrap() []error }
	if !errors.As(err, &all) {
		t.Fatalf("New: %v, want all problems joined", err)
	}
	for _, field := range []string{"store", "Slots", "Lease", "Timeout", "AbandonAfter", "Grace", "Poll", "Sweep", "Queues[1]", "MaxAttempts", "Middleware[0]"} {
		if !containsText(err, field) {
			t.Errorf("the refusal does not name %s: %v", field, err)
		}
	}
}
