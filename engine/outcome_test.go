package engine_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

func TestAJobIsCompletedOnceWithItsResult(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		s.startWorker(engine.Config{}, handleNotes(func(_ context.Context, job *engine.Job[Note]) error {
			runs.mark()
			job.Result(map[string]string{"said": job.Args.Text})
			return nil
		}))
		id := s.enqueue()
		job := s.waitForState(id, holdfast.Complete)
		expect(s, "result", string(job.Result), `{"said":"hello"}`)
		expect(s, "runs", runs.count(), 1)
		expect(s, "failures", job.Failures, 0)
	})
}

func TestRetriesFollowThePolicyToTheSecond(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		delays := failure.Table{2 * time.Second, 10 * time.Second, 60 * time.Second}
		s.startWorker(engine.Config{}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			runs.mark()
			return errFailed
		}, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 4, Backoff: delays}}))
		id := s.enqueue()
		job := s.waitForState(id, holdfast.Failed)
		expect(s, "runs", runs.count(), 4)
		expect(s, "failures", job.Failures, 4)
		for i, delay := range delays {
			gap := runs.at[i+1].Sub(runs.at[i])
			if gap < delay || gap >= delay+time.Second {
				t.Errorf("attempt %d started %v after the one before, want %v", i+2, gap, delay)
			}
		}
		expect(s, "attempts on record", len(s.attempts(id)), 4)
	})
}

func TestTheFailedHookIsCalledOnceAfterTheSettlementIsWritten(t *testing.T) {
	inBubble(t, func(s *harness) {
		told := make(chan holdfast.Failure, 10)
		var seen holdfast.State
		hook := func(_ context.Context, job holdfast.Job, f holdfast.Failure) {
			seen = s.job(job.ID).State
			told <- f
			panic("a hook that panics")
		}
		s.startWorker(engine.Config{OnJobFailed: hook}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			return failure.NeverRetry(failure.WithCode(errFailed, "NOT_FOUND"))
		}))
		id := s.enqueue()
		f := <-told
		expect(s, "code passed to the hook", f.Code, "NOT_FOUND")
		expect(s, "state when the hook is called", seen, holdfast.Failed)
		second := s.enqueue()
		<-told
		expect(s, "code on record", code(s.job(id)), "NOT_FOUND")
		expect(s, "state of the second", s.job(second).State, holdfast.Failed)
		expect(s, "further calls of the hook", len(told), 0)
	})
}

// faults lists what a handler can do wrong, and the code with which a job that has one attempt then fails.
var faults = []struct {
	sentence string
	work     note
	code     string
}{
	{"returns an error", func(context.Context, *engine.Job[Note]) error { return errFailed }, "UNKNOWN"},
	{"panics", func(context.Context, *engine.Job[Note]) error { panic("boom") }, "SYSTEM_PANIC"},
	{"panics with an error that panics", func(context.Context, *engine.Job[Note]) error { panic((*panickingError)(nil)) }, "SYSTEM_PANIC"},
	{"returns an error that panics", func(context.Context, *engine.Job[Note]) error { return (*panickingError)(nil) }, "UNKNOWN"},
	{"panics with nil", func(context.Context, *engine.Job[Note]) error { panic(nil) }, "SYSTEM_PANIC"},
	{"ends its goroutine", func(context.Context, *engine.Job[Note]) error { runtime.Goexit(); return nil }, "HANDLER_EXITED"},
	{"obeys its time limit", func(ctx context.Context, _ *engine.Job[Note]) error { <-ctx.Done(); return ctx.Err() }, "TIMEOUT"},
	{"hides that it obeyed its time limit", func(ctx context.Context, _ *engine.Job[Note]) error { <-ctx.Done(); return errFailed }, "TIMEOUT"},
	{"has a result that is not JSON", func(_ context.Context, job *engine.Job[Note]) error { job.Result(math.Inf(1)); return nil }, "HANDLER_RESULT"},
	{"has a result that is too large", func(_ context.Context, job *engine.Job[Note]) error {
		job.Result(strings.Repeat("x", check.MaxArgs))
		return nil
	}, "HANDLER_RESULT"},
}

type panickingError struct{ text string }

func (s *panickingError) Error() string { return s.text } // panics on a nil pointer

// oban#1116: a job whose process had ended inside a live node stayed "executing" for ever.
func TestWhateverAHandlerDoesItsJobEndsAndTheNextOneRuns(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.sentence, func(t *testing.T) {
			inBubble(t, func(s *harness) {
				bad := true
				s.startWorker(engine.Config{Slots: 1}, handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
					if bad {
						bad = false
						return fault.work(ctx, job)
					}
					return nil
				}, engine.KindOptions{Timeout: 3 * time.Second}))
				first := s.enqueue(func(d *holdfast.Draft) { d.MaxAttempts = 1 })
				job := s.waitForState(first, holdfast.Failed)
				expect(s, "code", code(job), fault.code)
				expect(s, "failures", job.Failures, 1)
				s.waitForState(s.enqueue(), holdfast.Complete)
			})
		})
	}
}

