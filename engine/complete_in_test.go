package engine_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// ledger is a table of the application in the store's file.
type ledger struct {
	*harness
	db *sql.DB
}

// withLedger runs a test with an application's own table in the store's file.
func withLedger(t *testing.T, test func(s *ledger)) {
	t.Helper()
	inBubble(t, func(s *harness) {
		db, err := sql.Open("sqlite", sqlite.DSN(s.path))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec("CREATE TABLE ledger (job TEXT)"); err != nil {
			t.Fatal(err)
		}
		test(&ledger{s, db})
		for _, w := range s.workers {
			w.stop()
		}
	})
}

// begin starts a transaction in which the job has its row.
func (l *ledger) begin(job holdfast.ID) (*sql.Tx, error) {
	tx, err := l.db.Begin()
	if err != nil {
		return nil, err
	}
	_, err = tx.Exec("INSERT INTO ledger (job) VALUES (?)", job.String())
	return tx, err
}

// writeAndComplete writes a row and completes the job in one transaction.
func (l *ledger) writeAndComplete(ctx context.Context, job *engine.Job[Note], commit bool) error {
	return l.writeAnd(ctx, job.ID, job.CompleteIn, commit)
}

func (l *ledger) writeAnd(ctx context.Context, id holdfast.ID, complete func(context.Context, any) error, commit bool) error {
	tx, err := l.begin(id)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := complete(ctx, tx); err != nil || !commit {
		return err
	}
	return tx.Commit()
}

func (l *ledger) expectRows(want int) {
	l.Helper()
	var got int
	if err := l.db.QueryRow("SELECT count(*) FROM ledger").Scan(&got); err != nil || got != want {
		l.Errorf("the application has %d rows (%v), want %d", got, err, want)
	}
}

// late counts the attempts that are kept as evidence.
func (l *ledger) late(id holdfast.ID) (n int) {
	for _, a := range l.attempts(id) {
		if a.Late {
			n++
		}
	}
	return n
}

func TestAJobAndItsRowAreStoredTogetherAndTheEngineOnlyConfirms(t *testing.T) {
	for name, ways := range map[string][]func(engine.Handler) engine.Handler{"directly": nil, "through middleware": {func(next engine.Handler) engine.Handler { return next }}} {
		t.Run(name, func(t *testing.T) {
			withLedger(t, func(s *ledger) {
				var ends atomic.Int32
				s.startWorkerOn(s.faulty, engine.Config{Middleware: ways, Version: "v1", OnAttemptEnd: func(end engine.AttemptEnd) {
					if ends.Add(1); end.To != holdfast.Complete || end.Failure != nil {
						t.Errorf("the attempt ended as %+v", end)
					}
				}}, handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
					job.Result(map[string]int{"rows": 1})
					if err := s.writeAndComplete(ctx, job, true); err != nil {
						return err
					}
					expect(s.harness, "state before the handler returns", s.job(job.ID).State, holdfast.Complete)
					time.Sleep(5 * time.Minute) // longer than a lease: the store answers that it is lost
					return context.Cause(ctx)
				}))
				id := s.enqueue()
				s.waitUntil("the attempt has ended", func() bool { return ends.Load() > 0 })
				expect(s.harness, "result", string(s.job(id).Result), `{"rows":1}`)
				expect(s.harness, "complete", s.trend("default"), store.Trend{Queue: "default", Complete: 1})
				expect(s.harness, "history", len(s.attempts(id)), 0)
				expect(s.harness, "ends", ends.Load(), 1)
				s.expectRows(1)
			})
		})
	}
}

func TestARawJobIsCompletedInATransaction(t *testing.T) {
	withLedger(t, func(s *ledger) {
		s.startWorker(engine.Config{}, func(e *engine.Engine) {
			engine.HandleRaw(e, "note", func(ctx context.Context, job *engine.Raw) error {
				if err := job.CompleteIn(ctx, "no transaction"); !errors.Is(err, holdfast.ErrInvalid) {
					t.Errorf("a transaction of another type: %v", err)
				}
				return s.writeAnd(ctx, job.ID, job.CompleteIn, true)
			})
		})
		s.waitForState(s.enqueue(), holdfast.Complete)
		s.expectRows(1)
	})
}

