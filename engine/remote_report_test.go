package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// far is a queue from which no engine claims: its jobs are for remote workers.
const far = "far"

func onRemoteQueue(d *holdfast.Draft) { d.Queue = far }

// claimRemote claims jobs as a remote worker does.
func (s *harness) claimRemote(n int) []store.Lease {
	s.Helper()
	var leases []store.Lease
	s.waitUntil("jobs to claim", func() bool {
		more, err := s.store.Claim(context.Background(), store.Claim{Worker: "elsewhere", Queues: []string{far}, Limit: n - len(leases), Start: n, Lease: time.Minute})
		if err != nil {
			s.Fatal(err)
		}
		leases = append(leases, more...)
		return len(leases) == n
	})
	return leases
}

func returned(l store.Lease, err error) engine.RemoteReport {
	return engine.RemoteReport{Lease: l, Outcome: failure.Outcome{Event: failure.Returned, Err: err}}
}

// judge reports outcomes and expects no error besides those of single reports.
func (s *harness) judge(w *worker, reports ...engine.RemoteReport) []error {
	s.Helper()
	synctest.Wait() // a worker that was just started is running now
	answers, err := w.SettleReports(context.Background(), reports)
	if err != nil || len(answers) != len(reports) {
		s.Fatalf("SettleReports of %d reports: %v, %v", len(reports), answers, err)
	}
	synctest.Wait()
	return answers
}

// ends collects the calls of Config.OnAttemptEnd.
type ends struct {
	mu  sync.Mutex
	all []engine.AttemptEnd
}

func (e *ends) told(end engine.AttemptEnd) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, end)
}

func (e *ends) list() []engine.AttemptEnd {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]engine.AttemptEnd(nil), e.all...)
}

func TestAReportedFailureIsRetriedAsThePolicyOfItsKindSays(t *testing.T) {
	inBubble(t, func(s *harness) {
		var told ends
		w := s.startWorker(engine.Config{OnAttemptEnd: told.told, Policies: set(s, "kinds:\n  note:\n    max_attempts: 2\n    backoff: {shape: fixed, delay: 30s}\n")})
		id := s.enqueue(onRemoteQueue)
		lease := s.claimRemote(1)[0]
		time.Sleep(4 * time.Second)
		expect(s, "answer", s.judge(w, returned(lease, errFailed))[0], nil)
		job := s.job(id)
		expect(s, "state", job.State, holdfast.Queued)
		expect(s, "failures", job.Failures, 1)
		expect(s, "next attempt in", job.DueAt.Sub(job.AsOf).Round(time.Second), 30*time.Second)
		expect(s, "answer", s.judge(w, returned(s.claimRemote(1)[0], errFailed))[0], nil)
		expect(s, "state", s.job(id).State, holdfast.Failed)
		expect(s, "code", code(s.job(id)), "UNKNOWN")
		all := told.list()
		if len(all) != 2 {
			t.Fatalf("%d calls of Ended, want 2", len(all))
		}
		expect(s, "first end", all[0].To, holdfast.Queued)
		expect(s, "took", all[0].Took.Round(time.Second), 4*time.Second)
		expect(s, "delay", all[0].Delay, 30*time.Second)
		expect(s, "left after the first", all[0].Left, 1)
		expect(s, "second end", all[1].To, holdfast.Failed)
		expect(s, "its number", all[1].Attempt, 2)
		expect(s, "the trend of its queue", s.trend(far), store.Trend{Queue: far, Failed: 1, Retried: 1})
	})
}

func TestAReportThatSaysNeverRetryIsADeadLetterAndOneThatCompletedKeepsItsResult(t *testing.T) {
	inBubble(t, func(s *harness) {
		failed := make(chan string, 10)
		w := s.startWorker(engine.Config{OnJobFailed: func(_ context.Context, _ holdfast.Job, f holdfast.Failure) { failed <- f.Code }})
		bad, good := s.enqueue(onRemoteQueue), s.enqueue(onRemoteQueue)
		leases := s.claimRemote(2)
		answers := s.judge(w, returned(leases[0], failure.NeverRetry(failure.WithCode(errFailed, "NOT_FOUND"))),
			engine.RemoteReport{Lease: leases[1], Outcome: failure.Outcome{Event: failure.Returned, Result: json.RawMessage(`{"ok":true}`)}})
		expect(s, "answers", errors.Join(answers...), nil)
		expect(s, "the bad one", s.job(bad).State, holdfast.Failed)
		expect(s, "code passed to the hook", <-failed, "NOT_FOUND")
		expect(s, "the good one", s.job(good).State, holdfast.Complete)
		expect(s, "its result", string(s.job(good).Result), `{"ok":true}`)
	})
}

