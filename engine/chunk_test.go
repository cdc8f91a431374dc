package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// Numbered is a job with a number.
type Numbered struct{ N int }

func (Numbered) Kind() string { return "numbered" }

// chunks is a handler of chunks that a test gives, with the sizes of its calls.
type chunks struct {
	mu    sync.Mutex
	sizes []int
	work  func(ctx context.Context, jobs []*engine.Job[Numbered]) []error
}

func (c *chunks) handle(options engine.ChunkOptions, how ...engine.KindOptions) func(*engine.Engine) {
	return func(e *engine.Engine) {
		engine.HandleChunk(e, func(ctx context.Context, jobs []*engine.Job[Numbered]) []error {
			c.mu.Lock()
			c.sizes = append(c.sizes, len(jobs))
			c.mu.Unlock()
			if c.work == nil {
				return nil
			}
			return c.work(ctx, jobs)
		}, options, how...)
	}
}

func (c *chunks) calls() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sizes)
}

// enqueueNumbered enqueues jobs with the numbers 0 to n-1.
func (s *harness) enqueueNumbered(n int, options ...func(*holdfast.Draft)) []holdfast.ID {
	s.Helper()
	all := make([]Numbered, n)
	for i := range all {
		all[i].N = i
	}
	receipts, err := holdfast.EnqueueAll(context.Background(), s.store, all, options...)
	if err != nil {
		s.Fatal(err)
	}
	ids := make([]holdfast.ID, n)
	for i, r := range receipts {
		ids[i] = r.ID
	}
	return ids
}

// once is an option for jobs that are not retried.
func once(d *holdfast.Draft) { d.MaxAttempts = 1 }

// sleepIn waits for that time or until ctx ends, and returns the error of ctx.
func sleepIn(ctx context.Context, takes time.Duration) error {
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestAChunkIsHandledInOneCallAndEachJobIsJudgedApart(t *testing.T) {
	inBubble(t, func(s *harness) {
		var ends sync.Map
		var wrapped starts
		c := &chunks{work: func(ctx context.Context, jobs []*engine.Job[Numbered]) []error {
			errs := make([]error, len(jobs))
			for i, job := range jobs {
				if err := job.Progress(ctx, float64(job.Args.N), "in a chunk"); err != nil {
					t.Error(err)
				}
				if err := job.Checkpoint(ctx, job.Args.N*10); err != nil {
					t.Error(err)
				}
				job.Result(map[string]int{"n": job.Args.N})
				switch job.Args.N {
				case 1:
					errs[i] = errFailed
				case 2:
					errs[i] = failure.NeverRetry(errFailed)
				case 3:
					errs[i] = failure.Snooze(time.Hour)
				}
			}
			return errs
		}}
		cfg := engine.Config{
			Slots: 5, OnAttemptEnd: func(end engine.AttemptEnd) { ends.Store(end.Lease.ID, end.To) },
			Middleware: []func(engine.Handler) engine.Handler{func(next engine.Handler) engine.Handler {
				return func(ctx context.Context, job *engine.Raw) error { wrapped.mark(); return next(ctx, job) }
			}},
		}
		ids := s.enqueueNumbered(5, func(d *holdfast.Draft) { d.MaxAttempts = 2 })
		begun := time.Now()
		w := s.startWorker(cfg, c.handle(engine.ChunkOptions{}))
		s.waitForState(ids[4], holdfast.Complete)
		if took := time.Since(begun); took > 500*time.Millisecond {
			t.Errorf("a full chunk waited for more jobs: it ended after %v", took)
		}
		w.stop()
		expect(s, "calls", fmt.Sprint(c.calls()), "[5]")
		expect(s, "calls of the middleware", wrapped.count(), 5)
		for i, want := range []holdfast.State{holdfast.Complete, holdfast.Queued, holdfast.Failed, holdfast.Queued, holdfast.Complete} {
			job := s.job(ids[i])
			expect(s, fmt.Sprintf("state of job %d", i), job.State, want)
			expect(s, "its failures", job.Failures, []int{0, 1, 1, 0, 0}[i])
			if to, _ := ends.Load(ids[i]); to != want {
				t.Errorf("OnAttemptEnd of job %d: %v, want %v", i, to, want)
			}
			if job.Progress == nil || job.Progress.Percent != float64(i) {
				t.Errorf("progress of job %d: %+v", i, job.Progress)
			}
			if want == holdfast.Complete {
				expect(s, "its result", string(job.Result), fmt.Sprintf(`{"n":%d}`, i))
			}
		}
	})
}

func TestAChunkWaitsForMoreJobsAndNoLongerThanItsWait(t *testing.T) {
	inBubble(t, func(s *harness) {
		c := &chunks{}
		s.startWorker(engine.Config{Slots: 10}, c.handle(engine.ChunkOptions{Size: 4, Wait: 3 * time.Second}))
		s.waitUntil("the worker to be there", func() bool { all, _ := s.store.Workers(context.Background()); return len(all) == 1 })
		begun := time.Now()
		for range 3 {
			s.enqueueNumbered(1)
			time.Sleep(500 * time.Millisecond)
		}
		s.waitUntil("three to be handled", func() bool { return len(c.calls()) == 1 })
		if took := time.Since(begun); took < 3*time.Second || took > 3200*time.Millisecond {
			t.Errorf("the chunk was handed over after %v, want 3 s", took)
		}
		s.enqueueNumbered(9)
		s.waitUntil("all to be handled", func() bool { return s.countJobs(holdfast.Complete) == 12 })
		expect(s, "calls", fmt.Sprint(c.calls()), "[3 4 4 1]")
	})
}

func TestAPanicFailsEachJobOfItsChunkOnceAndAlike(t *testing.T) {
	for name, work := range map[string]func(context.Context, []*engine.Job[Numbered]) []error{
		"a panic":      func(context.Context, []*engine.Job[Numbered]) []error { panic("no") },
		"a goexit":     func(context.Context, []*engine.Job[Numbered]) []error { runtime.Goexit(); return nil },
		"wrong length": func(context.Context, []*engine.Job[Numbered]) []error { return []error{nil} },
	} {
		inBubble(t, func(s *harness) {
			c := &chunks{work: work}
			ids := s.enqueueNumbered(3, once)
			s.startWorker(engine.Config{Slots: 3}, c.handle(engine.ChunkOptions{}))
			var seen holdfast.Failure
			for i, id := range ids {
				job := s.waitForState(id, holdfast.Failed)
				expect(s, "failures after "+name, job.Failures, 1)
				if i == 0 {
					seen = *job.LastFailure
				}
				if f := job.LastFailure; f.Code != seen.Code || f.Fingerprint != seen.Fingerprint || f.Message != seen.Message {
					t.Errorf("%s: job %d failed with %+v, the first one with %+v", name, i, f, seen)
				}
			}
			t.Log(name, seen.Code, seen.Detail)
			expect(s, "calls", len(c.calls()), 1)
		})
	}
}

func TestAJobThatIsCancelledLeavesItsChunkToTheOthers(t *testing.T) {
	inBubble(t, func(s *harness) {
		var err error
		c := &chunks{work: func(ctx context.Context, jobs []*engine.Job[Numbered]) []error {
			err = sleepIn(ctx, 5*time.Minute)
			for _, job := range jobs {
				job.Result(job.Args.N)
				job.SetDependency("after the end")
			}
			return nil
		}}
		ids := s.enqueueNumbered(3)
		s.startWorker(engine.Config{Slots: 3}, c.handle(engine.ChunkOptions{}))
		s.waitUntil("the call", func() bool { return len(c.calls()) == 1 })
		begun := time.Now()
		if _, err := s.store.Cancel(context.Background(), store.Intervention{Job: ids[1], Actor: "test"}); err != nil {
			t.Fatal(err)
		}
		s.waitForState(ids[1], holdfast.Cancelled)
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the cancelled job ended after %v", took)
		}
		for _, id := range []holdfast.ID{ids[0], ids[2]} {
			job := s.waitForState(id, holdfast.Complete)
			expect(s, "attempts", job.Attempt(), 1)
		}
		expect(s, "error of the call's context", err, nil)
	})
}

