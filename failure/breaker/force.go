package breaker

import (
	"fmt"
	"strings"
	"time"
)

// Force carries out a person's command. Open opens the breaker as failed calls would: it is probed later and recovers by
// itself. HalfOpen probes now. Closed recovers over the ramp, also from a forced state. ForcedOpen and ForcedClosed last
// until a person changes them; Auto ends them and evaluates calls again. A command for the current state changes nothing
// and is no error.
func (c Config) Force(s Snapshot, to State, actor, reason string, now time.Time) (Snapshot, []Transition, error) {
	off := c.Disabled
	c, now = c.filled(), now.Round(0).UTC()
	s = c.sound(s, now)
	actor, reason = strings.TrimSpace(strings.ToValidUTF8(actor, "")), short(reason, 500)
	if actor == "" {
		return s, nil, fmt.Errorf("no actor: name the person or program that changes the breaker")
	}
	if off && (to == Open || to == HalfOpen) {
		return s, nil, fmt.Errorf("the breaker is switched off, so it would not stay %s: use %s", to, ForcedOpen)
	}
	t, err := s.command(to)
	if err != nil || t.To == s.State {
		return s, nil, err
	}
	t.Actor, t.Why = actor, reason
	if t.Why == "" {
		t.Why = "manual change"
	}
	moved := s.move(t, now)
	s.Reason = reason
	switch t.To {
	case Open:
		s.Opens = max(s.Opens, 1)
		s.Until = now.Add(c.wait(s.Opens))
	case HalfOpen:
		s.Until = now.Add(c.OpenMax)
	case Recovering:
		s.Until = now.Add(c.Ramp)
	}
	return s, moved, nil
}

// command returns the transition that carries out a command.
func (s *Snapshot) command(to State) (t Transition, err error) {
	t.To = to
	switch to {
	case Open, ForcedOpen, ForcedClosed:
	case HalfOpen:
		if !s.State.Refuses() {
			err = fmt.Errorf("the breaker is %s: only an open breaker can be probed", s.State)
		}
	case Closed:
		switch s.State {
		case Open, HalfOpen, ForcedOpen, Recovering:
			t.To = Recovering
		}
	case Auto:
		switch s.State {
		case ForcedOpen:
			t.To = HalfOpen
		case ForcedClosed:
			t.To = Closed
		default:
			t.To = s.State
		}
	default:
		err = fmt.Errorf("%.40q is not a command for a breaker: use %s, %s, %s, %s, %s or %s", to, Open, HalfOpen, Closed, ForcedOpen, ForcedClosed, Auto)
	}
	return t, err
}
