package engine_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// Workers crash and stop, with and without grace, while others continue; jobs fail, snooze, panic and run slowly. In the end every job has ended, and only jobs that
// panicked have failed: no attempt was charged for what was not the job's fault.
//
// sidekiq#4937, #5540: rolling deploys left orphans for hours.
func TestWorkersStartStopAndCrashAndEveryJobEnds(t *testing.T) {
	for seed := range uint64(3) {
		inBubble(t, func(s *harness) {
			dice := rand.New(rand.NewPCG(seed, 2))
			var handlers sync.WaitGroup
			work := handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
				handlers.Add(1)
				defer handlers.Done()
				return erraticHandler(ctx, job)
			}, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 100, MaxCrashes: 100, Backoff: failure.Fixed(3 * time.Second)}})
			cfg := engine.Config{Lease: 5 * time.Second, Slots: 4, Grace: 3 * time.Second, AbandonAfter: time.Second}
			s.enqueueMany(120)
			for range 12 {
				cut := storetest.NewFaulty(s.store)
				w := s.startWorkerOn(cut, cfg, work)
				time.Sleep(time.Duration(dice.IntN(4000)) * time.Millisecond)
				switch dice.IntN(3) {
				case 0:
					w.crash(cut)
				case 1:
					w.stop()
				case 2:
					w.cancel()
					_ = w.Stop(ended())
				}
			}
			last := s.startWorker(cfg, work)
			s.waitUntil("all to end", func() bool { return s.countJobs(holdfast.Complete)+s.countJobs(holdfast.Failed) == 120 })
			last.stop()
			for _, w := range s.workers {
				<-w.ended
			}
			handlers.Wait() // abandoned handlers still run: the bubble must not end before them
			failed, _, err := s.store.Jobs(context.Background(), store.Filter{State: holdfast.Failed, Limit: 200})
			if err != nil {
				t.Fatal(err)
			}
			for _, job := range failed {
				expect(s, "code of a failed job", code(job), "SYSTEM_PANIC")
			}
		})
	}
}

// erraticHandler behaves differently at every call, at random.
func erraticHandler(ctx context.Context, _ *engine.Job[Note]) error {
	switch rand.IntN(8) {
	case 0:
		return errFailed
	case 1:
		return failure.Snooze(time.Second)
	case 2:
		panic("a bad day")
	case 3:
		<-time.After(time.Duration(rand.IntN(20)) * time.Second) // ignores its context
	case 4:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(rand.IntN(20)) * time.Second):
		}
	}
	return nil
}
