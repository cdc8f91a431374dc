package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// other is a kind that engines of a test may or may not handle.
func other(d *holdfast.Draft) { d.Kind = "other" }

func TestAnEngineClaimsOnlyKindsItHandles(t *testing.T) {
	inBubble(t, func(s *harness) {
		none := s.startWorker(engine.Config{})
		s.startWorker(engine.Config{}, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		id, known := s.enqueue(other), s.enqueue()
		s.waitForState(known, holdfast.Complete)
		time.Sleep(10 * time.Minute)
		job := s.job(id)
		expect(s, "claims of a job that no worker handles", job.Token, 0)
		expect(s, "its state", job.State, holdfast.Queued)
		none.stop()
		s.startWorker(engine.Config{Queues: []string{engine.AllQueues}}, func(e *engine.Engine) {
			engine.HandleRaw(e, "other", func(context.Context, *engine.Raw) error { return nil })
		})
		elsewhere := s.enqueue(other, func(d *holdfast.Draft) { d.Queue = "elsewhere" })
		s.waitForState(id, holdfast.Complete)
		s.waitForState(elsewhere, holdfast.Complete)
	})
}

// An everyKindStore returns jobs of every kind to every worker, as a server of an older version does.
type everyKindStore struct{ store.Store }

func (u everyKindStore) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	c.Kinds = nil
	return u.Store.Claim(ctx, c)
}

func TestAnUnknownKindIsReleasedForFreeHoweverOftenAWorkerWithoutItClaimsIt(t *testing.T) {
	inBubble(t, func(s *harness) {
		old := s.startWorkerOn(everyKindStore{s.store}, engine.Config{Policy: failure.Policy{MaxAttempts: 1}}, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		id := s.enqueue(other)
		time.Sleep(10 * time.Minute)
		job := s.job(id)
		expect(s, "state", job.State, holdfast.Queued)
		expect(s, "failures", job.Failures, 0)
		expect(s, "code", code(job), "UNKNOWN_KIND")
		if job.Releases < 5 {
			t.Errorf("%d claims in ten minutes", job.Releases)
		}
		old.stop()
		s.startWorker(engine.Config{}, func(e *engine.Engine) {
			engine.HandleRaw(e, "other", func(context.Context, *engine.Raw) error { return nil })
		})
		s.waitForState(id, holdfast.Complete)
	})
}

func TestSlowJobsOfOneOwnerDoNotDelayAnother(t *testing.T) {
	inBubble(t, func(s *harness) {
		const slots, each = 10, 4
		release := make(chan struct{})
		var mu sync.Mutex
		running, most := 0, 0
		s.startWorker(engine.Config{Slots: slots, OwnerSlots: each}, handleNotes(func(_ context.Context, job *engine.Job[Note]) error {
			if job.Lease.Owner == "quick" {
				return nil
			}
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			<-release
			mu.Lock()
			running--
			mu.Unlock()
			return nil
		}))
		s.enqueueAll(30, func(d *holdfast.Draft) { d.Owner = "slow" })
		s.waitUntil("the slow owner's share to be full", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return running == each
		})
		quick := s.enqueue(func(d *holdfast.Draft) { d.Owner = "quick" })
		s.waitForState(quick, holdfast.Complete)
		mu.Lock()
		expect(s, "jobs of the slow owner that run", running, each)
		mu.Unlock()
		close(release)
		s.waitUntil("all to complete", func() bool { return s.countJobs(holdfast.Complete) == 31 })
		expect(s, "most jobs of one owner at once", most, each)
	})
}