func TestACompletionInATransactionEnqueuesJobsOnceAndOnlyIfItCommits(t *testing.T) {
	withLedger(t, func(s *ledger) {
		var attempts, ends, next atomic.Int32
		s.startWorker(engine.Config{OnAttemptEnd: func(end engine.AttemptEnd) {
			if end.Lease.Kind == "note" {
				ends.Add(1)
			}
			if end.Lease.Kind == "note" && attempts.Load() > 1 && (end.To != holdfast.Complete || end.Failure != nil) {
				t.Errorf("the attempt that committed ended as %+v", end)
			}
		}}, func(e *engine.Engine) {
			engine.Handle(e, func(ctx context.Context, job *engine.Job[Note]) error {
				if err := job.Enqueue(holdfast.Draft{Kind: "next"}); err != nil {
					return err
				}
				return s.writeAndComplete(ctx, job, attempts.Add(1) > 1)
			})
			engine.HandleRaw(e, "next", func(context.Context, *engine.Raw) error { next.Add(1); return nil })
		})
		id := s.enqueue()
		s.waitUntil("the first attempt has ended", func() bool { return ends.Load() == 1 })
		expect(s.harness, "code", code(s.job(id)), "HANDLER_UNCOMMITTED")
		expect(s.harness, "jobs that an attempt enqueued which was not committed", next.Load(), 0)
		s.waitForState(id, holdfast.Complete)
		s.waitUntil("the job that it enqueued has run", func() bool { return next.Load() > 0 })
		s.waitUntil("the second attempt has ended", func() bool { return ends.Load() == 2 })
		time.Sleep(time.Minute)
		expect(s.harness, "jobs that it enqueued", next.Load(), 1)
		expect(s.harness, "late", s.late(id), 0)
		s.expectRows(1)
	})
}

func TestAJobWhoseTransactionWasNotCommittedHasFailed(t *testing.T) {
	withLedger(t, func(s *ledger) {
		var attempts atomic.Int32
		s.startWorker(engine.Config{}, handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
			return s.writeAndComplete(ctx, job, attempts.Add(1) > 1)
		}))
		id := s.enqueue()
		s.waitUntil("the first attempt has ended", func() bool { return s.job(id).Failures == 1 })
		expect(s.harness, "code", code(s.job(id)), "HANDLER_UNCOMMITTED")
		s.expectRows(0)
		s.waitForState(id, holdfast.Complete)
		s.expectRows(1)
		expect(s.harness, "counts", s.trend("default"), store.Trend{Queue: "default", Complete: 1, Retried: 1})
		expect(s.harness, "late", s.late(id), 0)
	})
}

func TestAJobThatWasCommittedStaysCompleteWhateverItsHandlerReturns(t *testing.T) {
	for name, after := range map[string]func() error{
		"an error": func() error { return errFailed },
		"a panic":  func() error { panic("after the commit") },
	} {
		t.Run(name, func(t *testing.T) {
			withLedger(t, func(s *ledger) {
				var log strings.Builder
				var ends atomic.Int32
				cfg := engine.Config{Log: slog.New(slog.NewTextHandler(&log, nil)), OnAttemptEnd: func(end engine.AttemptEnd) {
					ends.Add(1)
					expect(s.harness, "end", end.To, holdfast.Complete)
				}}
				w := s.startWorker(cfg, handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
					if err := s.writeAndComplete(ctx, job, true); err != nil {
						return err
					}
					return after()
				}))
				id := s.enqueue()
				s.waitUntil("the attempt has ended", func() bool { return ends.Load() == 1 })
				w.stop()
				expect(s.harness, "state", s.job(id).State, holdfast.Complete)
				expect(s.harness, "late evidence", s.late(id), 1)
				expect(s.harness, "counts", s.trend("default"), store.Trend{Queue: "default", Complete: 1})
				s.expectRows(1)
				if !strings.Contains(log.String(), "event=error_after_completion") {
					t.Errorf("the error was not logged:\n%s", log.String())
				}
			})
		})
	}
}

func TestAnErrorAfterARollbackIsDecidedLikeAnyOther(t *testing.T) {
	withLedger(t, func(s *ledger) {
		var attempts atomic.Int32
		s.startWorker(engine.Config{}, handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
			if attempts.Add(1) == 1 {
				return errors.Join(s.writeAndComplete(ctx, job, false), errFailed)
			}
			if err := s.writeAndComplete(ctx, job, false); err != nil { // a second transaction, after the first was rolled back
				return err
			}
			return s.writeAndComplete(ctx, job, true)
		}))
		id := s.enqueue()
		s.waitUntil("the first attempt has ended", func() bool { return s.job(id).Failures == 1 })
		expect(s.harness, "code", code(s.job(id)), "UNKNOWN")
		s.waitForState(id, holdfast.Complete)
		s.expectRows(1)
		expect(s.harness, "late", s.late(id), 0)
	})
}

