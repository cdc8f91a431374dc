package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// The acceptance checks of document 000, section 11, as far as they do not need the API: the tests of the API are in api_test.go.

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// 000 section 11: force a gateway 400/406 (bad mapping): job failed with GW_4XX, no retries. 001 section 5, integration: gateway 400, no retry.
func TestSeed000AGatewayThatRefusesAFileFailsItWithoutRetries(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		s.works()
		for _, status := range []int{400, 406, 413, 415} {
			s.gateway.says(status, "")
			id := s.enters(status)
			job := s.becomes(id, holdfast.Failed)
			code, line := s.publicFailure(job)
			expect(t, fmt.Sprint(status), code+": "+line, "GW_4XX: Couldn’t convert this file with the selected mapping.")
			expect(t, "attempts", job.Failures, 1)
			expect(t, "calls", len(s.gateway.calls()), 1)
		}
		s.oneXML()
	})
}

// 000 section 11: simulate gateway down: jobs stay queued (hold-queue); when it recovers, processing resumes.
func TestSeed000JobsStayQueuedWhileTheGatewayIsDownAndResumeWhenItIsBack(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick, func(set *settings) { set.RetryMaxAttempts = 1000 })
		s.gateway.stops()
		s.works()
		s.until("breaker open", func() bool { return s.breaker() == "open" })
		var ids []holdfast.ID
		for n := range 8 {
			ids = append(ids, s.enters(n))
		}
		for _, id := range ids {
			expect(t, "while it is down", s.job(id).State, holdfast.Queued)
			expect(t, "attempts spent", s.job(id).Failures, 0)
		}
		s.gateway.starts()
		for _, id := range ids {
			s.becomes(id, holdfast.Complete)
		}
		s.oneXML(ids...)
	})
}

// 000 section 11: or fail fast (if configured), and manual retry succeeds when the gateway is back.
func TestSeed000FailFastFailsJobsAtOnceAndAManualRetrySucceedsLater(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick, func(set *settings) { set.FailFast = true })
		s.gateway.stops()
		s.works()
		s.until("breaker open", func() bool { return s.breaker() == "open" })
		id := s.enters(1)
		job := s.becomes(id, holdfast.Failed)
		code, _ := s.publicFailure(job)
		expect(t, "code", code, codeGW5XX)
		s.gateway.starts()
		s.until("breaker closed", func() bool { return s.breaker() == "closed" })
		s.retries(id)
		s.becomes(id, holdfast.Complete)
		s.oneXML(id)
	})
}

// retries asks for a manual retry, as the file's owner.
func (s *scene) retries(id holdfast.ID) {
	s.Helper()
	if _, err := s.operator.Retry(context.Background(), store.Intervention{Job: id, Owner: "session:test", Actor: "owner"}); err != nil {
		s.Fatal(err)
	}
}

// 000 section 11: simulate timeout: retries up to RETRY_MAX_ATTEMPTS with exponential backoff, then failed with GW_TIMEOUT.
func TestSeed000TimeoutsAreRetriedWithBackoffThenFailAsGWTimeout(t *testing.T) {
	tell(t, func(s *scene) {
		s.gateway.hangs()
		s.works()
		id := s.enters(1)
		job := s.becomes(id, holdfast.Failed)
		code, _ := s.publicFailure(job)
		expect(s, "code", code, codeGWTimeout)
		expect(s, "attempts", job.Failures, 3)
		s.spaced(s.gateway.calls(), time.Minute)
	})
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick, func(set *settings) { set.GatewayTimeout, set.RetryMaxAttempts = 50*time.Millisecond, 4 })
		s.gateway.hangs()
		s.works()
		job := s.becomes(s.enters(1), holdfast.Failed)
		expect(t, "code", codeOf(job), codeGWTimeout)
		expect(t, "attempts", job.Failures, 4)
		expect(t, "calls", len(s.gateway.calls()), 4)
	})
}

