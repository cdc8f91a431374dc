package engine_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// startRedrive starts a redrive, as an operator does.
func (s *harness) startRedrive(o redrive.Spec) holdfast.ID {
	s.Helper()
	o.Actor = "ada"
	if err := o.Check(); err != nil {
		s.Fatal(err)
	}
	id := holdfast.NewID()
	body, _ := json.Marshal(redrive.Start(id, o, time.Now()))
	record := store.Record{Namespace: "redrive", Name: id.String(), Body: body}
	if err := s.store.Apply(context.Background(), store.Change{Records: []store.Record{record}}); err != nil {
		s.Fatal(err)
	}
	return id
}

func (s *harness) progress(id holdfast.ID) (p redrive.Progress) {
	s.Helper()
	records, err := s.store.Records(context.Background(), "redrive")
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range records {
		if r.Name == id.String() {
			if err := json.Unmarshal(r.Body, &p); err != nil {
				s.Fatal(err)
			}
		}
	}
	return p
}

func (s *harness) waitForRedrive(id holdfast.ID, state redrive.State) (p redrive.Progress) {
	s.Helper()
	s.waitUntil("redrive "+string(state), func() bool {
		p = s.progress(id)
		return p.State == state
	})
	return p
}

// deadLetters makes jobs fail for good until the handler is repaired.
func (s *harness) deadLetters(n int, repaired *atomic.Bool, runs *starts) func(*engine.Engine) {
	s.Helper()
	work := handleNotes(func(_ context.Context, job *engine.Job[Note]) error {
		runs.mark()
		if repaired.Load() || job.Args.Text == "patched" {
			return nil
		}
		return failure.NeverRetry(errFailed)
	})
	s.enqueueAll(n)
	w := s.startWorker(engine.Config{Slots: 20}, work)
	s.waitUntil("dead letters", func() bool { return s.countJobs(holdfast.Failed) == n })
	w.stop()
	return work
}

func TestARedriveSendsACanaryFirstAndThenTheRestAtItsPace(t *testing.T) {
	inBubble(t, func(s *harness) {
		var repaired atomic.Bool
		var runs starts
		work := s.deadLetters(300, &repaired, &runs)
		repaired.Store(true)
		before, began := runs.count(), time.Now()
		id := s.startRedrive(redrive.Spec{All: true, Canary: 5, PerSecond: 10})
		for range 2 {
			s.startWorker(engine.Config{Slots: 20}, work)
		}
		p := s.waitForRedrive(id, redrive.Done)
		expect(s, "complete", s.countJobs(holdfast.Complete), 300)
		expect(s, "handlers that ran", runs.count()-before, 300)
		expect(s, "counts", p.Counts.Complete, 300)
		if took := time.Since(began); took < 27*time.Second || took > 60*time.Second {
			t.Errorf("300 jobs at 10 a second took %v", took)
		}
	})
}

func TestARedriveStopsWhenItsCanaryFailsAgain(t *testing.T) {
	inBubble(t, func(s *harness) {
		var repaired atomic.Bool
		var runs starts
		work := s.deadLetters(100, &repaired, &runs)
		before := runs.count()
		id := s.startRedrive(redrive.Spec{Filter: store.Filter{Kind: "note"}, Canary: 5, StopAbove: 0.2})
		s.startWorker(engine.Config{Slots: 20}, work)
		p := s.waitForRedrive(id, redrive.Stopped)
		expect(s, "handlers that ran", runs.count()-before, 5)
		events, err := s.store.Events(context.Background(), "redrive/"+id.String(), 10)
		if err != nil || len(events) != 1 || events[0].Name != "stopped" {
			t.Errorf("events %+v, %v (%s)", events, err, p.Why)
		}
	})
}

func TestARedriveWhoseProcessIsKilledIsFinishedByAnotherAndTakesEachJobOnce(t *testing.T) {
	for n := range 8 {
		inBubble(t, func(s *harness) {
			var repaired atomic.Bool
			var runs starts
			work := s.deadLetters(60, &repaired, &runs)
			before := runs.count()
			id := s.startRedrive(redrive.Spec{All: true, PerSecond: 20, Patch: json.RawMessage(`{"text":"patched"}`), Reason: "bad texts"})
			cut := storetest.NewFaulty(s.store, storetest.Fault{Verb: []string{"Redrive", "Apply"}[n%2], N: 1 + n/4, After: n/2%2 == 1, Always: true})
			first := s.startWorkerOn(cut, engine.Config{Slots: 20}, work)
			time.Sleep(3 * time.Second)
			first.crash(cut)
			s.startWorker(engine.Config{Slots: 20}, work)
			s.waitForRedrive(id, redrive.Done)
			expect(s, "complete", s.countJobs(holdfast.Complete), 60)
			if ran := runs.count() - before; ran < 60 {
				t.Errorf("%d handlers ran", ran)
			}
			jobs, _, err := s.store.Jobs(context.Background(), store.Filter{Redrive: id, Limit: 200})
			if err != nil {
				t.Fatal(err)
			}
			expect(s, "jobs taken", len(jobs), 60)
			for _, job := range jobs {
				expect(s, "generation", job.Generation, 2)
			}
		})
	}
}