func TestAJobThatLosesItsLeaseLeavesItsChunkToTheOthers(t *testing.T) {
	inBubble(t, func(s *harness) {
		c := &chunks{work: func(ctx context.Context, jobs []*engine.Job[Numbered]) []error {
			if len(jobs) == 1 {
				return nil // the job that was taken away, again
			}
			if err := sleepIn(ctx, 5*time.Minute); err != nil {
				t.Errorf("the context of the call ended: %v", err)
			}
			return nil
		}}
		ids := s.enqueueNumbered(3)
		s.startWorker(engine.Config{Slots: 4}, c.handle(engine.ChunkOptions{Size: 3}))
		s.waitUntil("the call", func() bool { return len(c.calls()) == 1 })
		time.Sleep(time.Minute)
		if _, err := s.store.Retry(context.Background(), store.Intervention{Job: ids[1], Actor: "test", StuckAfter: time.Second}); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			expect(s, "failures", s.waitForState(id, holdfast.Complete).Failures, 0)
		}
		expect(s, "calls", fmt.Sprint(c.calls()), "[3 1]")
	})
}

// The jobs of a chunk that joined first reach their time limit first. The call continues for the others, and ends when the last one has ended.
func TestTheTimeLimitOfOneJobDoesNotEndTheOthers(t *testing.T) {
	inBubble(t, func(s *harness) {
		var began, over time.Time
		c := &chunks{work: func(ctx context.Context, jobs []*engine.Job[Numbered]) []error {
			began = time.Now()
			err := sleepIn(ctx, time.Hour)
			over = time.Now()
			return slices.Repeat([]error{err}, len(jobs))
		}}
		first := s.enqueueNumbered(1, once)
		s.startWorker(engine.Config{Slots: 2}, c.handle(engine.ChunkOptions{Wait: 20 * time.Second}, engine.KindOptions{Timeout: 30 * time.Second}))
		time.Sleep(15 * time.Second)
		second := s.enqueueNumbered(1, once)
		s.waitUntil("the call", func() bool { return len(c.calls()) == 1 })
		s.waitForState(first[0], holdfast.Failed)
		expect(s, "the other one", s.job(second[0]).State, holdfast.Processing)
		s.waitForState(second[0], holdfast.Failed)
		for _, id := range []holdfast.ID{first[0], second[0]} {
			expect(s, "code", code(s.job(id)), "TIMEOUT")
		}
		if took := over.Sub(began); took < 29*time.Second || took > 31*time.Second {
			t.Errorf("the call ended after %v, want the time limit of the last job, 30 s", took)
		}
	})
}

