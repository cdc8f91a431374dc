package console

import (
	"fmt"
	"html/template"
	"time"

	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/ops"
)

// pastSpans are how much of a breaker's past is drawn: the shortest that has all of it in it.
var pastSpans = []time.Duration{15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour}

// pastSpan is the span for a breaker. One of which nothing is told has a quiet day behind it.
func pastSpan(b ops.Breaker, now time.Time) time.Duration {
	whole := pastSpans[len(pastSpans)-1]
	if len(b.History) == 0 {
		return whole
	}
	begun := now.Sub(b.History[len(b.History)-1].At)
	if len(b.History) >= breaker.Remembered && begun < whole {
		return max(begun, time.Minute) // what was before that is not known any more
	}
	for _, one := range pastSpans {
		if begun < one*9/10 {
			return one
		}
	}
	return whole
}

// A past is how a breaker stood lately.
type past struct {
	From, To time.Time
	Spells   []spell
	Opened   int           // times
	Away     time.Duration // how long nothing was called
}

// A spell is a while in one state.
type spell struct {
	State    breaker.State // empty: not known any more
	From, To time.Time
}

// pastOf puts transitions together, which are given the newest first. Clocks may step back: a spell is never shorter than nothing.
func pastOf(b ops.Breaker, now time.Time) past {
	p := past{From: now.Add(-pastSpan(b, now)), To: now}
	state, from := b.State, p.From
	if len(b.History) > 0 {
		state = b.History[len(b.History)-1].From
	}
	for n := len(b.History) - 1; n >= 0; n-- {
		one := b.History[n]
		if at := one.At; at.After(from) && at.Before(now) {
			p.add(spell{state, from, at})
			from = at
		}
		if state = one.To; !one.At.Before(p.From) && one.To.Refuses() && !one.From.Refuses() {
			p.Opened++
		}
	}
	p.add(spell{b.State, from, now})
	return p
}

func (p *past) add(s spell) {
	p.Spells = append(p.Spells, s)
	if s.State.Refuses() {
		p.Away += s.To.Sub(s.From)
	}
}

// Span is how long ago the past begins.
func (p past) Span() time.Duration { return p.To.Sub(p.From) }

// Words tell the past in a line.
func (p past) Words() string {
	span := took(p.Span())
	switch {
	case p.Opened == 0 && p.Away == 0:
		return "Not open in the last " + span
	case p.Opened == 0:
		return "Open for " + took(p.Away) + " of the last " + span
	case p.Opened == 1:
		return "Opened once in the last " + span + ", open for " + took(p.Away)
	}
	return fmt.Sprintf("Opened %s times in the last %s, open for %s", num(p.Opened), span, took(p.Away))
}

// draw draws the past as a strip, the oldest on the left.
func (p past) draw(c clock) template.HTML {
	const width, height = 480, 14
	tones := map[breaker.State]string{breaker.Closed: "good", breaker.Open: "bad", breaker.ForcedOpen: "bad", breaker.HalfOpen: "hold", breaker.Recovering: "hold", breaker.ForcedClosed: "accent"}
	d := draw("strip", width, height, p.Words()+".")
	scale := width / p.To.Sub(p.From).Seconds()
	for _, one := range p.Spells {
		x, wide := one.From.Sub(p.From).Seconds()*scale, one.To.Sub(one.From).Seconds()*scale
		if one.State != breaker.Closed {
			wide = max(wide, 1.5)
		}
		words := fmt.Sprintf("%s from %s to %s, %s", signOfBreaker(one.State).Word, one.From.In(c.zone).Format("15:04"), one.To.In(c.zone).Format("15:04"), took(one.To.Sub(one.From)))
		d.rect("chart-"+tones[one.State], [4]float64{min(x, width-1.5), 0, wide, height}, words)
	}
	return d.done()
}