func TestAHandlerThatIgnoresItsTimeLimitIsAbandonedAndItsSlotReplaced(t *testing.T) {
	inBubble(t, func(s *harness) {
		wall := make(chan struct{})
		var runs starts
		s.startWorker(engine.Config{Slots: 1, AbandonAfter: 2 * time.Second}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			if runs.mark() == 1 {
				<-wall
			}
			return nil
		}, engine.KindOptions{Timeout: 10 * time.Second, Policy: failure.Policy{Backoff: failure.Fixed(time.Hour)}}))
		began := time.Now()
		stuck := s.enqueue()
		s.waitUntil("the first one to start", func() bool { return runs.count() == 1 })
		next := s.enqueue()
		s.waitForState(next, holdfast.Complete)
		if took := time.Since(began); took < 12*time.Second || took > 14*time.Second {
			t.Errorf("the slot was replaced after %v, want timeout and patience: 12s", took)
		}
		job := s.job(stuck)
		expect(s, "state", job.State, holdfast.Queued)
		expect(s, "code", code(job), "TIMEOUT")
		close(wall) // that it returns late must change nothing
		s.waitForState(s.enqueue(), holdfast.Complete)
		expect(s, "state after its late return", s.job(stuck).State, holdfast.Queued)
	})
}

func TestALongTimeLimitIsSharedAndNeverCutShort(t *testing.T) {
	inBubble(t, func(s *harness) {
		const limit = 10 * time.Minute
		var took, promised [3]time.Duration
		var runs starts
		s.startWorker(engine.Config{Slots: 3}, handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error {
			n, began := runs.mark()-1, time.Now()
			deadline, _ := ctx.Deadline()
			promised[n] = deadline.Sub(began)
			<-ctx.Done()
			took[n] = time.Since(began)
			return ctx.Err()
		}, engine.KindOptions{Timeout: limit, Policy: failure.Policy{MaxAttempts: 1}}))
		var jobs []holdfast.ID
		for n := range took {
			jobs = append(jobs, s.enqueue())
			s.waitUntil("it to start", func() bool { return runs.count() == n+1 })
			time.Sleep(700 * time.Millisecond)
		}
		for n, id := range jobs {
			s.waitForState(id, holdfast.Failed)
			expect(s, "code", code(s.job(id)), "TIMEOUT")
			if most := limit + limit/500; took[n] < limit || took[n] > most || promised[n] != took[n] {
				t.Errorf("attempt %d was promised %v and had %v, want %v to %v", n, promised[n], took[n], limit, most)
			}
		}
	})
}

func TestArgumentsThatCannotBeDecodedFailAtOnceAndNeverReachTheHandler(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		s.startWorker(engine.Config{}, handleNotes(func(context.Context, *engine.Job[Note]) error { runs.mark(); return nil }))
		id := s.enqueue(func(d *holdfast.Draft) { d.Args = []byte(`{"text": 7}`) })
		job := s.waitForState(id, holdfast.Failed)
		expect(s, "code", code(job), "UNREADABLE_JOB")
		expect(s, "runs", runs.count(), 0)
	})
}

func TestASnoozeCostsNothing(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		s.startWorker(engine.Config{}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			if runs.mark() <= 5 {
				return failure.Snooze(time.Minute)
			}
			return nil
		}))
		id := s.enqueue(func(d *holdfast.Draft) { d.MaxAttempts = 1 })
		job := s.waitForState(id, holdfast.Complete)
		expect(s, "failures", job.Failures, 0)
		expect(s, "releases", job.Releases, 5)
		if took := runs.at[5].Sub(runs.at[0]); took < 5*time.Minute || took > 5*time.Minute+5*time.Second {
			t.Errorf("five snoozes of a minute took %v", took)
		}
	})
}

func TestACheckpointIsResumedByTheNextAttempt(t *testing.T) {
	inBubble(t, func(s *harness) {
		var resumed []int
		s.startWorker(engine.Config{}, handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
			var page int
			if _, err := job.Resume(&page); err != nil {
				return err
			}
			resumed = append(resumed, page)
			if page == 20 {
				return nil
			}
			if err := job.Progress(ctx, float64(page), "reading"); err != nil {
				return err
			}
			if err := job.Checkpoint(ctx, page+10); err != nil {
				return err
			}
			return errFailed
		}, engine.KindOptions{Policy: failure.Policy{Backoff: failure.Fixed(time.Second)}}))
		job := s.waitForState(s.enqueue(), holdfast.Complete)
		expect(s, "attempts", len(resumed), 3)
		expect(s, "last page", resumed[len(resumed)-1], 20)
		expect(s, "failures", job.Failures, 2)
	})
}