func TestAHandlerOfChunksThatIgnoresItsContextIsAbandoned(t *testing.T) {
	inBubble(t, func(s *harness) {
		wall := make(chan struct{})
		c := &chunks{work: func(context.Context, []*engine.Job[Numbered]) []error { <-wall; return nil }}
		ids := s.enqueueNumbered(3, once)
		s.startWorker(engine.Config{Slots: 3}, c.handle(engine.ChunkOptions{}, engine.KindOptions{Timeout: 10 * time.Second}))
		for _, id := range ids {
			job := s.waitForState(id, holdfast.Failed)
			expect(s, "code", code(job), "TIMEOUT")
		}
		close(wall)
	})
}

func TestAStopHandsOverAChunkThatWaits(t *testing.T) {
	inBubble(t, func(s *harness) {
		c := &chunks{work: func(ctx context.Context, _ []*engine.Job[Numbered]) []error {
			return slices.Repeat([]error{sleepIn(ctx, time.Second)}, 2)
		}}
		ids := s.enqueueNumbered(2)
		w := s.startWorker(engine.Config{Slots: 3, Grace: 10 * time.Second}, c.handle(engine.ChunkOptions{Wait: 5 * time.Minute}))
		s.waitForState(ids[1], holdfast.Processing)
		time.Sleep(time.Minute)
		expect(s, "calls before the stop", len(c.calls()), 0)
		begun := time.Now()
		w.stop()
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("the stop took %v", took)
		}
		for _, id := range ids {
			expect(s, "state", s.job(id).State, holdfast.Complete)
		}
	})
}

func TestAStopReleasesTheJobsOfAChunkThatDoesNotEndWithinGrace(t *testing.T) {
	inBubble(t, func(s *harness) {
		c := &chunks{work: func(ctx context.Context, jobs []*engine.Job[Numbered]) []error {
			errs := slices.Repeat([]error{sleepIn(ctx, time.Hour)}, len(jobs))
			time.Sleep(4 * time.Second) // less than AbandonAfter
			errs[0] = nil               // this one was complete
			return errs
		}}
		ids := s.enqueueNumbered(3)
		w := s.startWorker(engine.Config{Slots: 3, Grace: 10 * time.Second}, c.handle(engine.ChunkOptions{}, engine.KindOptions{Timeout: 2 * time.Hour}))
		s.waitUntil("the call", func() bool { return len(c.calls()) == 1 })
		w.stop()
		states := map[holdfast.State]int{}
		for _, id := range ids {
			job := s.job(id)
			states[job.State]++
			expect(s, "failures", job.Failures+job.Crashes, 0)
		}
		expect(s, "complete", states[holdfast.Complete], 1)
		expect(s, "released", states[holdfast.Queued], 2)
	})
}

func TestAJobThatCannotBeDecodedFailsWithoutTheOthers(t *testing.T) {
	inBubble(t, func(s *harness) {
		c := &chunks{}
		good := s.enqueueNumbered(2)
		receipts, err := s.store.Enqueue(context.Background(), []holdfast.Draft{{Kind: "numbered", Args: json.RawMessage(`{"N":"text"}`)}})
		if err != nil {
			t.Fatal(err)
		}
		s.startWorker(engine.Config{Slots: 3}, c.handle(engine.ChunkOptions{}))
		s.waitForState(receipts[0].ID, holdfast.Failed)
		for _, id := range good {
			s.waitForState(id, holdfast.Complete)
		}
		expect(s, "calls", fmt.Sprint(c.calls()), "[2]")
	})
}

func TestChunkOptionsThatCannotWorkAreRefused(t *testing.T) {
	for want, register := range map[string]func(*engine.Engine){
		"Size is 11": (&chunks{}).handle(engine.ChunkOptions{Size: 11}),
		"Size is 6":  (&chunks{}).handle(engine.ChunkOptions{Size: 6}, engine.KindOptions{Slots: 5}),
		"Size is -1": (&chunks{}).handle(engine.ChunkOptions{Size: -1}),
		"Wait is 1m": (&chunks{}).handle(engine.ChunkOptions{Wait: time.Minute}, engine.KindOptions{Timeout: time.Minute}),
		"nil":        func(e *engine.Engine) { engine.HandleChunk[Numbered](e, nil, engine.ChunkOptions{}) },
	} {
		e, err := engine.New(&endlessStore{}, engine.Config{Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		register(e)
		if err := e.Run(context.Background()); !errors.Is(err, holdfast.ErrInvalid) || !containsText(err, want) {
			t.Errorf("want a refusal with %q: %v", want, err)
		}
	}
}
