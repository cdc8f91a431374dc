package breaker

import (
	"strings"
	"testing"
	"time"
)

// in is a circuit that got into a state the usual way.
func in(t *testing.T, state State) *scene {
	c := begin(t, Config{})
	switch state {
	case Closed:
	case Open:
		c.see(bad(10), Open)
	case HalfOpen:
		c.see(bad(10), Open)
		c.pass(time.Minute, HalfOpen)
	case Recovering:
		c.see(bad(10), Open)
		c.pass(time.Minute, HalfOpen)
		c.see("..", Recovering)
	default:
		var err error
		if c.s, _, err = c.cfg.Force(c.s, state, "ada", "for a test", c.now); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

var states = []State{Closed, Open, HalfOpen, Recovering, ForcedOpen, ForcedClosed}

func TestEachCommandLeadsToItsState(t *testing.T) {
	const refused = State("refused")
	table := map[State]map[State]State{ // command: from: to
		Open:         {Closed: Open, Open: Open, HalfOpen: Open, Recovering: Open, ForcedOpen: Open, ForcedClosed: Open},
		Closed:       {Closed: Closed, Open: Recovering, HalfOpen: Recovering, Recovering: Recovering, ForcedOpen: Recovering, ForcedClosed: Closed},
		HalfOpen:     {Closed: refused, Open: HalfOpen, HalfOpen: refused, Recovering: refused, ForcedOpen: HalfOpen, ForcedClosed: refused},
		ForcedOpen:   {Closed: ForcedOpen, Open: ForcedOpen, HalfOpen: ForcedOpen, Recovering: ForcedOpen, ForcedOpen: ForcedOpen, ForcedClosed: ForcedOpen},
		ForcedClosed: {Closed: ForcedClosed, Open: ForcedClosed, HalfOpen: ForcedClosed, Recovering: ForcedClosed, ForcedOpen: ForcedClosed, ForcedClosed: ForcedClosed},
		Auto:         {Closed: Closed, Open: Open, HalfOpen: HalfOpen, Recovering: Recovering, ForcedOpen: HalfOpen, ForcedClosed: Closed},
		Recovering:   {Closed: refused, Open: refused},
		"ajar":       {Closed: refused, ForcedOpen: refused},
	}
	for command, row := range table {
		for from, want := range row {
			c := in(t, from)
			before := len(c.s.History)
			s, moved, err := c.cfg.Force(c.s, command, "grace", "the gateway is being moved", c.now)
			switch {
			case want == refused:
				if err == nil || moved != nil {
					t.Errorf("%s to %s: not refused", from, command)
				}
			case err != nil || s.State != want:
				t.Errorf("%s command %s: %s, want %s, %v", from, command, s.State, want, err)
			case (s.State != from) != (len(moved) == 1) || len(s.History) != before+len(moved):
				t.Errorf("%s, command %s: transitions %v", from, command, moved)
			case len(moved) == 1 && (moved[0].Actor != "grace" || moved[0].Why != "the gateway is being moved" || s.Actor != "grace" || s.Reason == ""):
				t.Errorf("%s command %s: %+v", from, command, moved[0])
			}
		}
	}
}

func TestAForcedStateIgnoresEverythingButAPerson(t *testing.T) {
	for _, state := range []State{ForcedOpen, ForcedClosed} {
		c := in(t, state)
		c.see(bad(100))
		c.see(good(100))
		c.pass(1000 * time.Hour)
		for _, ok := range []bool{true, false} {
			var moved []Transition
			c.s, moved = c.cfg.Probed(c.s, ok, c.now)
			c.took(moved)
		}
		c.cfg.Disabled = true
		c.pass(time.Hour)
		if c.s.State != state || c.s.Recent != "" || c.cfg.Flow(c.s, c.now).Free != (state == ForcedClosed) {
			t.Errorf("%+v", c.s)
		}
	}
}

func TestOpenedByHandItIsProbedLikeAnyOther(t *testing.T) {
	c := begin(t, Config{})
	c.s, _, _ = c.cfg.Force(c.s, Open, "ada", "", c.now)
	if c.s.Until.Sub(c.now) != 30*time.Second {
		t.Errorf("open for %v", c.s.Until.Sub(c.now))
	}
	c.pass(30*time.Second, HalfOpen)
	if c.s.Actor != "" {
		t.Error("an automatic transition keeps the actor of the command")
	}
}

func TestForcingABreakerNeedsAnActor(t *testing.T) {
	for _, state := range states {
		if _, moved, err := (Config{}).Force(Snapshot{}, state, " ", "x", t0); err == nil || moved != nil {
			t.Errorf("%s: %v", state, moved)
		}
	}
	if _, _, err := (Config{Disabled: true}).Force(Snapshot{}, Open, "ada", "x", t0); err == nil || !strings.Contains(err.Error(), "forced-open") {
		t.Errorf("opening what is switched off: %v", err)
	}
	if s, _, err := (Config{Disabled: true}).Force(Snapshot{}, ForcedOpen, "ada", "x", t0); err != nil || (Config{Disabled: true}).Flow(s, t0).Free {
		t.Errorf("forcing open what is switched off: %v", err)
	}
}

func TestAnInvalidConfigIsRefusedWithEveryProblem(t *testing.T) {
	err := Config{
		Window: -1, MinCalls: -1, FailureRate: 50, SlowRate: -1, SlowCall: -1, Span: -1, OpenFor: -1, OpenMax: -1, Probes: -1, Successes: -1, Ramp: -1,
	}.Check()
	for _, field := range []string{"Window", "MinCalls", "FailureRate", "SlowRate", "SlowCall", "Span", "OpenFor", "OpenMax", "Probes", "Successes", "Ramp"} {
		if err == nil || !strings.Contains(err.Error(), "breaker: "+field) {
			t.Errorf("%s is not named", field)
		}
	}
	for _, bad := range []Config{{Window: 5, MinCalls: 6}, {MinCalls: 21}, {OpenFor: time.Hour, OpenMax: time.Minute}} {
		if bad.Check() == nil {
			t.Errorf("%+v passes", bad)
		}
	}
	for _, fine := range []Config{{}, defaults, {Span: time.Minute, MinCalls: 1000}, {OpenFor: time.Hour}} {
		if err := fine.Check(); err != nil {
			t.Error(err)
		}
	}
}
