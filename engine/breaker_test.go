package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

var errGateway = failure.WithCode(errors.New("502 from the gateway"), "GW_5XX")

// A gateway is a dependency that handlers call. Tests switch it off and on.
type gateway struct {
	down   atomic.Bool
	starts starts
	bad    atomic.Int64
	good   atomic.Int64
	take   time.Duration
}

func (g *gateway) call(context.Context, *engine.Job[Note]) error {
	g.starts.mark()
	if g.take > 0 {
		time.Sleep(g.take)
	}
	if g.down.Load() {
		g.bad.Add(1)
		return errGateway
	}
	g.good.Add(1)
	return nil
}

// waitForAnswers waits until that many calls of the gateway have succeeded, and then until all jobs are settled.
func (s *harness) waitForAnswers(g *gateway, jobs int) {
	s.Helper()
	s.waitUntil("good answers", func() bool { return g.good.Load() >= int64(jobs) })
	s.waitUntil("all to complete", func() bool { return s.countJobs(holdfast.Complete) == jobs })
}

// calling registers a handler of notes that calls the gateway.
func (g *gateway) calling(p failure.Policy) func(*engine.Engine) {
	return handleNotes(g.call, engine.KindOptions{Dependency: "gateway", Policy: p})
}

// between counts the starts from one time to another.
func (s *starts) between(from, to time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.at {
		if !at.Before(from) && at.Before(to) {
			n++
		}
	}
	return n
}

// readBreaker reads the state of a breaker from the store.
func (s *harness) readBreaker(name string) (c breaker.Snapshot) {
	s.Helper()
	records, err := s.store.Records(context.Background(), "breaker")
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range records {
		if r.Name == name {
			if err := json.Unmarshal(r.Body, &c); err != nil {
				s.Fatal(err)
			}
		}
	}
	return c
}

func (s *harness) hold(source string) *store.Hold {
	s.Helper()
	holds, err := s.store.Holds(context.Background())
	if err != nil {
		s.Fatal(err)
	}
	for i := range holds {
		if holds[i].Source == source {
			return &holds[i]
		}
	}
	return nil
}

func (s *harness) waitForBreaker(name string, state breaker.State) breaker.Snapshot {
	s.Helper()
	var c breaker.Snapshot
	s.waitUntil("breaker "+string(state), func() bool {
		c = s.readBreaker(name)
		return c.State == state
	})
	return c
}

func (s *harness) enqueueAll(n int, options ...func(*holdfast.Draft)) {
	s.Helper()
	drafts := make([]holdfast.Draft, n)
	for i := range drafts {
		drafts[i], _ = holdfast.NewDraft(Note{"hello"})
		for _, option := range options {
			option(&drafts[i])
		}
	}
	if _, err := s.store.Enqueue(context.Background(), drafts); err != nil {
		s.Fatal(err)
	}
}

// moves collects the calls of Config.OnBreakerChange.
type moves struct {
	mu  sync.Mutex
	all []breaker.Transition
}

func (m *moves) moved(_ context.Context, _ string, t breaker.Transition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, t)
}

func (m *moves) to(state breaker.State) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.all {
		if t.To == state {
			n++
		}
	}
	return n
}

// Ten thousand jobs call a gateway that is down for ten minutes. No job spends its attempts on it, and when it is back it is not overloaded.
func TestADependencyThatIsDownForTenMinutesCostsTenThousandJobsNextToNothing(t *testing.T) {
	inBubble(t, func(s *harness) {
		const jobs, slots = 10_000, 50
		g := &gateway{take: 10 * time.Millisecond}
		g.down.Store(true)
		var told moves
		began := time.Now()
		s.enqueueAll(jobs)
		s.startWorker(engine.Config{Slots: slots, OnBreakerChange: told.moved}, g.calling(failure.Policy{MaxAttempts: 50}))
		s.waitForBreaker("gateway", breaker.Open)
		opened := s.readBreaker("gateway").Since
		time.Sleep(10*time.Minute - time.Since(began))
		probes := told.to(breaker.HalfOpen) * 2
		during := g.starts.between(opened.Add(time.Millisecond), time.Now())
		if during > probes {
			t.Errorf("%d handlers started while the gateway was down and the circuit open; %d half-open spells allow %d", during, told.to(breaker.HalfOpen), probes)
		}
		healed := time.Now()
		g.down.Store(false)
		s.waitForBreaker("gateway", breaker.Recovering)
		ramp := s.readBreaker("gateway")
		s.waitForBreaker("gateway", breaker.Closed)
		for at := ramp.Since; at.Before(ramp.Until); at = at.Add(time.Second) {
			allowed := breaker.Config{}.Rate(ramp, at.Add(time.Second))
			if n := g.starts.between(at, at.Add(time.Second)); float64(n) > 2+allowed*1.1 {
				t.Errorf("%d started in the second after %v of the ramp, which allows %.2f", n, at.Sub(ramp.Since), allowed)
			}
		}
		s.waitForAnswers(g, jobs)
		for _, move := range told.all {
			if move.To == breaker.Open && move.At.After(ramp.Since) {
				t.Errorf("it opened again after it had healed: %s", move.Why)
			}
		}
		t.Logf("healed %v after the outage, drained after %v; %d bad calls in all", s.readBreaker("gateway").Since.Sub(healed), time.Since(healed), g.bad.Load())
		expect(s, "handlers that ran", g.starts.count(), jobs+int(g.bad.Load()))
		if g.bad.Load() > 2*slots+int64(probes) { // the calls in progress when the first ones fail, and the next ones on their slots
			t.Errorf("%d attempts failed: those that were held were charged", g.bad.Load())
		}
	})
}

