package console

import (
	"fmt"
	"html/template"
	"time"

	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/ops"
)

// pastSpan is how much of a breaker's past is drawn.
const pastSpan = 24 * time.Hour

// A past is how a breaker stood over the last day.
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
	p := past{From: now.Add(-pastSpan), To: now}
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

// Words tell the past in a line.
func (p past) Words() string {
	switch {
	case p.Opened == 0 && p.Away == 0:
		return "Not open in the last 24 h"
	case p.Opened == 0:
		return "Open for " + took(p.Away) + " of the last 24 h"
	case p.Opened == 1:
		return "Opened once in the last 24 h, open for " + took(p.Away)
	}
	return fmt.Sprintf("Opened %s times in the last 24 h, open for %s", num(p.Opened), took(p.Away))
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