func TestFiveBadReportsOfADependencyOpenItsBreaker(t *testing.T) {
	inBubble(t, func(s *harness) {
		cfg := engine.Config{Dependencies: map[string]engine.Dependency{"gateway": {Breaker: breaker.Config{MinCalls: 5, OpenFor: 20 * time.Second}}}}
		var before breaker.State // the state of the breaker when an attempt is settled
		w := s.startWorkerOn(&misbehavingStore{Store: s.store, settle: func([]store.Settlement) ([]error, error) {
			before = s.readBreaker("gateway").State
			return nil, nil
		}}, cfg)
		calls := func(d *holdfast.Draft) { d.Queue, d.Dependency = far, "gateway" }
		s.enqueueAll(7, calls)
		for _, lease := range s.claimRemote(5) {
			s.judge(w, returned(lease, errGateway))
		}
		s.waitForBreaker("gateway", breaker.Open)
		leases, err := s.store.Claim(context.Background(), store.Claim{Worker: "elsewhere", Queues: []string{far}, Limit: 2, Start: 2, Lease: time.Minute})
		if err != nil || len(leases) != 0 {
			t.Fatalf("claimed behind an open breaker: %d, %v", len(leases), err)
		}
		s.waitForBreaker("gateway", breaker.HalfOpen)
		s.judge(w, returned(s.claimRemote(1)[0], errGateway))
		expect(s, "before the place of a probe that failed is free", before, breaker.Open)
	})
}

func TestAStaleReportChangesNothing(t *testing.T) {
	inBubble(t, func(s *harness) {
		var told ends
		w := s.startWorker(engine.Config{OnAttemptEnd: told.told, Dependencies: map[string]engine.Dependency{"gateway": {Breaker: breaker.Config{MinCalls: 1}}}})
		id := s.enqueue(func(d *holdfast.Draft) { d.Queue, d.Dependency = far, "gateway" })
		lease := s.claimRemote(1)[0]
		s.waitUntil("the job to be reclaimed", func() bool { return s.job(id).State == holdfast.Queued })
		before := len(told.list())
		answer := s.judge(w, returned(lease, errGateway))[0]
		if !errors.Is(answer, holdfast.ErrLeaseLost) {
			t.Errorf("a stale report: %v, want ErrLeaseLost", answer)
		}
		expect(s, "calls of Ended", len(told.list()), before)
		expect(s, "of the lost worker", told.list()[0].Charge, store.ChargeCrash)
		time.Sleep(5 * time.Second)
		expect(s, "breaker", s.readBreaker("gateway").State, "")
		expect(s, "failures", s.job(id).Failures, 0)
	})
}

func TestAReportedSnoozeIsFree(t *testing.T) {
	inBubble(t, func(s *harness) {
		w := s.startWorker(engine.Config{})
		id := s.enqueue(onRemoteQueue)
		s.judge(w, returned(s.claimRemote(1)[0], failure.Snooze(time.Minute)))
		job := s.job(id)
		expect(s, "state", job.State, holdfast.Queued)
		expect(s, "failures", job.Failures, 0)
		expect(s, "releases", job.Releases, 1)
		expect(s, "next in", job.DueAt.Sub(job.AsOf).Round(time.Second), time.Minute)
	})
}

