// Package breaker judges whether a dependency can be called. A [Circuit] is what is known about one, a [Config] is how to
// judge it; an observation, the passing of time, a probe or a person's word goes in, and the next circuit comes out with the
// transitions that led there.
//
// The package is pure: it reads no clock and keeps nothing. A circuit is a value that survives as JSON, so that whoever
// keeps it in one place, by compare-and-set, has one breaker for a whole cluster, and its knowledge outlives every process.
package breaker

import (
	"strings"
	"time"
)

// A State is what a circuit lets through.
type State string

const (
	Closed       State = "closed"        // everything
	Open         State = "open"          // nothing, until it is time to probe
	HalfOpen     State = "half-open"     // a few at a time, to see
	Recovering   State = "recovering"    // more and more
	ForcedOpen   State = "forced-open"   // nothing, because a person said so
	ForcedClosed State = "forced-closed" // everything, because a person said so

	// Auto is no state of a circuit: it asks Force to leave a forced one and to judge again.
	Auto State = "auto"
)

// Forced reports whether a person chose the state; only a person leaves it.
func (s State) Forced() bool { return s == ForcedOpen || s == ForcedClosed }

// Refuses reports whether nothing may be called.
func (s State) Refuses() bool { return s == Open || s == ForcedOpen }

// System is the actor of transitions that nobody made.
const System = "holdfast"

// IsSystem reports whether an actor is an engine: System, or System and the key by which an engine works over HTTP. No person is named so.
func IsSystem(actor string) bool {
	return strings.EqualFold(actor, System) || len(actor) > len(System) && strings.EqualFold(actor[:len(System)+1], System+" ")
}

// A Circuit is everything known about one dependency. The zero value is a closed one that has seen nothing.
type Circuit struct {
	State State     `json:"state"`
	Since time.Time `json:"since,omitzero"`  // in this state; what calls that began earlier say is not for it
	Until time.Time `json:"until,omitzero"`  // open: then it is probed; half-open: then silence counts as good; recovering: then it is closed
	Opens int       `json:"opens,omitempty"` // how often in a row, without having been closed in between
	Good  int       `json:"good,omitempty"`  // probes that succeeded
	Slow  int       `json:"slow,omitempty"`  // of those, slow

	Recent string `json:"recent,omitempty"` // the last calls, oldest first: . good, x bad, s slow but good, X slow and bad
	Slots  []Slot `json:"slots,omitempty"`  // or, with Config.Span, how many there were at what time

	Code    string `json:"code,omitempty"`    // of the last failure
	Message string `json:"message,omitempty"` // of the last failure
	Actor   string `json:"actor,omitempty"`   // the person whose word it last followed, while it does
	Reason  string `json:"reason,omitempty"`

	Peak    float64   `json:"peak,omitempty"`  // good calls a second in the busiest time before it opened
	Meter   float64   `json:"meter,omitempty"` // good calls since Metered
	Metered time.Time `json:"metered,omitzero"`

	Probing      string    `json:"probing,omitempty"` // who watches over it with a health probe
	ProbingUntil time.Time `json:"probing_until,omitzero"`

	History []Transition `json:"history,omitempty"` // the last 50, oldest first
}

// A Transition is one change of a circuit's state.
type Transition struct {
	From  State     `json:"from"`
	To    State     `json:"to"`
	At    time.Time `json:"at"`
	Why   string    `json:"why,omitempty"`
	Actor string    `json:"actor,omitempty"`
}

// An Observation is what calls of a dependency came to. Only calls that say something about the dependency are in it: what
// a user, a shutdown or our own program spoiled is no call.
type Observation struct {
	Calls    int
	Failures int
	Slow     int    // longer than Config.SlowCall, whether they failed or not
	Code     string // of the last failure
	Message  string
	Sequence []bool        // true is bad, in the order they ended; when it has not Calls entries the bad ones are taken to be the last
	Over     time.Duration // how long it took to gather
}

