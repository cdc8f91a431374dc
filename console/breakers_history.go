package console

import (
	"fmt"
	"html/template"
	"time"

	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/ops"
)

// historySpans are the ranges of the history picture. The shortest that contains all transitions is used.
var historySpans = []time.Duration{15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

// historySpan returns the range for a breaker: a day if it has no transitions.
func historySpan(b ops.Breaker, now time.Time) time.Duration {
	whole := historySpans[len(historySpans)-1]
	if len(b.History) == 0 {
		return whole
	}
	begun := now.Sub(b.History[len(b.History)-1].At)
	if len(b.History) >= breaker.MaxTransitions && begun < whole {
		return max(begun, time.Minute) // earlier transitions are no longer stored
	}
	for _, one := range historySpans {
		if begun < one*9/10 {
			return one
		}
	}
	return whole
}

// recentStates are the recent states of a breaker.
type recentStates struct {
	From, To time.Time
	Periods  []statePeriod
	Opened   int           // number of times
	Away     time.Duration // total time open
}

// A statePeriod is a period in one state.
type statePeriod struct {
	State    breaker.State // empty if unknown
	From, To time.Time
}

// recentStatesOf computes the periods from the transitions, which are newest first. Clocks may step back: a period never has a negative duration.
func recentStatesOf(b ops.Breaker, now time.Time) recentStates {
	p := recentStates{From: now.Add(-historySpan(b, now)), To: now}
	state, from := b.State, p.From
	if len(b.History) > 0 {
		state = b.History[len(b.History)-1].From
	}
	for n := len(b.History) - 1; n >= 0; n-- {
		one := b.History[n]
		if at := one.At; at.After(from) && at.Before(now) {
			p.add(statePeriod{state, from, at})
			from = at
		}
		if state = one.To; !one.At.Before(p.From) && one.To.Refuses() && !one.From.Refuses() {
			p.Opened++
		}
	}
	p.add(statePeriod{b.State, from, now})
	return p
}

func (p *recentStates) add(s statePeriod) {
	p.Periods = append(p.Periods, s)
	if s.State.Refuses() {
		p.Away += s.To.Sub(s.From)
	}
}

// Span returns the length of the range.
func (p recentStates) Span() time.Duration { return p.To.Sub(p.From) }

// Words returns the history in a line.
func (p recentStates) Words() string {
	span := formatDuration(p.Span())
	switch {
	case p.Opened == 0 && p.Away == 0:
		return "Not open in the last " + span
	case p.Opened == 0:
		return "Open for " + formatDuration(p.Away) + " of the last " + span
	case p.Opened == 1:
		return "Opened once in the last " + span + ", open for " + formatDuration(p.Away)
	}
	return fmt.Sprintf("Opened %s times in the last %s, open for %s", num(p.Opened), span, formatDuration(p.Away))
}

// draw draws the history as a strip, the oldest on the left.
func (p recentStates) draw(c clock) template.HTML {
	const width, height = 480, 14
	tones := map[breaker.State]string{breaker.Closed: "good", breaker.Open: "bad", breaker.ForcedOpen: "bad", breaker.HalfOpen: "hold", breaker.Recovering: "hold", breaker.ForcedClosed: "accent"}
	d := draw("strip", width, height, p.Words()+".")
	scale := width / p.To.Sub(p.From).Seconds()
	for _, one := range p.Periods {
		x, wide := one.From.Sub(p.From).Seconds()*scale, one.To.Sub(one.From).Seconds()*scale
		if one.State != breaker.Closed {
			wide = max(wide, 1.5)
		}
		words := fmt.Sprintf("%s from %s to %s, %s", breakerBadge(one.State).Word, one.From.In(c.zone).Format("15:04"), one.To.In(c.zone).Format("15:04"), formatDuration(one.To.Sub(one.From)))
		d.rect("chart-"+tones[one.State], [4]float64{min(x, width-1.5), 0, wide, height}, words)
	}
	return d.done()
}
