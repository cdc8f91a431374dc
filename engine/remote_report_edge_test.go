package engine_test

import (
	"context"
	"errors"
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
)

func TestReportedRetriesAreChargedToTheirOwner(t *testing.T) {
	inBubble(t, func(s *harness) {
		policies := set(s, "defaults: {backoff: {shape: fixed, delay: 1s}, max_attempts: 9}\nowners: {acme: {budget: {retries_per_day: 2}}}")
		w := s.startWorker(engine.Config{Policies: policies})
		s.enqueue(func(d *holdfast.Draft) { d.Queue, d.Owner = far, "acme" })
		for range 3 { // a first attempt and two retries
			s.judge(w, returned(s.claimRemote(1)[0], errFailed))
		}
		s.waitUntil("the budget to be used up", func() bool { return s.hold(store.SourceBudget) != nil })
		expect(s, "whose retries wait", s.hold(store.SourceBudget).Owner, "acme")
	})
}

func TestRetriesClaimedByRemoteWorkersAreCountedBeforeTheyStart(t *testing.T) {
	inBubble(t, func(s *harness) {
		w := s.startWorker(engine.Config{Policies: set(s, "defaults: {backoff: {shape: fixed, delay: 1s}, max_attempts: 9}\nowners: {acme: {budget: {retries_per_day: 3}}}")})
		s.enqueueAll(5, func(d *holdfast.Draft) { d.Queue, d.Owner = far, "acme" })
		report := func(leases []store.Lease, o failure.Outcome) {
			var reports []engine.RemoteReport
			for _, l := range leases {
				reports = append(reports, engine.RemoteReport{Lease: l, Outcome: o, RetryReserved: true})
			}
			s.judge(w, reports...)
		}
		failed := failure.Outcome{Event: failure.Returned, Err: errFailed}
		first := w.ReserveRetries(context.Background(), s.claimRemote(5))
		expect(s, "first attempts that may go", len(first), 5)
		report(first, failed)
		retries := s.claimRemote(5)
		allowed := w.ReserveRetries(context.Background(), retries)
		expect(s, "retries that may go", len(allowed), 3)
		report(allowed[:1], failure.Outcome{Event: failure.Interrupted}) // the retry is given back to the budget
		report(allowed[1:], failed)
		s.waitUntil("one more to go", func() bool {
			more, err := s.store.Claim(context.Background(), store.Claim{Worker: "elsewhere", Queues: []string{far}, Limit: 5, Start: 5, Lease: time.Minute})
			if err != nil {
				s.Fatal(err)
			}
			allowed = w.ReserveRetries(context.Background(), more)
			return len(allowed) > 0
		})
		expect(s, "retries that may go after one was given back", len(allowed), 1)
		report(allowed, failed)
		time.Sleep(time.Minute)
		more, err := s.store.Claim(context.Background(), store.Claim{Worker: "elsewhere", Queues: []string{far}, Limit: 5, Start: 5, Lease: time.Minute})
		if err != nil || len(w.ReserveRetries(context.Background(), more)) > 0 {
			t.Errorf("a fourth retry is let through: %v, %v", more, err)
		}
		for _, l := range retries {
			if job := s.job(l.ID); job.Crashes > 0 || job.Failures > 2 {
				t.Errorf("a retry that was refused cost something: %+v", job)
			}
		}
	})
}

func TestLearnedPoliciesUseExperienceWithReportsToo(t *testing.T) {
	inBubble(t, func(s *harness) {
		policies := set(s, "defaults: {backoff: {shape: fixed, delay: 1s}, max_attempts: 4, learned: true}")
		w := s.startWorker(engine.Config{Policies: policies})
		s.enqueueAll(400, onRemoteQueue)
		for range 4 {
			var reports []engine.RemoteReport
			for _, lease := range s.claimRemote(400) {
				reports = append(reports, returned(lease, errFailed))
			}
			expect(s, "answers", errors.Join(s.judge(w, reports...)...), nil)
		}
		expect(s, "dead letters", s.countJobs(holdfast.Failed), 400)
		time.Sleep(6 * time.Minute)
		id := s.enqueue(onRemoteQueue)
		s.judge(w, returned(s.claimRemote(1)[0], errFailed))
		job := s.job(id)
		expect(s, "state", job.State, holdfast.Failed)
		expect(s, "failures with experience", job.Failures, 1)
	})
}

func TestAReportWhoseSettlementTheStoreRejectsFailsOnlyItsJob(t *testing.T) {
	inBubble(t, func(s *harness) {
		odd := s.enqueue(onRemoteQueue)
		even := s.enqueue(onRemoteQueue)
		leases := s.claimRemote(2)
		db := &misbehavingStore{Store: s.store}
		refused := false
		db.settle = func(all []store.Settlement) ([]error, error) {
			if refused {
				return nil, nil
			}
			refused = true
			answers, err := s.store.Settle(context.Background(), all[1:])
			return append([]error{&holdfast.Error{Err: holdfast.ErrInvalid, Message: "senseless"}}, answers...), err
		}
		w := s.startWorkerOn(db, engine.Config{})
		expect(s, "answers", errors.Join(s.judge(w, returned(leases[0], nil), returned(leases[1], nil))...), nil)
		expect(s, "the one", s.job(odd).State, holdfast.Failed)
		expect(s, "its code", code(s.job(odd)), "SYSTEM_ERROR")
		expect(s, "an error group shows it", s.job(odd).LastFailure.Fingerprint != "", true)
		expect(s, "the other", s.job(even).State, holdfast.Complete)
	})
}

