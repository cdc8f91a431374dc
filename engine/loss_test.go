package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// lease5 is a short lease with its default sweep of a second.
var lease5 = engine.Config{Lease: 5 * time.Second}

// river PR#1288, #1331, #350: the time of a rescue was derived from other timeouts and needed five corrections. Here a lease is one stored time.
func TestAJobOfALostWorkerRunsAgainWithinLeaseAndSweep(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		forever := handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error {
			runs.mark()
			<-ctx.Done()
			return ctx.Err()
		})
		w := s.startWorkerOn(s.faulty, lease5, forever)
		id := s.enqueue()
		s.waitForState(id, holdfast.Processing)
		s.startWorker(lease5, handleNotes(func(context.Context, *engine.Job[Note]) error { runs.mark(); return nil }))
		lost := time.Now()
		w.crash(s.faulty)
		job := s.waitForState(id, holdfast.Complete)
		if took := runs.at[1].Sub(lost); took > 7*time.Second {
			t.Errorf("it ran again after %v, want at most 7s", took)
		}
		expect(s, "crashes", job.Crashes, 1)
		expect(s, "failures", job.Failures, 0)
		expect(s, "the trend of its queue", s.trend("default"), store.Trend{Queue: "default", Retried: 1, Complete: 1})
		<-w.ended
		if !errors.Is(w.err, holdfast.ErrUnavailable) {
			t.Errorf("Run of the cut-off engine: %v", w.err)
		}
	})
}

func TestAJobThatKillsItsWorkersFailsAsPoison(t *testing.T) {
	inBubble(t, func(s *harness) {
		id := s.enqueue()
		work := handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error { <-ctx.Done(); return ctx.Err() },
			engine.KindOptions{Policy: failure.Policy{MaxCrashes: 2}})
		for crashes := range 2 {
			cut := storetest.NewFaulty(s.store)
			w := s.startWorkerOn(cut, lease5, work)
			s.waitUntil("it to run there", func() bool { return s.job(id).Worker == w.Worker() && s.job(id).Crashes == crashes })
			w.crash(cut)
			<-w.ended
		}
		s.startWorker(lease5, work)
		job := s.waitForState(id, holdfast.Failed)
		expect(s, "code", code(job), "POISON")
		expect(s, "crashes", job.Crashes, 2)
	})
}

func TestAWorkerThatCannotReachTheStoreStopsItsHandlersAndItsLateResultChangesNothing(t *testing.T) {
	inBubble(t, func(s *harness) {
		var cause error
		var told atomic.Int64
		began := time.Now()
		w := s.startWorkerOn(s.faulty, lease5, handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
			<-ctx.Done()
			told.Store(int64(time.Since(began)))
			cause = context.Cause(ctx)
			job.Result("from the stale worker")
			return nil
		}))
		id := s.enqueue()
		s.waitForState(id, holdfast.Processing)
		s.faulty.Plan(storetest.Fault{Always: true}, storetest.Fault{Verb: "Await", Always: true})
		other := s.startWorker(lease5, handleNotes(func(_ context.Context, job *engine.Job[Note]) error {
			job.Result("from the new one")
			return nil
		}))
		job := s.waitForState(id, holdfast.Complete)
		s.faulty.Plan()
		s.waitUntil("the late result", func() bool {
			for _, a := range s.attempts(id) {
				if a.Late {
					return true
				}
			}
			return false
		})
		if !errors.Is(cause, holdfast.ErrLeaseLost) {
			t.Errorf("cause %v, want ErrLeaseLost", cause)
		}
		if at := time.Duration(told.Load()); at > 5*time.Second {
			t.Errorf("the handler was told to stop after %v: later than its lease", at)
		}
		expect(s, "result", string(s.job(id).Result), `"from the new one"`)
		expect(s, "crashes", job.Crashes, 1)
		w.stop()
		other.stop()
	})
}

// river#995, river#917: finished jobs whose results could not be written in time were reclaimed and run again.
func TestAnOutageOfTheStoreLongerThanALeaseCostsNothingIfNoWorkerReclaims(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		w := s.startWorkerOn(s.faulty, lease5, handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error {
			runs.mark()
			return nil
		}))
		s.faulty.Plan(storetest.Fault{Verb: "Settle", Always: true})
		id := s.enqueue()
		s.waitUntil("it to run", func() bool { return runs.count() == 1 })
		time.Sleep(5 * time.Minute)
		expect(s, "state while it cannot be settled", s.job(id).State, holdfast.Processing)
		s.faulty.Plan()
		job := s.waitForState(id, holdfast.Complete)
		expect(s, "token", job.Token, 1)
		expect(s, "runs", runs.count(), 1)
		w.stop()
	})
}

func TestAClaimWhoseAnswerIsLostChargesNoCrash(t *testing.T) {
	inBubble(t, func(s *harness) {
		id := s.enqueue()
		s.faulty.Plan(storetest.Fault{Verb: "Claim", N: 1, After: true})
		w := s.startWorkerOn(s.faulty, lease5, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		job := s.waitForState(id, holdfast.Complete)
		expect(s, "crashes", job.Crashes, 0)
		expect(s, "releases", job.Releases, 1)
		w.stop()
	})
}

// Every store call fails once, before and after it took effect: no job may be lost, and none may complete twice.
func TestWhicheverCallFailsEveryJobStillCompletes(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 1; n <= 40; n++ {
			if !failsOnce(t, storetest.Fault{N: n, After: after}) {
				break
			}
		}
	}
}