func TestABudgetAloneKeepsRetriesOfADeadDependencyFew(t *testing.T) {
	inBubble(t, func(s *harness) {
		const jobs = 2000
		g := &gateway{take: time.Millisecond}
		g.down.Store(true)
		off := map[string]engine.Dependency{"gateway": {Breaker: breaker.Config{Disabled: true}}}
		s.enqueueAll(jobs)
		s.startWorker(engine.Config{Slots: 20, Dependencies: off}, g.calling(failure.Policy{MaxAttempts: 1000, Backoff: failure.Fixed(time.Second)}))
		time.Sleep(10 * time.Minute)
		if calls := g.starts.count(); calls > jobs*12/10 {
			t.Errorf("%d calls for %d jobs: more than 1.2 each", calls, jobs)
		}
		hold := s.hold(store.SourceBudget)
		if hold == nil || !hold.Retries || hold.Dependency != "gateway" {
			t.Fatalf("no budget holds its retries: %+v", hold)
		}
		g.down.Store(false)
		s.waitForAnswers(g, jobs)
	})
}

func TestAnOpenBreakerFailsJobsAtOnceWhenItsModeIsFailFast(t *testing.T) {
	inBubble(t, func(s *harness) {
		g := &gateway{}
		g.down.Store(true)
		fast := map[string]engine.Dependency{"gateway": {Breaker: breaker.Config{FailFast: true, Code: "GW_TIMEOUT"}}}
		s.enqueueAll(50)
		s.startWorker(engine.Config{Slots: 5, Dependencies: fast}, g.calling(failure.Policy{MaxAttempts: 100, Backoff: failure.Fixed(time.Hour)}))
		s.waitForBreaker("gateway", breaker.Open)
		id := s.enqueue()
		job := s.waitForState(id, holdfast.Failed)
		expect(s, "code", code(job), "GW_TIMEOUT")
		calls := g.starts.count()
		s.enqueueAll(20)
		s.waitUntil("the others to fail", func() bool { return s.countJobs(holdfast.Failed) >= 21 })
		expect(s, "calls while it was open", g.starts.count(), calls)
	})
}

func TestAHealthProbeBringsADependencyBackWithoutRiskingAJob(t *testing.T) {
	inBubble(t, func(s *harness) {
		g := &gateway{}
		g.down.Store(true)
		var asked starts
		probe := func(context.Context) error {
			asked.mark()
			if g.down.Load() {
				return errGateway
			}
			return nil
		}
		cfg := engine.Config{Slots: 5, Dependencies: map[string]engine.Dependency{"gateway": {Probe: probe}}}
		s.enqueueAll(40)
		s.startWorker(cfg, g.calling(failure.Policy{MaxAttempts: 50}))
		s.startWorker(cfg, g.calling(failure.Policy{MaxAttempts: 50}))
		s.waitForBreaker("gateway", breaker.Open)
		calls := g.starts.count()
		time.Sleep(5 * time.Minute)
		expect(s, "jobs that were risked", g.starts.count()-calls, 0)
		if n := asked.count(); n < 50 || n > 61 {
			t.Errorf("%d probes in five minutes by two processes, want one every five seconds", n)
		}
		g.down.Store(false)
		s.waitForBreaker("gateway", breaker.Recovering)
		expect(s, "jobs that were risked", g.starts.count()-calls <= 1, true)
		s.waitForAnswers(g, 40)
	})
}

