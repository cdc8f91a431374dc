package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

func TestABreakerOutlivesEveryProcess(t *testing.T) {
	inBubble(t, func(s *harness) {
		g := &gateway{}
		g.down.Store(true)
		s.enqueueAll(50)
		w := s.startWorker(engine.Config{Slots: 5}, g.calling(failure.Policy{MaxAttempts: 50}))
		opened := s.waitForBreaker("gateway", breaker.Open)
		w.stop()
		calls := g.starts.count()
		time.Sleep(20 * time.Second)
		s.startWorker(engine.Config{Slots: 5}, g.calling(failure.Policy{MaxAttempts: 50}))
		time.Sleep(time.Until(opened.Until) - time.Second)
		expect(s, "calls until it was time to probe", g.starts.count(), calls)
		g.down.Store(false)
		s.waitForAnswers(g, 50)
	})
}

// forceBreaker writes the record of a breaker that an operator forced into a state, and nothing else.
func (s *harness) forceBreaker(name string, to breaker.State) {
	s.Helper()
	records, err := s.store.Records(context.Background(), "breaker")
	if err != nil {
		s.Fatal(err)
	}
	r := store.Record{Namespace: "breaker", Name: name}
	for _, each := range records {
		if each.Name == name {
			r = each
		}
	}
	var c breaker.Snapshot
	_ = json.Unmarshal(r.Body, &c)
	c, _, err = breaker.Config{}.Force(c, to, "ada", "because", time.Now())
	if err != nil {
		s.Fatal(err)
	}
	r.Body, _ = json.Marshal(c)
	if err := s.store.Apply(context.Background(), store.Change{Records: []store.Record{r}}); err != nil {
		s.Fatal(err)
	}
}

func TestABreakerForcedByHandHoldsAndReleasesJobsWithinSeconds(t *testing.T) {
	inBubble(t, func(s *harness) {
		g := &gateway{}
		s.startWorker(engine.Config{Slots: 5}, g.calling(failure.Policy{}))
		s.forceBreaker("gateway", breaker.ForcedOpen)
		time.Sleep(2 * time.Second)
		s.enqueueAll(20)
		time.Sleep(time.Hour)
		expect(s, "calls while it is forced open", g.starts.count(), 0)
		s.forceBreaker("gateway", breaker.ForcedClosed)
		time.Sleep(3 * time.Second)
		expect(s, "complete soon after it is forced closed", s.countJobs(holdfast.Complete), 20)
		g.down.Store(true)
		s.enqueueAll(40)
		time.Sleep(10 * time.Second)
		if n := g.bad.Load(); n < 40 {
			t.Errorf("%d of 40 were called: a circuit that is forced closed judges nothing", n)
		}
	})
}

func TestJobsWaitingForASlotAreReleasedAlsoIfOnlyTheJobNamesTheDependency(t *testing.T) {
	inBubble(t, func(s *harness) {
		var calls, jams starts
		s.enqueueAll(100, func(d *holdfast.Draft) { d.Dependency = "host-a" })
		s.startWorker(engine.Config{Slots: 1}, handleNotes(func(context.Context, *engine.Job[Note]) error {
			if n := calls.mark(); n > 20 {
				jams.mark()
				return failure.WithCode(errFailed, "NETWORK_ERROR")
			}
			return nil
		}, engine.KindOptions{Policy: failure.Policy{Backoff: failure.Fixed(time.Hour)}}))
		s.waitForBreaker("host-a", breaker.Open)
		opened := jams.count()
		time.Sleep(20 * time.Second)
		expect(s, "calls after it opened", jams.count(), opened)
		expect(s, "in workers' hands", s.countJobs(holdfast.Processing), 0)
		jobs, _, err := s.store.Jobs(context.Background(), store.Filter{State: holdfast.Queued, Limit: 200})
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range jobs {
			if job.Releases == 0 {
				continue
			}
			attempts := s.attempts(job.ID)
			if why := attempts[len(attempts)-1].Why; attempts[len(attempts)-1].Failure == nil && !strings.Contains(why, "host-a is not called: breaker open") {
				t.Errorf("released because: %s", why)
			}
		}
	})
}

// A settleRecorder counts failed attempts that are settled while the breaker is half-open: their end would let the store admit other jobs.
type settleRecorder struct {
	store.Store
	s       *harness
	tooSoon atomic.Int64
	heard   atomic.Int64
}

func (l *settleRecorder) Settle(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	state := l.s.readBreaker("gateway").State
	for i := range settlements {
		if settlements[i].Failure == nil {
			continue
		}
		l.heard.Add(1)
		if state == breaker.HalfOpen {
			l.tooSoon.Add(1)
		}
	}
	return l.Store.Settle(ctx, settlements)
}

func TestAFailedProbeIsSettledAfterItsBreakerIsUpdated(t *testing.T) {
	inBubble(t, func(s *harness) {
		g := &gateway{take: 10 * time.Millisecond}
		g.down.Store(true)
		l := &settleRecorder{Store: s.store, s: s}
		s.enqueueAll(50)
		s.startWorkerOn(l, engine.Config{Slots: 5}, g.calling(failure.Policy{MaxAttempts: 1000}))
		s.waitForBreaker("gateway", breaker.Open)
		before := l.heard.Load()
		time.Sleep(10 * time.Minute)
		if l.heard.Load() == before || l.tooSoon.Load() > 0 {
			t.Errorf("%d probes failed, and %d of them gave their places up before the circuit opened", l.heard.Load()-before, l.tooSoon.Load())
		}
	})
}