// Observe judges calls one after the other. With the first transition the rest is void: it began before. Calls that began
// before Circuit.Since must be left out by the caller.
func (c Config) Observe(s Circuit, o Observation, now time.Time) (Circuit, []Transition) {
	c, now = c.filled(), now.Round(0).UTC()
	s = c.sound(s, now)
	o = o.sound()
	if c.Disabled || o.Calls == 0 || s.State.Forced() || s.State == Open {
		return s, nil
	}
	if o.Failures > 0 {
		s.Code, s.Message = short(o.Code, 64), short(o.Message, 300)
	}
	s.meter(o, now)
	if s.State == HalfOpen && o.Sequence == nil && o.Failures > 0 { // in what order is not known: believe the worst
		o.Calls, o.Slow = o.Failures, 0
	}
	for call := range o.each(c) {
		var moved []Transition
		switch s.State {
		case HalfOpen:
			moved = c.probe(&s, call, now)
		default:
			moved = c.judge(&s, call, now)
		}
		if moved != nil {
			return s, moved
		}
	}
	return s, nil
}

// judge adds a call to the window and opens the circuit if that is too much.
func (c Config) judge(s *Circuit, call call, now time.Time) []Transition {
	c.remember(s, call, now)
	if s.State == Recovering {
		c.MinCalls = min(c.MinCalls, recoveringCalls)
	}
	if why := c.verdict(s); why != "" {
		return c.open(s, why+s.last(), now)
	}
	return nil
}

// recoveringCalls are enough to judge a dependency that was away a moment ago.
const recoveringCalls = 5

// probe counts calls that are made to see whether the dependency is back.
func (c Config) probe(s *Circuit, call call, now time.Time) []Transition {
	if call.bad {
		return c.open(s, "a probe failed"+s.last(), now)
	}
	s.Good += call.times
	if call.slow {
		s.Slow += call.times
	}
	if s.Good < c.Successes {
		return nil
	}
	if c.SlowCall > 0 && float64(s.Slow) >= c.SlowRate*float64(s.Good) {
		return c.open(s, "the probes took longer than "+c.SlowCall.String(), now)
	}
	return c.recover(s, plural(s.Good, "probe")+" succeeded", now)
}

// Tick lets time pass: an open circuit is probed when that is due, one that was probed in silence or has recovered for long
// enough moves on. However often and late it is called, each step is taken once.
func (c Config) Tick(s Circuit, now time.Time) (Circuit, []Transition) {
	c, now = c.filled(), now.Round(0).UTC()
	s = c.sound(s, now)
	passed := max(now.Sub(s.Since), 0).Round(time.Second).String()
	var moved []Transition
	switch {
	case c.Disabled && !s.State.Forced() && s.State != Closed:
		moved = s.move(Transition{To: Closed, Why: "the breaker was switched off"}, now)
	case now.Before(s.Until):
	case s.State == Open && !s.guarded(now):
		moved = s.move(Transition{To: HalfOpen, Why: "after " + passed + " it is time to probe"}, now)
		s.Until = now.Add(c.OpenMax)
	case s.State == HalfOpen:
		moved = c.recover(&s, "nothing spoke against it for "+passed, now)
	case s.State == Recovering:
		moved = s.move(Transition{To: Closed, Why: "it has been well for " + passed}, now)
	}
	return s, moved
}

// Guard makes somebody the one who watches over an open circuit with a health probe, for so long: meanwhile no job is sent
// to probe. It reports whether that is so: somebody else may be at it. A watcher that dies is one no longer when its time is
// over.
func (c Config) Guard(s Circuit, who string, lease time.Duration, now time.Time) (Circuit, bool) {
	c, now = c.filled(), now.Round(0).UTC()
	s = c.sound(s, now)
	if s.State != Open || who == "" || s.guarded(now) && s.Probing != who {
		return s, false
	}
	s.Probing, s.ProbingUntil = who, now.Add(min(max(lease, 0), c.OpenMax))
	return s, true
}

