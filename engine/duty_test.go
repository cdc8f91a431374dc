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

// A counter is a log that counts its lines.
type counter struct{ n *atomic.Int64 }

func (c counter) Enabled(context.Context, slog.Level) bool  { return true }
func (c counter) Handle(context.Context, slog.Record) error { c.n.Add(1); return nil }
func (c counter) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c counter) WithGroup(string) slog.Handler             { return c }

func counting(n *atomic.Int64) *slog.Logger { return slog.New(counter{n}) }

// order gives an order, as an operator does.
func (s *scene) order(name string, o duty.Order) { s.keeps(duty.RoomOrder, name, o) }

func (s *scene) standings() map[string]duty.Standing {
	s.Helper()
	var reports []duty.Reports
	records, err := s.store.Records(context.Background(), duty.RoomReport)
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
	all := make(map[string]duty.Standing)
	for _, standing := range duty.Fold(nil, reports, time.Now()) {
		all[standing.Name] = standing
	}
	return all
}

// ticking is a duty of somebody else's that counts its rounds.
func ticking(rounds *atomic.Int64) engine.Duty {
	return engine.Duty{Name: "tick", Beat: time.Second, Round: func(context.Context) error { rounds.Add(1); return nil }}
}

func TestAPausedDutyRestsInEveryProcessAndResumesByItselfWhichIsSaidOnce(t *testing.T) {
	tell(t, func(s *scene) {
		var rounds atomic.Int64
		for range 5 {
			s.works(engine.Config{Duties: []engine.Duty{ticking(&rounds)}})
		}
		time.Sleep(10 * time.Second)
		if rounds.Load() < 45 {
			t.Errorf("%d rounds in ten seconds of five processes", rounds.Load())
		}
		s.order("tick", duty.Order{Paused: true, Until: time.Now().Add(time.Minute), Actor: "ada"})
		time.Sleep(3 * time.Second)
		before := rounds.Load()
		time.Sleep(50 * time.Second)
		expect(s, "rounds while it is paused", rounds.Load(), before)
		time.Sleep(10 * time.Second)
		if rounds.Load() == before {
			t.Error("it did not resume by itself")
		}
		if said := s.said("duty/tick"); !slices.Equal(said, []string{"resumed"}) {
			t.Errorf("its story: %v", said)
		}
	})
}

func TestADutyThatIsPausedWhenAProcessStartsDoesNotRunThereOnce(t *testing.T) {
	tell(t, func(s *scene) {
		s.order("tick", duty.Order{Paused: true})
		s.order("promote", duty.Order{Paused: true})
		var rounds atomic.Int64
		id := s.enqueue(func(d *holdfast.Draft) { d.Delay = time.Second })
		s.works(engine.Config{Duties: []engine.Duty{ticking(&rounds)}}, noted)
		time.Sleep(time.Minute)
		expect(s, "rounds", rounds.Load(), 0)
		expect(s, "a job that was due long ago", s.job(id).State, holdfast.Queued)
		s.order("promote", duty.Order{})
		s.becomes(id, holdfast.Complete)
	})
}

func TestARunOutOfTurnIsOneRoundInEveryProcessAlsoWhenTheDutyIsPaused(t *testing.T) {
	tell(t, func(s *scene) {
		var rounds atomic.Int64
		slow := ticking(&rounds)
		slow.Beat = time.Hour
		s.order("tick", duty.Order{Run: 4}) // of yesterday
		for range 3 {
			s.works(engine.Config{Duties: []engine.Duty{slow}})
		}
		time.Sleep(10 * time.Second)
		expect(s, "rounds at the start", rounds.Load(), 3)
		s.order("tick", duty.Order{Run: 5})
		time.Sleep(10 * time.Second)
		expect(s, "rounds after an order", rounds.Load(), 6)
		s.order("tick", duty.Order{Run: 6, Paused: true})
		time.Sleep(time.Minute)
		expect(s, "rounds after an order during a pause", rounds.Load(), 9)
	})
}

func TestWhatCannotBePausedGoesOn(t *testing.T) {
	tell(t, func(s *scene) {
		for _, name := range duty.Fixed {
			s.order(name, duty.Order{Paused: true})
		}
		s.works(lease5, handling(func(ctx context.Context, _ *engine.Job[Note]) error {
			time.Sleep(time.Minute)
			return ctx.Err()
		}))
		expect(s, "token", s.becomes(s.enqueue(), holdfast.Complete).Token, 1)
	})
}

func TestDutiesReportHowTheyGoAndAWorkerThatLeavesTakesItsReportAlong(t *testing.T) {
	tell(t, func(s *scene) {
		trouble := engine.Duty{Name: "trouble", Beat: time.Second, Round: func(context.Context) error { return errTrouble }}
		one := s.works(engine.Config{Duties: []engine.Duty{trouble}})
		s.works(engine.Config{})
		time.Sleep(time.Minute)
		all := s.standings()
		for _, name := range []string{"claim", "promote", "reclaim", "expire", "sequence", "group", "schedule", "retention", "artifacts", "redrive", "duties", "renew", "probes"} {
			d := all[name]
			expect(s, name+": workers", d.Workers, 2)
			if name != "probes" && (d.Last.IsZero() || time.Since(d.Last) > 20*time.Second || d.Lag > 0) {
				t.Errorf("%s: %+v", name, d)
			}
		}
		if d := all["trouble"]; d.Workers != 1 || d.Error != errTrouble.Error() || time.Since(d.ErrorAt) > 20*time.Second {
			t.Errorf("trouble: %+v", d)
		}
		one.stop()
		expect(s, "workers after one has left", s.standings()["promote"].Workers, 1)
	})
}

func TestTheReportOfAWorkerThatDiedIsRemoved(t *testing.T) {
	tell(t, func(s *scene) {
		cut := storetest.NewFaulty(s.store) // the store of a worker that dies before it can report
		cut.Plan(storetest.Fault{Always: true}, storetest.Fault{Verb: "Await", Always: true})
		s.worksOn(cut, engine.Config{}).crash(cut)
		dying := storetest.NewFaulty(s.store)
		w := s.worksOn(dying, engine.Config{})
		s.works(engine.Config{})
		time.Sleep(20 * time.Second)
		expect(s, "workers", s.standings()["promote"].Workers, 2)
		w.crash(dying)
		time.Sleep(10 * time.Second)
		expect(s, "workers", s.standings()["promote"].Workers, 2)
		time.Sleep(3 * time.Minute)
		expect(s, "workers", s.standings()["promote"].Workers, 1)
	})
}

func TestDutiesThatCannotBePerformedAreRefused(t *testing.T) {
	round := func(context.Context) error { return nil }
	for _, d := range []engine.Duty{
		{Name: "promote", Beat: 1, Round: round}, {Name: "probes", Beat: 1, Round: round}, {Name: "a b", Beat: 1, Round: round},
		{Name: "x", Round: round}, {Name: "x", Beat: 1},
	} {
		if _, err := engine.New(&endless{}, engine.Config{Duties: []engine.Duty{d}}); !errors.Is(err, holdfast.ErrInvalid) {
			t.Errorf("%+v: %v", d, err)
		}
	}
}
