package breaker

import (
	"fmt"
	"iter"
	"math"
	"strings"
	"time"
)

// A Slot counts the calls in a tenth of Config.Span.
type Slot struct {
	At       time.Time `json:"at"`
	Calls    int       `json:"calls"`
	Failures int       `json:"failures,omitempty"`
	Slow     int       `json:"slow,omitempty"`
}

// A call is one observed call, or several equal ones.
type call struct {
	bad, slow bool
	times     int
}

// sound replaces inconsistent numbers by the nearest consistent ones.
func (o Observation) sound() Observation {
	o.Calls = min(max(o.Calls, 0), math.MaxInt32)
	if len(o.Sequence) != o.Calls {
		o.Sequence = nil
		o.Failures = min(max(o.Failures, 0), o.Calls)
	} else {
		o.Failures = 0
		for _, bad := range o.Sequence {
			if bad {
				o.Failures++
			}
		}
	}
	o.Slow = min(max(o.Slow, 0), o.Calls)
	return o
}

// each yields the calls in order. Which of them were slow is not known: the last are taken to be. Without a sequence, equal
// calls are yielded together.
func (o Observation) each(c Config) iter.Seq[call] {
	if c.SlowCall <= 0 {
		o.Slow = 0
	}
	return func(yield func(call) bool) {
		if o.Sequence == nil {
			o.runs(yield)
			return
		}
		for i, bad := range o.Sequence {
			if !yield(call{bad: bad, slow: i >= o.Calls-o.Slow, times: 1}) {
				return
			}
		}
	}
}

func (o Observation) runs(yield func(call) bool) {
	good := o.Calls - o.Failures
	slowBad := min(o.Slow, o.Failures)
	slowGood := o.Slow - slowBad
	for _, run := range []call{
		{times: good - slowGood}, {slow: true, times: slowGood}, {bad: true, times: o.Failures - slowBad}, {bad: true, slow: true, times: slowBad},
	} {
		if run.times > 0 && !yield(run) {
			return
		}
	}
}

// addToWindow adds a call to the window, by count or by time.
func (c Config) addToWindow(s *Snapshot, call call, now time.Time) {
	if c.Span > 0 {
		s.Recent = ""
		c.slot(s, call, now)
		return
	}
	s.Slots = nil
	letter := "."
	switch {
	case call.bad && call.slow:
		letter = "X"
	case call.bad:
		letter = "x"
	case call.slow:
		letter = "s"
	}
	s.Recent += strings.Repeat(letter, min(call.times, c.Window))
	s.Recent = s.Recent[max(0, len(s.Recent)-c.Window):]
}

// slot adds a call to the slot of its time and drops slots that are too old, or so far in the future that the clock must
// have been set back.
func (c Config) slot(s *Snapshot, call call, now time.Time) {
	at := now.Truncate(max(c.Span/10, time.Millisecond))
	kept := make([]Slot, 0, len(s.Slots)+1)
	for _, slot := range s.Slots {
		if age := at.Sub(slot.At); age < c.Span && age > -c.Span {
			kept = append(kept, slot)
		}
	}
	s.Slots = kept[max(0, len(kept)-maxSlots):]
	last := len(s.Slots) - 1
	if last < 0 || s.Slots[last].At.Before(at) {
		s.Slots = append(s.Slots, Slot{At: at})
		last++
	}
	slot := &s.Slots[last]
	slot.Calls += call.times
	if call.bad {
		slot.Failures += call.times
	}
	if call.slow {
		slot.Slow += call.times
	}
}

// maxSlots is more than the number of slots that a span is divided into.
const maxSlots = 20

// counts returns the numbers of calls in the window.
func (c Config) counts(s *Snapshot) (calls, failures, slow int) {
	if c.Span > 0 {
		for _, slot := range s.Slots {
			calls, failures, slow = calls+slot.Calls, failures+slot.Failures, slow+slot.Slow
		}
		return calls, failures, slow
	}
	slowBad := strings.Count(s.Recent, "X")
	return len(s.Recent), strings.Count(s.Recent, "x") + slowBad, strings.Count(s.Recent, "s") + slowBad
}

// openReason says why the breaker must open; empty: it need not.
func (c Config) openReason(s *Snapshot) string {
	calls, failures, slow := c.counts(s)
	if calls < c.MinCalls {
		return ""
	}
	of := fmt.Sprintf("of the last %d calls", calls)
	if c.Span > 0 {
		of = fmt.Sprintf("of %d calls in the last %v", calls, c.Span)
	}
	switch {
	case failures > 0 && float64(failures) >= c.FailureRate*float64(calls):
		return fmt.Sprintf("%d %s failed", failures, of)
	case c.SlowCall > 0 && slow > 0 && float64(slow) >= c.SlowRate*float64(calls):
		return fmt.Sprintf("%d %s took longer than %v", slow, of, c.SlowCall)
	}
	return ""
}

// The rate of calls is measured in steps, and a peak counts half after ten minutes.
const (
	meterStep = 10 * time.Second
	halfLife  = 10 * time.Minute
)

// meter counts good calls while the breaker is closed. The peak is the rate that the dependency is known to handle, where
// the ramp ends. Many processes report to one circuit, so the calls of a step are added up.
func (s *Snapshot) meter(o Observation, now time.Time) {
	if s.State != Closed {
		return
	}
	step := now.Truncate(meterStep)
	if gone := step.Sub(s.Metered); gone != 0 {
		if gone > 0 && !s.Metered.IsZero() {
			s.Peak *= math.Exp2(-float64(gone) / float64(halfLife))
		}
		s.Metered, s.Meter = step, 0
	}
	calls := float64(o.Calls - o.Failures)
	if o.Over > meterStep {
		calls *= float64(meterStep) / float64(o.Over)
	}
	s.Meter += calls
	s.Peak = min(max(s.Peak, s.Meter/meterStep.Seconds()), maxRate)
	if math.IsNaN(s.Peak) {
		s.Peak = 0
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