func failsOnce(t *testing.T, fault storetest.Fault) (fired bool) {
	inBubble(t, func(s *harness) {
		s.faulty.Plan(fault)
		s.Logf("call %d, after %v", fault.N, fault.After)
		tries, ends := map[holdfast.ID]int{}, map[holdfast.ID]int{}
		ids := s.enqueueMany(3)
		w := s.startWorkerOn(s.faulty, engine.Config{Lease: 5 * time.Second, Slots: 1, Poll: 5 * time.Second}, handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
			tries[job.ID]++ // one slot: no concurrent runs
			if err := job.Checkpoint(ctx, tries[job.ID]); err != nil {
				return err
			}
			if tries[job.ID] == 1 {
				return errFailed
			}
			ends[job.ID]++
			return nil
		}, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 5, Backoff: failure.Fixed(time.Second)}}))
		for _, id := range ids {
			job := s.waitForState(id, holdfast.Complete)
			expect(s, "crashes", job.Crashes, 0)
			expect(s, "runs to the end", ends[id], 1)
		}
		w.stop()
		fired = s.faulty.Fired() > 0
	})
	return fired
}

// misbehavingStore is a store whose calls can hang, panic or lose their answers.
type misbehavingStore struct {
	store.Store
	settle  func(s []store.Settlement) ([]error, error)
	promote func() (int, error)
	await   func(ctx context.Context, patience time.Duration) (store.Wake, error)
	hang    func(ctx context.Context) bool // blocks until its context ends, and reports whether it did
}

func (m *misbehavingStore) hung(ctx context.Context) error {
	if m.hang != nil && m.hang(ctx) {
		return ctx.Err()
	}
	return nil
}

func (m *misbehavingStore) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	if err := m.hung(ctx); err != nil {
		return nil, err
	}
	return m.Store.Claim(ctx, c)
}

func (m *misbehavingStore) Renew(ctx context.Context, r []store.Renewal, lease time.Duration) (store.RenewResult, error) {
	if err := m.hung(ctx); err != nil {
		return store.RenewResult{}, err
	}
	return m.Store.Renew(ctx, r, lease)
}

func (m *misbehavingStore) Settle(ctx context.Context, s []store.Settlement) ([]error, error) {
	if err := m.hung(ctx); err != nil {
		return nil, err
	}
	if m.settle != nil {
		if answers, err := m.settle(s); answers != nil || err != nil {
			return answers, err
		}
	}
	return m.Store.Settle(ctx, s)
}

func (m *misbehavingStore) Promote(ctx context.Context, limit int) (int, error) {
	if m.promote != nil {
		return m.promote()
	}
	return m.Store.Promote(ctx, limit)
}

func (m *misbehavingStore) Await(ctx context.Context, queues []string, patience time.Duration) (store.Wake, error) {
	if m.await != nil {
		return m.await(ctx, patience)
	}
	return m.Store.Await(ctx, queues, patience)
}

func TestASettlementThatTheStoreRejectsBecomesAFailure(t *testing.T) {
	inBubble(t, func(s *harness) {
		w := s.startWorkerOn(&misbehavingStore{Store: s.store, settle: func(all []store.Settlement) ([]error, error) {
			if all[0].To != holdfast.Complete {
				return nil, nil
			}
			answers := make([]error, len(all))
			for i := range answers {
				answers[i] = &holdfast.Error{Err: holdfast.ErrInvalid, Message: "senseless"}
			}
			return answers, nil
		}}, lease5, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		job := s.waitForState(s.enqueue(), holdfast.Failed)
		expect(s, "code", code(job), "SYSTEM_ERROR")
		groups, _, err := s.store.ErrorGroups(context.Background(), store.ErrorFilter{})
		if err != nil || len(groups) != 1 || groups[0].Fingerprint == "" || groups[0].Fingerprint != job.LastFailure.Fingerprint {
			t.Errorf("error groups: %+v, %v; want the group of fingerprint %q", groups, err, job.LastFailure.Fingerprint)
		}
		w.stop()
	})
}

// sidekiq#2028, river#1161: a background loop that failed once never ran again.
func TestADutyThatPanicsRunsAgain(t *testing.T) {
	inBubble(t, func(s *harness) {
		panics := 0
		m := &misbehavingStore{Store: s.store}
		m.promote = func() (int, error) {
			if panics++; panics <= 3 {
				panic("a broken driver")
			}
			return s.store.Promote(context.Background(), 100)
		}
		settles := 0
		m.settle = func([]store.Settlement) ([]error, error) {
			if settles++; settles <= 3 {
				panic("a broken driver")
			}
			return nil, nil
		}
		w := s.startWorkerOn(m, lease5, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		s.waitForState(s.enqueue(func(d *holdfast.Draft) { d.Delay = time.Second }), holdfast.Complete)
		w.stop()
	})
}

// Oban #493, Graphile #541, pg-boss #850: a silent listener left jobs waiting for hours.
func TestLosingEveryWakeUpCostsAtMostOnePoll(t *testing.T) {
	inBubble(t, func(s *harness) {
		w := s.startWorkerOn(&misbehavingStore{Store: s.store, await: func(ctx context.Context, patience time.Duration) (store.Wake, error) {
			<-ctx.Done()
			return store.Wake{}, ctx.Err()
		}}, engine.Config{Poll: 3 * time.Second}, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		time.Sleep(10 * time.Second)
		job := s.waitForState(s.enqueue(), holdfast.Complete)
		if waited := job.FinishedAt.Sub(job.CreatedAt); waited > 3*time.Second {
			t.Errorf("it waited %v, want at most a poll", waited)
		}
		w.stop()
	})
}

func TestAWakeUpStartsAJobAtOnce(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.startWorker(engine.Config{Poll: time.Hour}, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		time.Sleep(time.Minute)
		job := s.waitForState(s.enqueue(), holdfast.Complete)
		if waited := job.FinishedAt.Sub(job.CreatedAt); waited > 100*time.Millisecond {
			t.Errorf("it waited %v, want next to nothing", waited)
		}
	})
}
