package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// A callCounter counts which jobs called a gateway.
type callCounter struct {
	mu   sync.Mutex
	jobs map[holdfast.ID]int
}

func (c *callCounter) mark(id holdfast.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs == nil {
		c.jobs = make(map[holdfast.ID]int)
	}
	c.jobs[id]++
}

// count returns how many jobs called, and how many calls they made.
func (c *callCounter) count() (jobs, calls int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.jobs {
		calls += n
	}
	return len(c.jobs), calls
}

func (c *callCounter) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs = nil
}

// counting registers a handler of notes that calls the gateway and counts the calls.
func (g *gateway) counting(c *callCounter, p failure.Policy) func(*engine.Engine) {
	return handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
		c.mark(job.Lease.ID)
		return g.call(ctx, job)
	}, engine.KindOptions{Dependency: "gateway", Policy: p})
}

func TestAnOutageMakesNoJobFailForGood(t *testing.T) {
	quick := failure.Fixed(time.Millisecond) // so that last attempts come before the breaker has opened
	for _, c := range []struct {
		outage  time.Duration
		slots   int
		take    time.Duration
		backoff failure.Backoff
	}{
		{time.Minute, 1, 0, quick}, {time.Minute, 1, 300 * time.Millisecond, nil}, {time.Minute, 1, 10 * time.Second, quick},
		{time.Minute, 10, 0, nil}, {time.Minute, 10, 300 * time.Millisecond, quick}, {time.Minute, 10, 10 * time.Second, nil},
		{time.Minute, 100, 0, quick}, {time.Minute, 100, 300 * time.Millisecond, nil}, {time.Minute, 100, 10 * time.Second, quick},
		{2 * time.Hour, 1, 0, nil}, {2 * time.Hour, 10, 300 * time.Millisecond, quick}, {2 * time.Hour, 100, 10 * time.Second, nil},
	} {
		t.Run(fmt.Sprintf("%v/%d slots/%v a call/%v", c.outage, c.slots, c.take, c.backoff), func(t *testing.T) {
			inBubble(t, func(s *harness) {
				s.outage(c.outage, c.slots, &gateway{take: c.take}, failure.Policy{MaxAttempts: 2, Backoff: c.backoff})
			})
		})
	}
}

// outage runs fifty jobs that call a gateway which is down for a time, and expects all of them to complete.
func (s *harness) outage(outage time.Duration, slots int, g *gateway, p failure.Policy) {
	s.Helper()
	const jobs = 50
	g.down.Store(true)
	var probes callCounter
	s.enqueueAll(jobs)
	s.startWorker(engine.Config{Slots: slots}, g.counting(&probes, p))
	time.Sleep(outage / 2)
	open := s.readBreaker("gateway").State
	probes.clear()
	time.Sleep(outage / 2)
	if probing, calls := probes.count(); open == breaker.Open && probing < min(calls, jobs) {
		s.Errorf("%d probes were made by %d jobs: they did not take turns", calls, probing)
	}
	g.down.Store(false)
	for range 40 {
		time.Sleep(time.Minute)
		if s.countJobs(holdfast.Complete) == jobs {
			break
		}
	}
	expect(s, "complete", s.countJobs(holdfast.Complete), jobs)
	expect(s, "dead letters", s.countJobs(holdfast.Failed), 0)
}

func TestAFailedProbeSpendsNothingAndItsStorySaysWhatFailed(t *testing.T) {
	inBubble(t, func(s *harness) {
		g := &gateway{}
		g.down.Store(true)
		s.enqueueAll(20)
		s.startWorker(engine.Config{Slots: 5}, g.calling(failure.Policy{MaxAttempts: 2}))
		s.waitForBreaker("gateway", breaker.Open)
		time.Sleep(30 * time.Minute)
		jobs, _, err := s.store.Jobs(context.Background(), store.Filter{State: holdfast.Queued, Limit: 200})
		if err != nil {
			t.Fatal(err)
		}
		released := 0
		for _, job := range jobs {
			for _, attempt := range s.attempts(job.ID) {
				if attempt.Charge != store.ChargeRelease || attempt.Failure == nil {
					continue
				}
				released++
				if attempt.Failure.Code != "GW_5XX" || !strings.Contains(attempt.Why, "not charged") || !strings.Contains(attempt.Why, "breaker of gateway") {
					t.Errorf("a failed probe is recorded as %s: %s", attempt.Failure.Code, attempt.Why)
				}
			}
			if job.Failures > 1 {
				t.Errorf("job %s has used up %d attempts of 2", job.ID, job.Failures)
			}
		}
		if released < 5 {
			t.Errorf("%d probes in half an hour", released)
		}
	})
}