// spaced checks the time between calls that took so long each: 5000 ms * 2^n + 0..5000 ms (001 section 3.2), and what it takes to claim a job.
func (s *scene) spaced(calls []asked, took time.Duration) {
	s.Helper()
	if len(calls) != 3 {
		s.Fatalf("there were %d calls", len(calls))
	}
	for n, base := range []time.Duration{5 * time.Second, 10 * time.Second} {
		wait := calls[n+1].at.Sub(calls[n].at) - took
		if wait < base || wait > base+5*time.Second+1500*time.Millisecond {
			s.Errorf("retry %d came after %v, want %v and up to 5 s more", n+1, wait, base)
		}
	}
}

// 000 section 11: simulate IO write failure on results: one retry; if still failing, IO_ERROR. 000 section 2B: but not when the disk is full.
func TestSeed000AFailedWriteIsRetriedOnceThenIOError(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick)
		var writes atomic.Int32
		results := &shaky{Store: s.results}
		s.app.results = results
		failing := func(times int32, err error) {
			writes.Store(0)
			results.tell(func() error {
				if writes.Add(1) <= times {
					return err
				}
				return nil
			}, nil)
		}
		s.works()
		failing(1000, errDisk)
		job := s.becomes(s.enters(1), holdfast.Failed)
		code, line := s.publicFailure(job)
		expect(t, "always", code+": "+line, "IO_ERROR: Temporary storage issue. We’ll retry.")
		expect(t, "writes", writes.Load(), 2)
		failing(1, errDisk)
		id := s.enters(2)
		s.becomes(id, holdfast.Complete)
		expect(t, "writes", writes.Load(), 2)
		failing(1000, fmt.Errorf("write: %w", syscall.ENOSPC))
		job = s.becomes(s.enters(3), holdfast.Failed)
		expect(t, "full", codeOf(job), codeIO)
		expect(t, "writes", writes.Load(), 1)
		expect(t, "breaker", s.breaker(), "closed")
		s.oneXML(id)
	})
}

// 000 section 11: use manual retry on a failed job: back to queued, then completes normally when the gateway is healthy. 000 section 5.
func TestSeed000AManualRetryCompletesWhenTheGatewayIsHealthy(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick)
		s.gateway.says(502, "")
		first := s.works()
		id := s.enters(1)
		s.becomes(id, holdfast.Failed)
		first.stop()
		s.gateway.converts()
		s.retries(id)
		job := s.job(id)
		expect(t, "state", job.State, holdfast.Queued)
		code, line := s.publicFailure(job)
		expect(t, "its error is cleared", code+line, "")
		expect(t, "manual retries", job.Generation-1, 1)
		expect(t, "attempts", job.Failures, 0)
		s.joins()
		s.becomes(id, holdfast.Complete)
		s.oneXML(id)
	})
}

// 000 section 11: verify no double XML and correct leasing when a worker dies mid-run. 000 section 3: attempt_count continues.
func TestSeed000NoDoubleXMLWhenAWorkerDiesInTheMiddle(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick, func(set *settings) { set.Lease = time.Second })
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
		held := s.job(id)
		if held.State != holdfast.Processing || held.Worker != first.Worker() || held.LeaseUntil.IsZero() {
			t.Errorf("the job is not held: %+v", held)
		}
		first.dies()
		second := s.joins()
		job := s.becomes(id, holdfast.Complete)
		expect(t, "who finished it", job.Worker, second.Worker())
		expect(t, "workers lost", job.Crashes, 1)
		expect(t, "failures", job.Failures, 0)
		expect(t, "token", job.Token > held.Token, true)
		s.oneXML(id)
	})
}

// The worst time to crash: the XML is written and the job is not settled. The next attempt finds the XML (000 section 8).
func TestSeed000AWorkerThatDiesAfterItsWriteLeavesOneXML(t *testing.T) {
	eachStore(t, func(t *testing.T, address string) {
		s := newScene(t, address, quick, func(set *settings) { set.Lease = time.Second })
		a, faulty := s.process()
		wrote := make(chan struct{})
		a.results = &afterwards{Store: a.results, do: func() { close(wrote) }}
		first := s.worksAs(a, faulty)
		id := s.enters(1)
		<-wrote
		first.dies()
		s.joins()
		job := s.becomes(id, holdfast.Complete)
		expect(t, "found", resultOf(t, job).Found, true)
		expect(t, "calls", len(s.gateway.calls()), 1)
		s.oneXML(id)
	})
}