func TestAnotherProcessProbesWhenTheLeaseOfAKilledOneExpires(t *testing.T) {
	inBubble(t, func(s *harness) {
		g := &gateway{}
		g.down.Store(true)
		cut := storetest.NewFaulty(s.store)
		hangs := make(chan struct{})
		defer close(hangs)
		stuck := func(context.Context) error { <-hangs; return nil }
		cfg := engine.Config{Slots: 5, Lease: 10 * time.Second}
		cfg.Dependencies = map[string]engine.Dependency{"gateway": {Probe: stuck}}
		s.enqueueAll(20)
		first := s.startWorkerOn(cut, cfg, g.calling(failure.Policy{MaxAttempts: 50}))
		s.waitForBreaker("gateway", breaker.Open)
		s.waitUntil("a probe", func() bool { return s.readBreaker("gateway").Probing == first.Worker() })
		first.crash(cut)
		g.down.Store(false)
		cfg.Dependencies = map[string]engine.Dependency{"gateway": {Probe: func(context.Context) error { return nil }}}
		died := time.Now()
		s.startWorker(cfg, g.calling(failure.Policy{MaxAttempts: 50}))
		s.waitForBreaker("gateway", breaker.Recovering)
		if took := time.Since(died); took > 25*time.Second {
			t.Errorf("it took %v to replace the dead probe, with a lease of 10s", took)
		}
		s.waitForAnswers(g, 20)
	})
}

func TestTwoProcessesAgreeOnABreakerAndEachStateChangeIsAnnouncedOnce(t *testing.T) {
	inBubble(t, func(s *harness) {
		g := &gateway{take: 5 * time.Millisecond}
		g.down.Store(true)
		var told moves
		s.enqueueAll(200)
		for range 2 {
			s.startWorker(engine.Config{Slots: 10, OnBreakerChange: told.moved}, g.calling(failure.Policy{MaxAttempts: 100}))
		}
		s.waitForBreaker("gateway", breaker.Open)
		time.Sleep(2 * time.Minute)
		g.down.Store(false)
		s.waitForAnswers(g, 200)
		s.waitForBreaker("gateway", breaker.Closed)
		time.Sleep(5 * time.Second)
		history := s.readBreaker("gateway").History
		events, err := s.store.Events(context.Background(), "breaker/gateway", 100)
		if err != nil {
			t.Fatal(err)
		}
		expect(s, "state changes announced", len(told.all), len(history))
		expect(s, "events", len(events), len(history))
		for i, move := range history {
			expect(s, "order of events", events[len(events)-1-i].Name, string(move.To))
		}
	})
}

func TestOnlyTheDependencyAFailureBlamesIsHeld(t *testing.T) {
	inBubble(t, func(s *harness) {
		var ran starts
		s.startWorker(engine.Config{Slots: 5}, handleNotes(func(_ context.Context, job *engine.Job[Note]) error {
			ran.mark()
			if job.Lease.Dependency == "host-a" {
				return failure.WithCode(errFailed, "NETWORK_ERROR")
			}
			if job.Lease.Dependency == "host-c" {
				return failure.WithCode(errFailed, "NOT_FOUND") // the user's fault
			}
			return nil
		}, engine.KindOptions{Policy: failure.Policy{MaxAttempts: 100}}))
		for _, host := range []string{"host-a", "host-b", "host-c"} {
			s.enqueueAll(30, func(d *holdfast.Draft) { d.Dependency = host })
		}
		s.waitForBreaker("host-a", breaker.Open)
		s.waitUntil("the others to end", func() bool { return s.countJobs(holdfast.Complete) == 30 && s.countJobs(holdfast.Failed) == 30 })
		expect(s, "circuit of host-c", s.readBreaker("host-c").State, "")
		hold := s.hold(store.SourceBreaker)
		if hold == nil || hold.Dependency != "host-a" || !strings.Contains(hold.Reason, "NETWORK_ERROR") {
			t.Errorf("hold %+v", hold)
		}
	})
}

func TestJobsWaitingForASlotAreReleasedWhenABreakerOpens(t *testing.T) {
	inBubble(t, func(s *harness) {
		g := &gateway{}
		s.enqueueAll(200)
		s.startWorker(engine.Config{Slots: 2}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			n := g.starts.mark()
			if n > 40 {
				return errGateway
			}
			return nil
		}, engine.KindOptions{Dependency: "gateway"}))
		s.waitForBreaker("gateway", breaker.Open)
		jobs, _, err := s.store.Jobs(context.Background(), store.Filter{State: holdfast.Queued, Limit: 200})
		if err != nil {
			t.Fatal(err)
		}
		failures, late := 0, 0
		for _, job := range jobs {
			failures += job.Failures
			for _, attempt := range s.attempts(job.ID) {
				if attempt.Failure != nil && attempt.Charge == store.ChargeRelease {
					late++ // it ended after the breaker had opened
				}
			}
			if job.Failures+job.Releases < job.Token {
				t.Errorf("job %s: token %d, %d failures, %d releases", job.ID, job.Token, job.Failures, job.Releases)
			}
		}
		expect(s, "failed calls", failures+late, g.starts.count()-40)
		expect(s, "in workers' hands", s.countJobs(holdfast.Processing), 0)
		if failures > 22 {
			t.Errorf("%d calls failed before it opened", failures)
		}
	})
}