func TestALoneJobIsProbedAgainUntilItGivesUpByTime(t *testing.T) {
	inBubble(t, func(s *harness) {
		g := &gateway{}
		g.down.Store(true)
		s.enqueueAll(9, func(d *holdfast.Draft) { d.MaxAttempts = 1 })
		s.startWorker(engine.Config{Slots: 10}, g.calling(failure.Policy{MaxAttempts: 2, GiveUpAfter: time.Hour}))
		s.waitUntil("nine to fail", func() bool { return s.countJobs(holdfast.Failed) == 9 })
		id := s.enqueue()
		s.waitForBreaker("gateway", breaker.Open)
		before := g.starts.count()
		time.Sleep(30 * time.Minute)
		if n := g.starts.count() - before; n < 5 {
			t.Errorf("a lone job was probed %d times in half an hour", n)
		}
		expect(s, "failures charged", s.job(id).Failures, 1)
		time.Sleep(40 * time.Minute)
		job := s.job(id)
		expect(s, "state after its time to give up", job.State, holdfast.Failed)
	})
}

// Jobs whose calls always fail are claimed first. They must not prevent the others from showing that the gateway is back.
func TestJobsThatAlwaysFailDoNotKeepABreakerOpen(t *testing.T) {
	inBubble(t, func(s *harness) {
		const bad, jobs = 12, 40
		g := &gateway{}
		g.down.Store(true)
		spoiled := make(map[holdfast.ID]bool)
		for _, id := range s.enqueueMany(bad) {
			spoiled[id] = true
		}
		s.enqueueAll(jobs - bad)
		s.startWorker(engine.Config{Slots: 4}, handleNotes(func(ctx context.Context, job *engine.Job[Note]) error {
			if err := g.call(ctx, job); err != nil || !spoiled[job.Lease.ID] {
				return err
			}
			return errGateway
		}, engine.KindOptions{Dependency: "gateway", Policy: failure.Policy{MaxAttempts: 3}}))
		s.waitForBreaker("gateway", breaker.Open)
		g.down.Store(false)
		for range 120 {
			if time.Sleep(time.Minute); s.countJobs(holdfast.Complete) == jobs-bad && s.countJobs(holdfast.Failed) > 0 {
				return
			}
		}
		t.Errorf("%d of %d completed within two hours, %d failed", s.countJobs(holdfast.Complete), jobs-bad, s.countJobs(holdfast.Failed))
	})
}

func TestAProbeThatARemoteWorkerReportsAsFailedCostsNothing(t *testing.T) {
	inBubble(t, func(s *harness) {
		w := s.startWorker(engine.Config{Dependencies: map[string]engine.Dependency{"gateway": {}}, Policy: failure.Policy{MaxAttempts: 2}})
		s.enqueueAll(10, onRemoteQueue, func(d *holdfast.Draft) { d.Dependency = "gateway" })
		for range 10 {
			for _, l := range s.claimRemote(1) {
				s.judge(w, returned(l, errGateway))
			}
		}
		s.waitForBreaker("gateway", breaker.Open)
		s.waitForBreaker("gateway", breaker.HalfOpen)
		probe := s.claimRemote(1)[0]
		for _, err := range s.judge(w, returned(probe, errGateway), returned(probe, errGateway)) {
			if err != nil {
				t.Errorf("a report, made twice: %v", err)
			}
		}
		expect(s, "state", s.readBreaker("gateway").State, breaker.Open)
		job := s.job(probe.ID)
		expect(s, "state of the job", job.State, holdfast.Queued)
		expect(s, "failures before and after the probe", job.Failures, probe.Failures)
		expect(s, "code", code(job), "GW_5XX")
	})
}