func TestAReportWhoseAnswerWasLostIsRepeatedAndCountsOnce(t *testing.T) {
	for _, after := range []bool{false, true} {
		inBubble(t, func(s *harness) {
			var told ends
			w := s.startWorkerOn(s.faulty, engine.Config{OnAttemptEnd: told.told, Dependencies: map[string]engine.Dependency{"gateway": {}}})
			id := s.enqueue(func(d *holdfast.Draft) { d.Queue, d.Dependency = far, "gateway" })
			report := returned(s.claimRemote(1)[0], errGateway)
			s.judge(w) // waits until the engine accepts reports
			s.faulty.Plan(storetest.Fault{Verb: "Settle", After: after})
			if _, err := w.SettleReports(context.Background(), []engine.RemoteReport{report}); !errors.Is(err, holdfast.ErrUnavailable) {
				t.Fatalf("the first time: %v", err)
			}
			s.faulty.Plan()
			for range 3 {
				expect(s, "again", s.judge(w, report)[0], nil)
			}
			report.Lease.Failures = 9 // as in a lease with the counters that the job has now
			expect(s, "once more", s.judge(w, report)[0], nil)
			expect(s, "failures", s.job(id).Failures, 1)
			expect(s, "attempts on record", len(s.attempts(id)), 1)
			expect(s, "calls of Ended", len(told.list()), 1)
			s.waitUntil("the breaker to be updated", func() bool { return s.readBreaker("gateway").Code != "" })
			expect(s, "calls counted", s.readBreaker("gateway").Recent, "x")
			report.Outcome.Err = nil
			if answer := s.judge(w, report)[0]; !errors.Is(answer, holdfast.ErrLeaseLost) {
				t.Errorf("saying something else: %v, want ErrLeaseLost", answer)
			}
		})
	}
}

// slowRecordsStore is a store that answers slowly when the policy is read.
type slowRecordsStore struct{ store.Store }

func (u slowRecordsStore) Records(ctx context.Context, namespace string) ([]store.Record, error) {
	if namespace == "policy" {
		time.Sleep(3 * time.Second)
	}
	return u.Store.Records(ctx, namespace)
}

func TestReportsAreDecidedByTheAppliedPolicyAlsoRightAfterTheStart(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.applyPolicy("kinds:\n  note:\n    max_attempts: 1\n", 0)
		id := s.enqueue(onRemoteQueue)
		lease := s.claimRemote(1)[0]
		w := s.startWorkerOn(slowRecordsStore{s.store}, engine.Config{})
		expect(s, "answer", s.judge(w, returned(lease, errFailed))[0], nil)
		expect(s, "state", s.job(id).State, holdfast.Failed)
	})
}

func TestAnEngineThatIsNotRunningAcceptsNoReports(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.enqueue(onRemoteQueue)
		report := returned(s.claimRemote(1)[0], nil)
		idle, err := engine.New(s.store, engine.Config{Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		w := s.startWorker(engine.Config{})
		w.stop()
		for _, e := range []*engine.Engine{idle, w.Engine} {
			if _, err := e.SettleReports(context.Background(), []engine.RemoteReport{report}); !errors.Is(err, holdfast.ErrUnavailable) {
				t.Errorf("SettleReports: %v, want ErrUnavailable", err)
			}
		}
	})
}

func TestTheEndedHookIsCalledOnceForEveryAttemptAndAPanicInItIsIgnored(t *testing.T) {
	inBubble(t, func(s *harness) {
		var told ends
		var runs starts
		cfg := engine.Config{OnAttemptEnd: func(end engine.AttemptEnd) { told.told(end); panic("a hook that panics") }}
		s.startWorker(cfg, handleNotes(func(context.Context, *engine.Job[Note]) error {
			if runs.mark() == 1 {
				return errFailed
			}
			return nil
		}, engine.KindOptions{Policy: failure.Policy{Backoff: failure.Fixed(time.Second)}}))
		s.waitForState(s.enqueue(), holdfast.Complete)
		all := told.list()
		if len(all) != 2 || all[0].To != holdfast.Queued || all[1].To != holdfast.Complete || all[1].Attempt != 2 {
			t.Errorf("calls of Ended: %+v", all)
		}
	})
}

func TestTheLogLineOfAFailedCallContainsItsStatusAndTheStateOfTheBreaker(t *testing.T) {
	inBubble(t, func(s *harness) {
		var out bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		w := s.startWorker(engine.Config{Log: log}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			return failure.With(failure.NeverRetry(errGateway), "http_status", "502")
		}, engine.KindOptions{Dependency: "gateway"}))
		s.waitForState(s.enqueue(), holdfast.Failed)
		w.stop()
		var line map[string]any
		if err := json.Unmarshal([]byte(strings.Split(out.String(), "\n")[0]), &line); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]any{
			"event": "failed", "status": "failed", "attempt": 1.0, "error_code": "GW_5XX", "error": failure.Summary(errGateway.Error()), "gateway_status": "502",
			"dependency": "gateway", "breaker_state": "closed",
		} {
			expect(s, key, line[key], want)
		}
	})
}
