package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// The tests of document 001, section 5, and its exit criteria, section 6, as far as they do not need the API. The units of section 5 (backoff,
// retryability by code, breaker thresholds) are in failures_test.go.

// 001 section 5, unit: reclaim logic. 001 section 6: expired leases are reclaimed automatically.
func TestSeed001AnExpiredLeaseIsReclaimedAndSpendsNoRetry(t *testing.T) {
	tell(t, func(s *scene) {
		s.gateway.does(func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				s.gateway.wait(r)
				return
			}
			convertsIt(n, w, r)
		})
		first := s.joins()
		id := s.enters(1)
		s.until("the first call", func() bool { return len(s.gateway.calls()) == 1 })
		begun := time.Now()
		first.dies()
		s.joins()
		job := s.becomes(id, holdfast.Complete)
		if took := time.Since(begun); took < 30*time.Second || took > 3*time.Minute {
			s.Errorf("it was taken over after %v: the lease is 90 s", took)
		}
		expect(s, "failures", job.Failures, 0)
		expect(s, "workers lost", job.Crashes, 1)
		s.oneXML(id)
	})
}

// 001 section 5, integration: 502 and timeout, retries with spacing. 001 section 6: retry spacing matches backoff, capped at 3 attempts.
func TestSeed001A502IsRetriedWithSpacingAndCappedAtThreeAttempts(t *testing.T) {
	tell(t, func(s *scene) {
		s.gateway.says(502, "bad gateway")
		s.works()
		id := s.enters(1)
		job := s.becomes(id, holdfast.Failed)
		expect(s, "code", codeOf(job), codeGW5XX)
		expect(s, "attempts", job.Failures, 3)
		s.spaced(s.gateway.calls(), 0)
		for _, attempt := range s.attempts(id) {
			expect(s, "status on record", attempt.Failure.Context["gateway_http_status"], "502")
			expect(s, "dependency", attempt.Failure.Dependency, dependencyGateway)
		}
	})
}

// 001 section 6: retry spacing matches backoff, also when many fail at once: nothing rations retries but the breaker.
func TestSeed001RetriesOfManyComeWhenTheyWerePromised(t *testing.T) {
	tell(t, func(s *scene) {
		s.gateway.does(func(n int, w http.ResponseWriter, r *http.Request) {
			if n <= 60 && n%3 == 0 {
				speak(w, 502, "")
				return
			}
			convertsIt(n, w, r)
		})
		s.works()
		var ids []holdfast.ID
		for n := range 60 {
			ids = append(ids, s.enters(n))
		}
		for _, id := range ids {
			s.becomes(id, holdfast.Complete)
		}
		first, again := map[string]time.Time{}, 0
		for _, call := range s.gateway.calls() {
			at, known := first[call.key]
			if !known {
				first[call.key] = call.at
				continue
			}
			if again++; call.at.Sub(at) > 11500*time.Millisecond {
				s.Errorf("a retry came after %v", call.at.Sub(at))
			}
		}
		expect(s, "retries", again, 20)
	})
}

func TestSeed001A502ThatPassesIsForgotten(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick)
		s.gateway.does(func(n int, w http.ResponseWriter, r *http.Request) {
			if n < 3 {
				speak(w, 502, "")
				return
			}
			convertsIt(n, w, r)
		})
		s.works()
		id := s.enters(1)
		job := s.becomes(id, holdfast.Complete)
		expect(t, "failures", job.Failures, 2)
		expect(t, "calls", len(s.gateway.calls()), 3)
		s.oneXML(id)
	})
}

// 001 section 3.2: on a retry the job is queued, without a lease, with retry_after set, and says why (E9).
func TestSeed001AJobThatAwaitsItsRetryIsQueuedWithoutALease(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, func(set *settings) { set.RetryBaseDelay = time.Hour })
		s.gateway.says(503, "")
		s.works()
		id := s.enters(1)
		s.until("its first failure", func() bool { return s.job(id).Failures == 1 })
		job := s.job(id)
		expect(t, "state", job.State, holdfast.Queued)
		expect(t, "lease", job.LeaseUntil.IsZero() && job.Worker == "", true)
		if wait := job.DueAt.Sub(job.AsOf); wait < 50*time.Minute || wait > time.Hour+time.Minute {
			t.Errorf("it is due in %v", wait)
		}
		code, line := s.publicFailure(job)
		expect(t, "says", code+": "+line, "GW_5XX: Converter service is having an issue. We’ll retry shortly.")
	})
}

