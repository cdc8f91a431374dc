// Package breaker implements circuit breakers as pure functions. A [Circuit] is the state of one dependency's breaker and a
// [Config] its rules. Each method of Config takes a circuit and an input (observed calls, the time, a health probe, a
// person's command) and returns the next circuit with the transitions that led to it.
//
//	next, moved := config.Observe(circuit, breaker.Observation{Calls: 20, Failures: 12, Code: "GW_5XX"}, now)
//	if next.State.Refuses() { // open: hold the jobs that call the dependency
//		...
//	}
//
// # States
//
// A closed breaker opens when the share of failed or slow calls in its window reaches the configured rate. It stays open for
// OpenFor, twice as long each time it opens again, and then becomes half-open: Probes jobs at a time may call the dependency. One
// failed call opens it again; Successes good calls, or OpenMax without a failed call, make it recovering. While it is recovering the
// number of jobs per second grows over Ramp, and it is closed at the end of the ramp unless calls fail again. A health probe
// (Guard, Probed) can take the place of jobs as probes. A person can force a breaker open or closed; only a person ends that.
//
// # Sharing
//
// The package reads no clock and keeps no state. A circuit marshals to JSON, so callers store it as one record and update it by
// compare-and-set: all processes then share one breaker, and it survives every process. Each transition is returned to
// exactly one caller whose write succeeds, so events and holds that the caller writes together with the record are written once.
package breaker

import (
	"strings"
	"time"
)

// A State is the state of a breaker. It decides which calls are allowed.
type State string

const (
	Closed       State = "closed"        // all calls
	Open         State = "open"          // no calls, until the next probe
	HalfOpen     State = "half-open"     // a few calls at a time, as probes
	Recovering   State = "recovering"    // a growing number of calls
	ForcedOpen   State = "forced-open"   // no calls, by a person's command
	ForcedClosed State = "forced-closed" // all calls, by a person's command

	// Auto is no state of a breaker: it asks Force to end a forced state and to evaluate calls again.
	Auto State = "auto"
)

// Forced reports whether a person set the state; only a person can end it.
func (s State) Forced() bool { return s == ForcedOpen || s == ForcedClosed }

// Refuses reports whether no calls are allowed.
func (s State) Refuses() bool { return s == Open || s == ForcedOpen }

// System is the actor of automatic transitions.
const System = "holdfast"

// IsSystem reports whether an actor is an engine: System, or System followed by the key with which an engine works over
// HTTP. No person may use such a name.
func IsSystem(actor string) bool {
	return strings.EqualFold(actor, System) || len(actor) > len(System) && strings.EqualFold(actor[:len(System)+1], System+" ")
}

// A Snapshot is everything that is known about one dependency. The zero value is closed and has seen no calls.
type Snapshot struct {
	State State     `json:"state"`
	Since time.Time `json:"since,omitzero"`  // start of this state; calls that began earlier are not counted
	Until time.Time `json:"until,omitzero"`  // open: when it is probed; half-open: when it recovers if no call fails; recovering: when it closes
	Opens int       `json:"opens,omitempty"` // times it opened since it was last closed
	Good  int       `json:"good,omitempty"`  // successful probes
	Slow  int       `json:"slow,omitempty"`  // slow ones among Good

	Recent string `json:"recent,omitempty"` // the last calls, oldest first: . good, x bad, s slow but good, X slow and bad
	Slots  []Slot `json:"slots,omitempty"`  // with Config.Span instead of Recent: calls by time

	Code    string `json:"code,omitempty"`    // of the last failure
	Message string `json:"message,omitempty"` // of the last failure
	Actor   string `json:"actor,omitempty"`   // the person whose command set the current state, if one did
	Reason  string `json:"reason,omitempty"`

	Peak    float64   `json:"peak,omitempty"`  // good calls per second in the busiest time before it opened
	Meter   float64   `json:"meter,omitempty"` // good calls since Metered
	Metered time.Time `json:"metered,omitzero"`

	Probing      string    `json:"probing,omitempty"` // process that runs health probes
	ProbingUntil time.Time `json:"probing_until,omitzero"`

	History []Transition `json:"history,omitempty"` // the last 50, oldest first
}

// A Transition is one change of a breaker's state.
type Transition struct {
	From  State     `json:"from"`
	To    State     `json:"to"`
	At    time.Time `json:"at"`
	Why   string    `json:"why,omitempty"`
	Actor string    `json:"actor,omitempty"`
}

// An Observation is a set of calls of a dependency. It contains only calls that show something about the dependency:
// attempts that failed because of a user, a shutdown or our own program are left out.
type Observation struct {
	Calls    int
	Failures int
	Slow     int    // longer than Config.SlowCall, whether they failed or not
	Code     string // of the last failure
	Message  string
	Sequence []bool        // true is a failed call, in the order they ended; ignored unless it has Calls entries, and then the failed calls are taken to be the last
	Over     time.Duration // time span of the calls
}