func TestAJobThatCouldNotStartInTimeFailsAsExpiredAndNeverRuns(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		release := make(chan struct{})
		s.startWorker(engine.Config{Slots: 1}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			if runs.mark() == 1 {
				<-release
			}
			return nil
		}))
		first := s.enqueue()
		s.waitUntil("the first one to start", func() bool { return runs.count() == 1 })
		late := s.enqueue(func(d *holdfast.Draft) { d.ExpireIn = 30 * time.Second })
		job := s.waitForState(late, holdfast.Failed)
		expect(s, "code", code(job), "JOB_EXPIRED")
		expect(s, "failures", job.Failures, 0)
		if waited := job.FinishedAt.Sub(job.CreatedAt); waited < 30*time.Second || waited > 37*time.Second {
			t.Errorf("it expired after %v", waited)
		}
		close(release)
		s.waitForState(first, holdfast.Complete)
		expect(s, "runs", runs.count(), 1)
	})
}

func TestAJobExpiresBehindAHoldToo(t *testing.T) {
	inBubble(t, func(s *harness) {
		if err := s.store.Pause(context.Background(), store.Hold{Queue: holdfast.DefaultQueue, Actor: "ada"}); err != nil {
			t.Fatal(err)
		}
		s.startWorker(engine.Config{}, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		id := s.enqueue(func(d *holdfast.Draft) { d.ExpireIn = 10 * time.Second })
		expect(s, "code", code(s.waitForState(id, holdfast.Failed)), "JOB_EXPIRED")
	})
}

func TestACancelledJobIsStoppedAndEndsCancelled(t *testing.T) {
	inBubble(t, func(s *harness) {
		var cause error
		s.startWorker(engine.Config{}, handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}))
		id := s.enqueue()
		s.waitForState(id, holdfast.Processing)
		asked := time.Now()
		if _, err := s.store.Cancel(context.Background(), store.Intervention{Job: id, Actor: "ada"}); err != nil {
			t.Fatal(err)
		}
		s.waitForState(id, holdfast.Cancelled)
		if took := time.Since(asked); took > 2*time.Second {
			t.Errorf("the handler was told to stop after %v, want at once", took)
		}
		if !errors.Is(cause, engine.ErrCancelled) {
			t.Errorf("cause %v, want ErrCancelled", cause)
		}
	})
}

func TestACancelledJobWhoseHandlerIgnoresItEndsCancelledAllTheSame(t *testing.T) {
	inBubble(t, func(s *harness) {
		wall := make(chan struct{})
		defer close(wall)
		s.startWorker(engine.Config{}, handleNotes(func(context.Context, *engine.Job[Note]) error { <-wall; return nil }))
		id := s.enqueue()
		s.waitForState(id, holdfast.Processing)
		if _, err := s.store.Cancel(context.Background(), store.Intervention{Job: id, Actor: "ada"}); err != nil {
			t.Fatal(err)
		}
		asked := time.Now()
		s.waitForState(id, holdfast.Cancelled)
		if took := time.Since(asked); took > 10*time.Second {
			t.Errorf("it ended after %v, want patience", took)
		}
	})
}

func TestTheFailedHookIsNotCalledForABenignFailure(t *testing.T) {
	inBubble(t, func(s *harness) {
		told := make(chan holdfast.ID, 10)
		s.startWorker(engine.Config{OnJobFailed: func(_ context.Context, job holdfast.Job, _ holdfast.Failure) { told <- job.ID }}, handleNotes(func(_ context.Context, job *engine.Job[Note]) error {
			err := failure.NeverRetry(failure.WithCode(errFailed, "NOT_FOUND"))
			if job.Owner == "expected" {
				err = failure.Benign(err)
			}
			return err
		}))
		benign := s.enqueue(func(d *holdfast.Draft) { d.Owner = "expected" })
		s.waitForState(benign, holdfast.Failed)
		other := s.enqueue()
		expect(s, "the job passed to the hook", <-told, other)
		expect(s, "failed, by the trend", s.trend("default").Failed, 1)
		letters, _, err := s.store.Jobs(context.Background(), store.Filter{DeadLetters: true})
		if err != nil || len(letters) != 1 || letters[0].ID != other {
			t.Errorf("dead letters %+v: %v", letters, err)
		}
	})
}