// 001 section 5, integration, and section 6: retry_after is respected by the claim.
func TestSeed001TheClaimSkipsJobsThatAreNotDue(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		later := s.enters(1, func(d *holdfast.Draft) { d.Delay = time.Hour })
		now := s.enters(2)
		leases, err := s.store.Claim(context.Background(), store.Claim{Worker: "another", Queues: []string{queueConvert}, Limit: 10, Start: 10, Lease: time.Minute})
		if err != nil || len(leases) != 1 || leases[0].ID != now {
			t.Errorf("claimed %v, %v; want only what is due, and not %s", leases, err, later)
		}
		answers, err := s.store.Settle(context.Background(), []store.Settlement{{
			Batch: leases[0].Batch, Job: now, Token: leases[0].Token, To: holdfast.Queued, Charge: store.ChargeRelease,
		}})
		if err != nil || answers[0] != nil {
			t.Error(err, answers)
		}
	})
	tell(t, func(s *scene) { // a gateway that asks for two minutes gets them
		s.gateway.does(func(n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				speak(w, 503, "", "Retry-After", "120")
				return
			}
			convertsIt(n, w, r)
		})
		s.works()
		s.becomes(s.enters(1), holdfast.Complete)
		calls := s.gateway.calls()
		if wait := calls[1].at.Sub(calls[0].at); wait < 2*time.Minute || wait > 2*time.Minute+10*time.Second {
			s.Errorf("it was called again after %v", wait)
		}
	})
}

// 001 section 5, integration: SIGTERM during processing: complete, or a clean requeue.
func TestSeed001AStopLetsTheConversionFinish(t *testing.T) {
	tell(t, func(s *scene) {
		s.gateway.does(func(n int, w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(10 * time.Second):
				convertsIt(n, w, r)
			case <-r.Context().Done():
			}
		})
		w := s.works()
		id, left := s.enters(1), holdfast.ID{}
		s.until("the call", func() bool { return len(s.gateway.calls()) == 1 })
		go w.stop()
		synctest.Wait()
		left = s.enters(2)
		<-w.ended
		expect(s, "state", s.job(id).State, holdfast.Complete)
		expect(s, "what came later", s.job(left).State, holdfast.Queued)
		s.oneXML(id)
	})
}

func TestSeed001AStopHandsBackWhatCannotFinish(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, func(set *settings) { set.Grace = 50 * time.Millisecond })
		s.gateway.hangs()
		w := s.works()
		id := s.enters(1)
		s.until("the call", func() bool { return len(s.gateway.calls()) == 1 })
		w.stop()
		job := s.job(id)
		expect(t, "state", job.State, holdfast.Queued)
		expect(t, "spent", job.Failures+job.Crashes, 0)
		expect(t, "lease", job.LeaseUntil.IsZero(), true)
		s.oneXML()
		s.gateway.converts()
		s.joins()
		s.becomes(id, holdfast.Complete)
		s.oneXML(id)
	})
}

// 001 section 5, manual, and section 3.5; C9: a long job's lease is extended every 30 s, and it completes.
func TestSeed001ALongCallKeepsItsLease(t *testing.T) {
	tell(t, func(s *scene) {
		s.gateway.does(func(n int, w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(8 * time.Minute):
				convertsIt(n, w, r)
			case <-r.Context().Done():
			}
		})
		first := s.works()
		s.joins()
		id := s.enters(1)
		s.until("the call", func() bool { return len(s.gateway.calls()) == 1 })
		renewed, last := 0, time.Time{}
		for range 15 {
			<-time.After(30 * time.Second)
			synctest.Wait()
			job := s.job(id)
			if job.State != holdfast.Processing || time.Until(job.LeaseUntil) < 50*time.Second {
				s.Fatalf("%s, leased for %v more", job.State, time.Until(job.LeaseUntil))
			}
			if job.LeaseUntil.After(last) {
				renewed, last = renewed+1, job.LeaseUntil
			}
		}
		expect(s, "extended at every look", renewed, 15)
		job := s.becomes(id, holdfast.Complete)
		expect(s, "calls", len(s.gateway.calls()), 1)
		expect(s, "lost", job.Crashes+job.Failures+job.Releases, 0)
		_ = first
		s.oneXML(id)
	}, func(set *settings) { set.GatewayTimeout = 10 * time.Minute })
}

// 001 section 6: no duplicate processing.
func TestSeed001ManyWorkersConvertEachFileOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		var ids []holdfast.ID
		for n := range 60 {
			ids = append(ids, s.enters(n))
		}
		for range 3 {
			s.joins()
		}
		for _, id := range ids {
			s.becomes(id, holdfast.Complete)
		}
		times := map[string]int{}
		for _, call := range s.gateway.calls() {
			times[call.key]++
		}
		for _, id := range ids {
			expect(t, "calls for one file", times[id.String()], 1)
		}
		s.oneXML(ids...)
	})
}