// Observe evaluates calls one after the other and stops at the first transition, because the remaining calls began in the
// state before it. The caller must leave out calls that began before Circuit.Since: a call that began before the breaker
// opened says nothing about the dependency after that. While the breaker is open, forced or disabled, observations are
// ignored.
func (c Config) Observe(s Snapshot, o Observation, now time.Time) (Snapshot, []Transition) {
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
	if s.State == HalfOpen && o.Sequence == nil && o.Failures > 0 { // the order is not known: assume that the failures came first
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

// judge adds a call to the window and opens the breaker if the rates are exceeded.
func (c Config) judge(s *Snapshot, call call, now time.Time) []Transition {
	c.addToWindow(s, call, now)
	if s.State == Recovering {
		c.MinCalls = min(c.MinCalls, recoveringCalls)
	}
	if why := c.openReason(s); why != "" {
		return c.open(s, why+s.last(), now)
	}
	return nil
}

// recoveringCalls is the minimum number of calls to evaluate while recovering, because the dependency was down a moment ago.
const recoveringCalls = 5

// probe counts a call in state half-open, or a health probe.
func (c Config) probe(s *Snapshot, call call, now time.Time) []Transition {
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

// Tick applies the passage of time: it lets an open breaker be probed when that is due, and moves on a half-open breaker
// without calls and a recovering one when their time has passed. Each step is taken once, however often and late Tick is
// called.
func (c Config) Tick(s Snapshot, now time.Time) (Snapshot, []Transition) {
	c, now = c.filled(), now.Round(0).UTC()
	s = c.sound(s, now)
	passed := max(now.Sub(s.Since), 0).Round(time.Second).String()
	var moved []Transition
	switch {
	case c.Disabled && !s.State.Forced() && s.State != Closed:
		moved = s.move(Transition{To: Closed, Why: "the breaker was switched off"}, now)
	case now.Before(s.Until):
	case s.State == Open && !s.guarded(now):
		moved = s.move(Transition{To: HalfOpen, Why: "probing after " + passed}, now)
		s.Until = now.Add(c.OpenMax)
	case s.State == HalfOpen:
		moved = c.recover(&s, "no call failed for "+passed, now)
	case s.State == Recovering:
		moved = s.move(Transition{To: Closed, Why: "recovered for " + passed}, now)
	}
	return s, moved
}

// Guard makes a process, who, the one that runs health probes on an open breaker for the time lease; meanwhile no job is
// used as a probe. It returns false if the breaker is not open or another process probes it. If the process dies, another
// one can take over when the lease has passed.
func (c Config) Guard(s Snapshot, who string, lease time.Duration, now time.Time) (Snapshot, bool) {
	c, now = c.filled(), now.Round(0).UTC()
	s = c.sound(s, now)
	if s.State != Open || who == "" || s.guarded(now) && s.Probing != who {
		return s, false
	}
	s.Probing, s.ProbingUntil = who, now.Add(min(max(lease, 0), c.OpenMax))
	return s, true
}

// Probed records the result of a health probe. Config.Successes good probes let an open breaker recover without the risk of
// a job; a failed one postpones the next probe. In other states it changes nothing, because calls of jobs show more.
func (c Config) Probed(s Snapshot, ok bool, now time.Time) (Snapshot, []Transition) {
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

// open opens the breaker, for longer each time in a row.
func (c Config) open(s *Snapshot, why string, now time.Time) []Transition {
	s.Opens = min(max(s.Opens, 0)+1, 1<<30)
	moved := s.move(Transition{To: Open, Why: why}, now)
	s.Until = now.Add(c.wait(s.Opens))
	return moved
}

func (c Config) recover(s *Snapshot, why string, now time.Time) []Transition {
	moved := s.move(Transition{To: Recovering, Why: why}, now)
	s.Until = now.Add(c.Ramp)
	return moved
}

// wait returns how long the breaker stays open at the n-th time in a row.
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

// MaxTransitions is the number of transitions that a circuit keeps.
const MaxTransitions = 50

// move is the only place where a state changes. It clears what belongs to the old state and records the transition. The
// window is kept only from recovering to closed, because calls continue there without interruption.
func (s *Snapshot) move(t Transition, now time.Time) []Transition {
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
	if extra := len(s.History) - MaxTransitions; extra > 0 {
		s.History = s.History[extra:]
	}
	return []Transition{t}
}

// guarded reports whether a process runs health probes, so that no job is needed as a probe.
func (s *Snapshot) guarded(now time.Time) bool { return s.Probing != "" && now.Before(s.ProbingUntil) }

// last describes the last failure, as the end of a sentence.
func (s *Snapshot) last() string {
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

// sound repairs a circuit that was read from storage: an unknown state counts as closed. If the clock was set back by more
// than clockTolerance, the circuit's times are moved with it, so that nothing waits for a time that is far away.
func (c Config) sound(s Snapshot, now time.Time) Snapshot {
	switch s.State {
	case Closed, Open, HalfOpen, Recovering, ForcedOpen, ForcedClosed:
	default:
		s.State = Closed
	}
	if s.Since.Sub(now) > clockTolerance {
		s.Since, s.Slots, s.Meter, s.Metered = now, nil, 0, time.Time{}
	}
	longest := map[State]time.Duration{Open: c.OpenMax, HalfOpen: c.OpenMax, Recovering: c.Ramp}[s.State]
	if s.Until.Sub(now) > longest+clockTolerance {
		s.Until = now.Add(longest)
	}
	if s.ProbingUntil.Sub(now) > c.OpenMax+clockTolerance {
		s.Probing, s.ProbingUntil = "", time.Time{}
	}
	return s
}

// clockTolerance is the difference between clocks that is tolerated from call to call.
const clockTolerance = 5 * time.Second

// short turns a text into one clean line of limited length that survives as JSON.
func short(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), 4*limit)], "")), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
