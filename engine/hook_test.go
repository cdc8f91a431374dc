package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/sqlite"
)

func containsText(err error, text string) bool {
	return err != nil && strings.Contains(err.Error(), text)
}

func TestMiddlewareWrapsEveryHandlerTheFirstOutermost(t *testing.T) {
	inBubble(t, func(s *harness) {
		var order []string
		layer := func(name string) func(engine.Handler) engine.Handler {
			return func(next engine.Handler) engine.Handler {
				return func(ctx context.Context, job *engine.Raw) error {
					order = append(order, name+" "+job.Kind)
					return next(ctx, job)
				}
			}
		}
		s.startWorker(engine.Config{Middleware: []func(engine.Handler) engine.Handler{layer("outer"), layer("inner")}},
			handleNotes(func(context.Context, *engine.Job[Note]) error { order = append(order, "work"); return nil }))
		s.waitForState(s.enqueue(), holdfast.Complete)
		expect(s, "order", strings.Join(order, ", "), "outer note, inner note, work")
	})
}

func TestEveryAttemptIsOneLogLineThatNeverHoldsTheArguments(t *testing.T) {
	inBubble(t, func(s *harness) {
		var out bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		var runs starts
		w := s.startWorker(engine.Config{Log: log}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			if runs.mark() == 1 {
				return errFailed
			}
			return nil
		}, engine.KindOptions{Policy: failure.Policy{Backoff: failure.Fixed(time.Second)}}))
		receipt, err := holdfast.Enqueue(context.Background(), s.store, Note{"a very private thing"})
		if err != nil {
			t.Fatal(err)
		}
		s.waitForState(receipt.ID, holdfast.Complete)
		w.stop()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 {
			t.Fatalf("%d lines, want one an attempt:\n%s", len(lines), out.String())
		}
		for i, want := range []map[string]any{
			{"event": "retry", "attempt": 1.0, "error_code": "UNKNOWN", "status": "queued"},
			{"event": "complete", "attempt": 2.0, "status": "complete"},
		} {
			var line map[string]any
			if err := json.Unmarshal([]byte(lines[i]), &line); err != nil {
				t.Fatal(err)
			}
			for key, value := range want {
				expect(s, key, line[key], value)
			}
			expect(s, "job_id", line["job_id"], any(receipt.ID.String()))
			if _, ok := line["duration_ms"].(float64); !ok {
				t.Errorf("no duration_ms in %s", lines[i])
			}
		}
		if strings.Contains(out.String(), "private") {
			t.Errorf("the arguments are in the log:\n%s", out.String())
		}
	})
}

// A warnedStore reports that its database may lose acknowledged writes.
type warnedStore struct{ store.Store }

func (warnedStore) Warnings(context.Context) []string {
	return []string{"fsync is off: turn it on"}
}

func TestAnEngineLogsWhatMayLoseAcknowledgedJobs(t *testing.T) {
	near, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "jobs.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	var log bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	e, err := engine.New(warnedStore{near}, engine.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := e.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "fsync is off: turn it on") {
		t.Errorf("logged: %s", log.String())
	}
}

func TestNoMoreHandlersRunAtOnceThanThereAreSlots(t *testing.T) {
	inBubble(t, func(s *harness) {
		var at, most atomic.Int64
		s.startWorker(engine.Config{Slots: 7}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			most.Store(max(most.Load(), at.Add(1)))
			time.Sleep(time.Millisecond)
			at.Add(-1)
			return nil
		}))
		s.enqueueMany(200)
		s.waitUntil("all to complete", func() bool { return s.countJobs(holdfast.Complete) == 200 })
		expect(s, "handlers at once", most.Load(), 7)
	})
}

func TestAWorkerOfSlowJobsHoldsNoneBackFromOthers(t *testing.T) {
	inBubble(t, func(s *harness) {
		cfg := engine.Config{Slots: 2}
		slow := handleNotes(func(context.Context, *engine.Job[Note]) error { time.Sleep(10 * time.Second); return nil })
		s.startWorker(cfg, slow)
		s.enqueueMany(8)
		s.waitUntil("both slots to be busy", func() bool { return s.countJobs(holdfast.Processing) == 2 })
		began := time.Now()
		s.startWorker(cfg, slow)
		s.waitUntil("all to complete", func() bool { return s.countJobs(holdfast.Complete) == 8 })
		if took := time.Since(began); took > 22*time.Second {
			t.Errorf("two workers took %v for two rounds each of 10s", took)
		}
	})
}

func TestAJobHeldAheadBehindSlowOnesIsReleasedForOtherWorkers(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs starts
		long := make(chan struct{})
		slow := &misbehavingStore{Store: s.store, hang: func(context.Context) bool { time.Sleep(50 * time.Millisecond); return false }}
		s.enqueueMany(400)
		w := s.startWorkerOn(slow, engine.Config{Slots: 2}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			if runs.mark() > 200 {
				<-long
			}
			time.Sleep(time.Millisecond)
			return nil
		}))
		s.waitUntil("some to be held ahead", func() bool { return runs.count() == 202 && s.countJobs(holdfast.Processing) > 10 })
		s.waitUntil("only what runs to be held", func() bool { return s.countJobs(holdfast.Processing) == 2 })
		s.startWorker(engine.Config{}, handleNotes(func(context.Context, *engine.Job[Note]) error { return nil }))
		s.waitUntil("the others to complete", func() bool { return s.countJobs(holdfast.Complete) == 398 })
		close(long)
		w.stop()
	})
}

func TestARuleThatPanicsDoesNotStopOtherSettlements(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.startWorker(engine.Config{}, handleNotes(func(context.Context, *engine.Job[Note]) error { return errFailed }, engine.KindOptions{
			Classify: func(error) (failure.Class, bool) { panic("a bad rule") },
			Policy:   failure.Policy{Backoff: panickingBackoff{}},
		}))
		s.waitForState(s.enqueue(func(d *holdfast.Draft) { d.MaxAttempts = 2 }), holdfast.Failed)
	})
}

type panickingBackoff struct{}

func (panickingBackoff) Delay(int, float64) time.Duration { panic("a bad backoff") }
