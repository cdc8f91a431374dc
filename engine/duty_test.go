package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store/storetest"
)

// A counter is a log handler that counts its lines.
type counter struct{ n *atomic.Int64 }

func (c counter) Enabled(context.Context, slog.Level) bool  { return true }
func (c counter) Handle(context.Context, slog.Record) error { c.n.Add(1); return nil }
func (c counter) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c counter) WithGroup(string) slog.Handler             { return c }

func counting(n *atomic.Int64) *slog.Logger { return slog.New(counter{n}) }

// requestDuty writes a request for a duty, as an operator does.
func (s *harness) requestDuty(name string, o duty.Control) {
	s.writeRecord(duty.NamespaceControl, name, o)
}

func (s *harness) dutyStatuses() map[string]duty.Status {
	s.Helper()
	var reports []duty.Reports
	records, err := s.store.Records(context.Background(), duty.NamespaceReport)
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range records {
		var one duty.Reports
		if err := json.Unmarshal(r.Body, &one); err != nil {
			s.Fatal(err)
		}
		reports = append(reports, one)
	}
	all := make(map[string]duty.Status)
	for _, standing := range duty.Statuses(nil, reports, time.Now()) {
		all[standing.Name] = standing
	}
	return all
}

// countingDuty returns a duty of an application that counts its runs.
func countingDuty(runs *atomic.Int64) engine.Duty {
	return engine.Duty{Name: "tick", Interval: time.Second, Run: func(context.Context) error { runs.Add(1); return nil }}
}

func TestAPausedDutyIsPausedInEveryProcessAndTheEndOfItsPauseIsRecordedOnce(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs atomic.Int64
		for range 5 {
			s.startWorker(engine.Config{Duties: []engine.Duty{countingDuty(&runs)}})
		}
		time.Sleep(10 * time.Second)
		if runs.Load() < 45 {
			t.Errorf("%d runs in ten seconds of five processes", runs.Load())
		}
		s.requestDuty("tick", duty.Control{Paused: true, Until: time.Now().Add(time.Minute), Actor: "ada"})
		time.Sleep(3 * time.Second)
		before := runs.Load()
		time.Sleep(50 * time.Second)
		expect(s, "runs while it is paused", runs.Load(), before)
		time.Sleep(10 * time.Second)
		if runs.Load() == before {
			t.Error("it did not resume by itself")
		}
		if names := s.eventNames("duty/tick"); !slices.Equal(names, []string{"resumed"}) {
			t.Errorf("its story: %v", names)
		}
	})
}

func TestADutyThatIsPausedWhenAProcessStartsDoesNotRunThereOnce(t *testing.T) {
	inBubble(t, func(s *harness) {
		s.requestDuty("tick", duty.Control{Paused: true})
		s.requestDuty("promote", duty.Control{Paused: true})
		var runs atomic.Int64
		id := s.enqueue(func(d *holdfast.Draft) { d.Delay = time.Second })
		s.startWorker(engine.Config{Duties: []engine.Duty{countingDuty(&runs)}}, noted)
		time.Sleep(time.Minute)
		expect(s, "runs", runs.Load(), 0)
		expect(s, "a job that was due long ago", s.job(id).State, holdfast.Queued)
		s.requestDuty("promote", duty.Control{})
		s.waitForState(id, holdfast.Complete)
	})
}

func TestARequestedRunIsMadeOnceInEveryProcessAlsoIfTheDutyIsPaused(t *testing.T) {
	inBubble(t, func(s *harness) {
		var runs atomic.Int64
		slow := countingDuty(&runs)
		slow.Interval = time.Hour
		s.requestDuty("tick", duty.Control{Run: 4}) // requested before any engine started
		for range 3 {
			s.startWorker(engine.Config{Duties: []engine.Duty{slow}})
		}
		time.Sleep(10 * time.Second)
		expect(s, "runs at the start", runs.Load(), 3)
		s.requestDuty("tick", duty.Control{Run: 5})
		time.Sleep(10 * time.Second)
		expect(s, "runs after a request", runs.Load(), 6)
		s.requestDuty("tick", duty.Control{Run: 6, Paused: true})
		time.Sleep(time.Minute)
		expect(s, "runs after a request during a pause", runs.Load(), 9)
	})
}

func TestADutyThatCannotBePausedContinues(t *testing.T) {
	inBubble(t, func(s *harness) {
		for _, name := range duty.Fixed {
			s.requestDuty(name, duty.Control{Paused: true})
		}
		s.startWorker(lease5, handleNotes(func(ctx context.Context, _ *engine.Job[Note]) error {
			time.Sleep(time.Minute)
			return ctx.Err()
		}))
		expect(s, "token", s.waitForState(s.enqueue(), holdfast.Complete).Token, 1)
	})
}

func TestDutiesAreReportedAndAWorkerThatStopsDeletesItsReport(t *testing.T) {
	inBubble(t, func(s *harness) {
		failing := engine.Duty{Name: "failing", Interval: time.Second, Run: func(context.Context) error { return errFailed }}
		one := s.startWorker(engine.Config{Duties: []engine.Duty{failing}})
		s.startWorker(engine.Config{})
		time.Sleep(time.Minute)
		all := s.dutyStatuses()
		for _, name := range []string{"claim", "promote", "reclaim", "expire", "sequence", "group", "schedule", "retention", "artifacts", "redrive", "duties", "renew", "probes"} {
			d := all[name]
			expect(s, name+": workers", d.Workers, 2)
			if name != "probes" && (d.Last.IsZero() || time.Since(d.Last) > 20*time.Second || d.Lag > 0) {
				t.Errorf("%s: %+v", name, d)
			}
		}
		if d := all["failing"]; d.Workers != 1 || d.Error != errFailed.Error() || time.Since(d.ErrorAt) > 20*time.Second {
			t.Errorf("failing: %+v", d)
		}
		one.stop()
		expect(s, "workers after one has left", s.dutyStatuses()["promote"].Workers, 1)
	})
}

func TestTheReportOfAWorkerThatDiedIsRemoved(t *testing.T) {
	inBubble(t, func(s *harness) {
		cut := storetest.NewFaulty(s.store) // the store of a worker that dies before it can report
		cut.Plan(storetest.Fault{Always: true}, storetest.Fault{Verb: "Await", Always: true})
		s.startWorkerOn(cut, engine.Config{}).crash(cut)
		dying := storetest.NewFaulty(s.store)
		w := s.startWorkerOn(dying, engine.Config{})
		s.startWorker(engine.Config{})
		time.Sleep(20 * time.Second)
		expect(s, "workers", s.dutyStatuses()["promote"].Workers, 2)
		w.crash(dying)
		time.Sleep(10 * time.Second)
		expect(s, "workers", s.dutyStatuses()["promote"].Workers, 2)
		time.Sleep(3 * time.Minute)
		expect(s, "workers", s.dutyStatuses()["promote"].Workers, 1)
	})
}

func TestInvalidDutiesAreRefused(t *testing.T) {
	round := func(context.Context) error { return nil }
	for _, d := range []engine.Duty{
		{Name: "promote", Interval: 1, Run: round}, {Name: "probes", Interval: 1, Run: round}, {Name: "a b", Interval: 1, Run: round},
		{Name: "x", Run: round}, {Name: "x", Interval: 1},
	} {
		if _, err := engine.New(&endlessStore{}, engine.Config{Duties: []engine.Duty{d}}); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%+v: %v", d, err)
		}
	}
}
