package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// Each test here covers a defect that another job engine had.

// River #682, Oban #1141: a job that ran longer than the rescue time was started again while it still ran.
func TestAJobOfTwentyLeasesStartsOnce(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		work := handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error {
			runs.mark()
			time.Sleep(100 * time.Second)
			return ctx.Err()
		})
		s.startWorker(lease5, work)
		s.startWorker(lease5, work)
		job := s.waitForState(s.enqueue(), holdfast.Complete)
		expect(s, "runs", runs.count(), 1)
		expect(s, "token", job.Token, 1)
	})
}

// River #1380, asynq #1140: one row that could not be decoded stopped all others, for days.
func TestARowCorruptedByHandFailsAloneWhileOthersRun(t *testing.T) {
	for _, damage := range []string{
		"UPDATE holdfast_job SET args = '{' WHERE id = ?1",
		"UPDATE holdfast_job SET args = '\"' || hex(zeroblob(5000000)) || '\"' WHERE id = ?1",
		"UPDATE holdfast_job SET kind = '' WHERE id = ?1",
	} {
		inBubble(t, func(s *harness) {
			s.broken = true
			ids := s.enqueueMany(9)
			s.corrupt(damage, ids[4])
			s.startWorker(engine.Config{Policy: failure.Policy{MaxAttempts: 1}}, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
			s.waitUntil("the others to complete", func() bool { return s.countJobs(holdfast.Complete) == 8 })
			s.waitUntil("the bad one to fail", func() bool { return s.countJobs(holdfast.Failed) == 1 })
		})
	}
}

// A kind without a handler is not an error: another worker may have one. The job is released each time at no cost, and the others run.
func TestAJobWhoseKindIsChangedByHandWaitsWhileOthersRun(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.broken = true
		ids := s.enqueueMany(9)
		s.corrupt("UPDATE holdfast_job SET kind = 'elsewhere' WHERE id = ?1", ids[4])
		s.startWorker(engine.Config{Policy: failure.Policy{MaxAttempts: 1}}, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		s.waitUntil("the others to complete", func() bool { return s.countJobs(holdfast.Complete) == 8 })
		s.waitUntil("the one of another kind to be released twice", func() bool { return s.job(ids[4]).Releases >= 2 })
		expect(s, "state", s.job(ids[4]).State, holdfast.Queued)
		expect(s, "failures charged", s.job(ids[4]).Failures, 0)
	})
}

func (s *harness) corrupt(sql string, id holdfast.ID) {
	s.Helper()
	conn, err := zombiezen.OpenConn(s.path, zombiezen.OpenReadWrite)
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.Execute(conn, sql, &sqlitex.ExecOptions{Args: []any{id[:]}}); err != nil {
		s.Fatal(err)
	}
}

// River #1251, #1255: loops hung for hours on a dead connection.
func TestACallThatNeverAnswersHoldsItsDutyUpNoLongerThanItsDeadline(t *testing.T) {
	inBubble(t, func(s *harness) {
		m := &misbehavingStore{Store: s.store}
		var hung atomic.Int64
		m.hang = func(ctx context.Context) bool {
			if hung.Add(1) > 5 {
				return false
			}
			<-ctx.Done()
			return true
		}
		w := s.startWorkerOn(m, lease5, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		began := time.Now()
		s.waitForState(s.enqueue(), holdfast.Complete)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %v to get over calls that hang", took)
		}
		w.stop()
	})
}

// River #1397, #1245: a request to cancel that came at the wrong moment, or without a wake-up, was lost.
func TestARequestToCancelIsFoundWithoutAWakeUp(t *testing.T) {
	inBubble(t, func(s *harness) {
		w := s.startWorkerOn(&misbehavingStore{Store: s.store, await: func(ctx context.Context, patience time.Duration) (store.Wake, error) {
			<-ctx.Done()
			return store.Wake{}, ctx.Err()
		}}, lease5, handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error { <-ctx.Done(); return ctx.Err() }))
		id := s.enqueue()
		s.waitForState(id, holdfast.Processing)
		asked := time.Now()
		if _, err := s.store.Cancel(context.Background(), store.Intervention{Job: id, Actor: "ada"}); err != nil {
			t.Fatal(err)
		}
		s.waitForState(id, holdfast.Cancelled)
		if took := time.Since(asked); took > 2*time.Second {
			t.Errorf("it was found after %v, want at the next renewal", took)
		}
		w.stop()
	})
}

// asynq #1015, Faktory #409, Graphile #254: a lost worker used up the last attempt, and the job never ran to an end.
func TestALostWorkerTakesNoAttemptFromAJobThatHasOne(t *testing.T) {
	inBubble(t, func(s *harness) {
		w := s.startWorkerOn(s.faulty, lease5, handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error { <-ctx.Done(); return nil }))
		id := s.enqueue(func(d *holdfast.Draft) { d.MaxAttempts = 1 })
		s.waitForState(id, holdfast.Processing)
		w.crash(s.faulty)
		s.startWorker(lease5, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		job := s.waitForState(id, holdfast.Complete)
		expect(s, "failures", job.Failures, 0)
		expect(s, "crashes", job.Crashes, 1)
		<-w.ended
	})
}

// good_job#296: while the database was down the log was filled at full speed. sidekiq#3684: the loops ended instead.
func TestAStoreThatIsDownForAMinuteMakesOneLogLineASecond(t *testing.T) {
	inBubble(t, func(s *harness) {
		var out bytes.Buffer
		s.faulty.Plan(storetest.Fault{Always: true}, storetest.Fault{Verb: "Await", Always: true})
		w := s.startWorkerOn(s.faulty, engine.Config{Lease: 5 * time.Second, Log: slog.New(slog.NewTextHandler(&out, nil))},
			handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		id := s.enqueue(func(d *holdfast.Draft) { d.Delay = time.Second })
		time.Sleep(time.Minute)
		calls := s.faulty.Calls("") + s.faulty.Calls("Await")
		s.faulty.Plan()
		s.waitForState(id, holdfast.Complete)
		w.stop()
		if lines := strings.Count(out.String(), "\n"); lines > 61 {
			t.Errorf("%d lines in a minute", lines)
		}
		if calls > 600 {
			t.Errorf("%d calls in a minute to a store that is down", calls)
		}
	})
}

// Graphile #313: the same hanging jobs were always claimed first, and no other job ran.
func TestJobsThatHangDoNotStarveTheOthers(t *testing.T) {
	inBubble(t, func(s *harness) {
		wall := make(chan struct{})
		defer close(wall)
		s.startWorker(engine.Config{Slots: 3, AbandonAfter: time.Second}, handleNotes(func(_ context.Context, job *engine.Job[Note]) error {
			if job.Priority < 0 {
				<-wall
			}
			return nil
		}, engine.KindOptions{Timeout: 5 * time.Second, Policy: failure.Policy{MaxAttempts: 3, Backoff: failure.Fixed(time.Second)}}))
		for range 6 {
			s.enqueue(func(d *holdfast.Draft) { d.Priority = -1 })
		}
		s.enqueueMany(50)
		s.waitUntil("the good ones to complete", func() bool { return s.countJobs(holdfast.Complete) == 50 })
		s.waitUntil("the hanging ones to fail", func() bool { return s.countJobs(holdfast.Failed) == 6 })
	})
}