func TestAStaleReportOfAProbeDoesNotOpenTheBreakerAgain(t *testing.T) {
	inBubble(t, func(s *harness) {
		w := s.startWorker(engine.Config{
			Lease:        5 * time.Second,
			Dependencies: map[string]engine.Dependency{"gateway": {Breaker: breaker.Config{MinCalls: 5, OpenFor: 20 * time.Second}}},
		})
		s.enqueueAll(7, func(d *holdfast.Draft) { d.Queue, d.Dependency = far, "gateway" })
		for _, lease := range s.claimRemote(5) {
			s.judge(w, returned(lease, errGateway))
		}
		s.waitForBreaker("gateway", breaker.HalfOpen)
		probe := s.claimRemote(1)[0]
		stale := probe
		stale.Batch = holdfast.NewID() // a lease that is lost
		opens := len(s.readBreaker("gateway").History)
		if answer := s.judge(w, returned(stale, errGateway))[0]; !errors.Is(answer, holdfast.ErrLeaseLost) {
			t.Errorf("a stale report of a probe: %v", answer)
		}
		time.Sleep(2 * time.Second)
		expect(s, "moves since", len(s.readBreaker("gateway").History), opens)
		s.judge(w, returned(probe, errGateway))
		expect(s, "after the true one", s.readBreaker("gateway").State, breaker.Open)
	})
}

func TestAStopWaitsForReportsUnderWay(t *testing.T) {
	inBubble(t, func(s *harness) {
		id := s.enqueue(onRemoteQueue)
		report := returned(s.claimRemote(1)[0], nil)
		gate := make(chan struct{})
		db := &misbehavingStore{Store: s.store, settle: func([]store.Settlement) ([]error, error) { <-gate; return nil, nil }}
		var told ends
		w := s.startWorkerOn(db, engine.Config{OnAttemptEnd: told.told})
		s.judge(w)
		var answers []error
		var err error
		var judging sync.WaitGroup
		judging.Go(func() { answers, err = w.SettleReports(context.Background(), []engine.RemoteReport{report}) })
		synctest.Wait()
		judging.Go(w.stop)
		synctest.Wait()
		close(gate)
		judging.Wait()
		if err != nil || len(answers) != 1 || answers[0] != nil {
			t.Errorf("the report under way: %v, %v", answers, err)
		}
		expect(s, "state", s.job(id).State, holdfast.Complete)
		expect(s, "calls of Ended", len(told.list()), 1)
	})
}

func TestConcurrentReportsAreAllSettled(t *testing.T) {
	inBubble(t, func(s *harness) {
		w := s.startWorker(engine.Config{Policies: set(s, "kinds: {note: {max_attempts: 1}}")})
		s.enqueueAll(200, func(d *holdfast.Draft) { d.Queue, d.Owner, d.Dependency = far, "acme", "gateway" })
		var all sync.WaitGroup
		for i, lease := range s.claimRemote(200) {
			all.Go(func() {
				outcome := failure.Outcome{Event: failure.Returned}
				if i%2 == 0 {
					outcome = failure.Outcome{Event: failure.Panicked, Err: errFailed}
				}
				answers, err := w.SettleReports(context.Background(), []engine.RemoteReport{{Lease: lease, Outcome: outcome}})
				if err != nil || answers[0] != nil {
					t.Errorf("SettleReports: %v, %v", answers, err)
				}
			})
		}
		all.Wait()
		expect(s, "complete", s.countJobs(holdfast.Complete), 100)
		expect(s, "failed", s.countJobs(holdfast.Failed), 100)
	})
}

func TestAReportWithoutTheFactsOfItsLeaseIsSettled(t *testing.T) {
	inBubble(t, func(s *harness) {
		w := s.startWorker(engine.Config{})
		id := s.enqueue(onRemoteQueue)
		lease := s.claimRemote(1)[0]
		bare := store.Lease{Job: holdfast.Job{ID: lease.ID, Token: lease.Token, Kind: lease.Kind}, Batch: lease.Batch}
		expect(s, "answer", s.judge(w, engine.RemoteReport{Lease: bare, Outcome: failure.Outcome{Event: failure.TimedOut}})[0], nil)
		job := s.job(id)
		expect(s, "state", job.State, holdfast.Queued)
		expect(s, "code", code(job), "TIMEOUT")
		if why := s.attempts(id)[0].Why; !strings.Contains(why, "time limit") {
			t.Errorf("why: %s", why)
		}
	})
}