// Probed takes the result of a health probe. As many good ones as it takes good calls bring an open circuit back without a
// job being risked; a bad one puts off the next try. When nothing is open it changes nothing, for calls say more.
func (c Config) Probed(s Circuit, ok bool, now time.Time) (Circuit, []Transition) {
	c, now = c.filled(), now.Round(0).UTC()
	s = c.sound(s, now)
	var moved []Transition
	switch {
	case c.Disabled || s.State != Open && s.State != HalfOpen:
	case ok:
		moved = c.probe(&s, call{times: 1}, now)
	case s.State == HalfOpen:
		moved = c.open(&s, "the health probe failed", now)
	default:
		s.Good, s.Slow = 0, 0
		s.Until = now.Add(c.wait(s.Opens))
	}
	return s, moved
}

// open lets nothing through for a while, longer each time in a row.
func (c Config) open(s *Circuit, why string, now time.Time) []Transition {
	s.Opens = min(max(s.Opens, 0)+1, 1<<30)
	moved := s.move(Transition{To: Open, Why: why}, now)
	s.Until = now.Add(c.wait(s.Opens))
	return moved
}

func (c Config) recover(s *Circuit, why string, now time.Time) []Transition {
	moved := s.move(Transition{To: Recovering, Why: why}, now)
	s.Until = now.Add(c.Ramp)
	return moved
}

// wait is how long the circuit stays open at the n-th time in a row.
func (c Config) wait(n int) time.Duration {
	d := c.OpenFor
	for ; n > 1 && d < c.OpenMax; n-- {
		if d > c.OpenMax/2 {
			return c.OpenMax
		}
		d *= 2
	}
	return d
}

// Remembered bounds a circuit's memory of its transitions.
const Remembered = 50

// move is the only place where a state changes: what belonged to the old one is forgotten and the change is written down. The
// window is kept only from recovering to closed, which is the same life going on.
func (s *Circuit) move(t Transition, now time.Time) []Transition {
	t.From, t.At = s.State, now
	if !(t.From == Recovering && t.To == Closed) {
		s.Recent, s.Slots = "", nil
	}
	s.Actor, s.Reason = t.Actor, ""
	if t.Actor == "" {
		t.Actor = System
	}
	if t.To == Closed || t.To == ForcedClosed {
		s.Opens = 0
	}
	s.State, s.Since, s.Until = t.To, now, time.Time{}
	s.Good, s.Slow, s.Probing, s.ProbingUntil = 0, 0, "", time.Time{}
	s.History = append(s.History[:len(s.History):len(s.History)], t)
	if extra := len(s.History) - Remembered; extra > 0 {
		s.History = s.History[extra:]
	}
	return []Transition{t}
}

// guarded reports whether a health probe stands in for jobs.
func (s *Circuit) guarded(now time.Time) bool { return s.Probing != "" && now.Before(s.ProbingUntil) }

// last tells of the last failure, as the end of a sentence.
func (s *Circuit) last() string {
	switch {
	case s.Code == "" && s.Message == "":
		return ""
	case s.Message == "":
		return ", last " + s.Code
	case s.Code == "":
		return ", last: " + s.Message
	}
	return ", last " + s.Code + ": " + s.Message
}

// sound makes whatever was read a circuit: an unknown state is a closed one. When the clock was set back by more than a
// little the circuit's times follow it, so that nothing waits for an instant that is far away.
func (c Config) sound(s Circuit, now time.Time) Circuit {
	switch s.State {
	case Closed, Open, HalfOpen, Recovering, ForcedOpen, ForcedClosed:
	default:
		s.State = Closed
	}
	if s.Since.Sub(now) > settling {
		s.Since, s.Slots, s.Meter, s.Metered = now, nil, 0, time.Time{}
	}
	longest := map[State]time.Duration{Open: c.OpenMax, HalfOpen: c.OpenMax, Recovering: c.Ramp}[s.State]
	if s.Until.Sub(now) > longest+settling {
		s.Until = now.Add(longest)
	}
	if s.ProbingUntil.Sub(now) > c.OpenMax+settling {
		s.Probing, s.ProbingUntil = "", time.Time{}
	}
	return s
}

// settling is by how much the clocks of one store may differ from call to call.
const settling = 5 * time.Second

// short makes a text one clean line that survives as JSON.
func short(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), 4*limit)], "")), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