// 001 section 5, manual, and section 6: the breaker opens under forced faults, pauses dispatch and recovers by itself. Here the gateway's health check
// succeeds and its conversions fail: only the breaker's window can see that.
func TestSeed001TheBreakerOpensUnderForcedFaultsAndRecovers(t *testing.T) {
	tell(t, func(s *scene) {
		s.gateway.says(502, "")
		s.works()
		var ids []holdfast.ID
		for n := range 30 {
			ids = append(ids, s.enters(n))
		}
		s.until("breaker open", func() bool { return s.breaker() == "open" })
		asked := len(s.gateway.calls())
		if asked < 10 || asked > 20 {
			s.Errorf("it took %d calls to find out", asked)
		}
		for range 4 { // the cooldown is 30 s
			<-time.After(5 * time.Second)
			expect(s, "calls while it is open", len(s.gateway.calls()), asked)
		}
		if !strings.Contains(s.logged.String(), `"event":"breaker"`) {
			s.Error("the log does not tell of the breaker (001 section 3.3)")
		}
		s.gateway.converts()
		for _, id := range ids {
			s.becomes(id, holdfast.Complete)
		}
		s.until("breaker closed", func() bool { return s.breaker() == "closed" })
		s.oneXML(ids...)
	})
}

// 001 section 6: manual retry works only for owners and only when the source exists. 001 section 3.6.
func TestSeed001AManualRetryIsForOwnersAndNeedsThePDF(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick)
		s.gateway.says(400, "")
		s.works()
		id := s.enters(1)
		s.becomes(id, holdfast.Failed)
		retry := func(owner string) error {
			_, err := s.operator.Retry(context.Background(), store.Intervention{Job: id, Owner: owner, Actor: owner})
			return err
		}
		if err := retry("session:other"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("another owner: %v", err)
		}
		s.gateway.converts()
		if err := s.uploads.Delete(context.Background(), sourceKey(id)); err != nil {
			t.Fatal(err)
		}
		if err := retry("session:test"); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("without its PDF: %v", err)
		}
		expect(t, "state", s.job(id).State, holdfast.Failed)
		if _, err := s.uploads.Put(context.Background(), sourceKey(id), strings.NewReader(string(samplePDF(1)))); err != nil {
			t.Fatal(err)
		}
		if err := retry("session:test"); err != nil {
			t.Fatal(err)
		}
		s.becomes(id, holdfast.Complete)
		if err := retry("session:test"); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("a complete one: %v", err)
		}
		refused, err := holdfast.Enqueue(context.Background(), s.store, Refusal{Code: codeNotPDF}, func(d *holdfast.Draft) { d.Queue, d.Owner = queueRefuse, "session:test" })
		if err != nil {
			t.Fatal(err)
		}
		s.becomes(refused.ID, holdfast.Failed)
		if _, err := s.operator.Retry(context.Background(), store.Intervention{Job: refused.ID, Actor: "x"}); !errors.Is(err, holdfast.ErrConflict) {
			t.Errorf("a file that was never taken: %v", err)
		}
	})
}

// 001 section 3.7 and section 6: logs support debugging: event, job_id, status, attempt, duration_ms, gateway_status, error_code, breaker state.
func TestSeed001EveryAttemptIsLogged(t *testing.T) {
	s := newScene(t, "", quick)
	s.gateway.does(func(n int, w http.ResponseWriter, r *http.Request) {
		if n == 1 {
			speak(w, 502, `{"message":"open /srv/secret/x.pdf: password=hunter2"}`)
			return
		}
		convertsIt(n, w, r)
	})
	s.works()
	id := s.enters(1)
	s.becomes(id, holdfast.Complete)
	var lines []string
	s.until("both lines", func() bool {
		lines = nil
		for line := range strings.Lines(s.logged.String()) {
			var l map[string]any
			if json.Unmarshal([]byte(line), &l) != nil || l["job_id"] != id.String() || l["attempt"] == nil {
				continue
			}
			if _, ok := l["duration_ms"].(float64); !ok {
				t.Errorf("no duration: %s", line)
			}
			lines = append(lines, fmt.Sprint(l["event"], " ", l["status"], " ", l["attempt"], " ", l["gateway_status"], " ", l["error_code"], " ", l["breaker_state"]))
		}
		return len(lines) == 2
	})
	expect(t, "first", lines[0], "retry queued 1 502 GW_5XX closed")
	expect(t, "second", lines[1], "complete complete 2 <nil> <nil> closed")
	for _, secret := range []string{"hunter2", "/srv/secret"} {
		if strings.Contains(s.logged.String(), secret) {
			t.Errorf("the log tells %q", secret)
		}
	}
}