func TestAHandlerThatLostItsLeaseCannotCompleteItsJob(t *testing.T) {
	withLedger(t, func(s *ledger) {
		var attempts atomic.Int32
		refused := make(chan error, 1)
		work := handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
			if attempts.Add(1) > 1 {
				return s.writeAndComplete(ctx, job, true)
			}
			time.Sleep(5 * time.Minute) // the other worker reclaims the job
			err := s.writeAndComplete(context.WithoutCancel(ctx), job, true)
			refused <- err
			return err
		})
		s.startWorkerOn(s.faulty, engine.Config{AbandonAfter: time.Hour}, work)
		id := s.enqueue()
		s.waitUntil("the first attempt has begun", func() bool { return attempts.Load() == 1 })
		s.faulty.Plan(storetest.Fault{Verb: "Renew", Always: true}, storetest.Fault{Verb: "Claim", Always: true}, storetest.Fault{Verb: "Reclaim", Always: true})
		s.startWorker(engine.Config{}, work)
		job := s.waitForState(id, holdfast.Complete)
		expect(s.harness, "crashes", job.Crashes, 1)
		if err := <-refused; !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("completing without a lease: %v", err)
		}
		s.expectRows(1)
	})
}

func TestProgressIsRefusedAfterTheCompletion(t *testing.T) {
	withLedger(t, func(s *ledger) {
		s.startWorker(engine.Config{}, handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
			tx, err := s.begin(job.ID)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if err := job.CompleteIn(ctx, tx); err != nil {
				return err
			}
			for _, err := range []error{job.Progress(ctx, 50, "half"), job.Checkpoint(ctx, 1)} { // the store would wait for the transaction
				if !errors.Is(err, holdfast.ErrInvalid) {
					t.Errorf("a note while the transaction is open: %v", err)
				}
			}
			return tx.Commit()
		}))
		s.waitForState(s.enqueue(), holdfast.Complete)
	})
}

func TestAJobIsCancelledByItsCompletionIfAPersonAskedForIt(t *testing.T) {
	withLedger(t, func(s *ledger) {
		s.startWorker(engine.Config{}, handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
			if _, err := s.store.Cancel(ctx, store.Intervention{Job: job.ID, Actor: "ada"}); err != nil {
				t.Error(err)
			}
			return s.writeAndComplete(context.WithoutCancel(ctx), job, true)
		}))
		id := s.enqueue()
		s.waitForState(id, holdfast.Cancelled)
		s.expectRows(1)
	})
}

func TestAResultThatCannotBeStoredIsNotCompletedInATransaction(t *testing.T) {
	withLedger(t, func(s *ledger) {
		s.startWorker(engine.Config{}, handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
			job.Result(func() {})
			return s.writeAndComplete(ctx, job, true)
		}))
		id := s.enqueue()
		s.waitForState(id, holdfast.Failed)
		expect(s.harness, "code", code(s.job(id)), "HANDLER_RESULT")
		s.expectRows(0)
	})
}

func TestAJobThatATestMadeIsCompletedNowhere(t *testing.T) {
	job := engine.Job[json.RawMessage]{}
	if err := job.CompleteIn(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestAHandlerOfChunksCompletesItsJobsInOneTransaction(t *testing.T) {
	withLedger(t, func(s *ledger) {
		c := &chunks{}
		calls := 0
		c.work = func(ctx context.Context, jobs []*engine.Job[Numbered]) []error {
			calls++
			tx, err := s.db.Begin()
			if err != nil {
				return slices.Repeat([]error{err}, len(jobs))
			}
			defer tx.Rollback()
			errs := make([]error, len(jobs))
			for i, job := range jobs {
				if calls == 1 && job.Args.N == 2 {
					errs[i] = errFailed
					continue
				}
				if _, err := tx.Exec("INSERT INTO ledger (job) VALUES (?)", job.ID.String()); err != nil {
					t.Error(err)
				}
				job.Result(job.Args.N)
				if err := job.CompleteIn(ctx, tx); err != nil {
					t.Error(err)
				}
				if err := job.Progress(ctx, 1, "too late"); !errors.Is(err, holdfast.ErrInvalid) {
					t.Errorf("progress after CompleteIn: %v", err)
				}
			}
			if calls == 2 {
				return errs // the transaction is rolled back
			}
			if err := tx.Commit(); err != nil {
				t.Error(err)
			}
			return errs
		}
		s.startWorker(engine.Config{Slots: 3}, c.handle(engine.ChunkOptions{}))
		ids := s.enqueueNumbered(3)
		for i, id := range ids {
			job := s.waitForState(id, holdfast.Complete)
			expect(s.harness, "result", string(job.Result), strconv.Itoa(i))
			expect(s.harness, "completed attempts kept as late", s.late(id), 0)
		}
		s.expectRows(3)
		expect(s.harness, "failures of the job that returned an error, and whose transaction was rolled back then", s.job(ids[2]).Failures, 2)
		expect(s.harness, "failures of another job", s.job(ids[0]).Failures, 0)
	})
}
