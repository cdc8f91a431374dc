package breaker

import (
	"fmt"
	"strings"
	"time"
)

// Force follows a person's word. Open is open as if calls had failed: it is probed in time. HalfOpen probes now. Closed comes
// back over the ramp, also from a forced state. ForcedOpen and ForcedClosed stay until a person says otherwise; Auto ends
// them and lets calls be the judge. What is so already changes nothing and is no error.
func (c Config) Force(s Circuit, to State, actor, reason string, now time.Time) (Circuit, []Transition, error) {
	off := c.Disabled
	c, now = c.filled(), now.Round(0).UTC()
	s = c.sound(s, now)
	actor, reason = strings.TrimSpace(strings.ToValidUTF8(actor, "")), short(reason, 500)
	if actor == "" {
		return s, nil, fmt.Errorf("nobody is named as the actor: say who forces the breaker")
	}
	if off && (to == Open || to == HalfOpen) {
		return s, nil, fmt.Errorf("the breaker is switched off, so %s would not last: use %s", to, ForcedOpen)
	}
	t, err := s.wish(to)
	if err != nil || t.To == s.State {
		return s, nil, err
	}
	t.Actor, t.Why = actor, reason
	if t.Why == "" {
		t.Why = "by hand"
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

// wish is the state in which a circuit follows a person's word.
func (s *Circuit) wish(to State) (t Transition, err error) {
	t.To = to
	switch to {
	case Open, ForcedOpen, ForcedClosed:
	case HalfOpen:
		if !s.State.Refuses() {
			err = fmt.Errorf("the breaker is %s: there is nothing to probe unless it is open", s.State)
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
		err = fmt.Errorf("%.40q is not what a breaker can be told: use %s, %s, %s, %s, %s or %s", to, Open, HalfOpen, Closed, ForcedOpen, ForcedClosed, Auto)
	}
	return t, err
}
