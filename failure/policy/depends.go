package policy

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// over returns own with the settings of the file in place.
func (d *dependencySettings) over(own breaker.Config) breaker.Config {
	b := d.breaker
	own.Window = cmp.Or(b.Window, own.Window)
	own.Span = cmp.Or(b.Span, own.Span)
	own.MinCalls = cmp.Or(b.MinCalls, own.MinCalls)
	own.FailureRate = cmp.Or(b.FailureRate, own.FailureRate)
	own.SlowCall = cmp.Or(b.SlowCall, own.SlowCall)
	own.SlowRate = cmp.Or(b.SlowRate, own.SlowRate)
	own.OpenFor = cmp.Or(b.OpenFor, own.OpenFor)
	own.OpenMax = cmp.Or(b.OpenMax, own.OpenMax)
	own.Probes = cmp.Or(b.Probes, own.Probes)
	own.Successes = cmp.Or(b.Successes, own.Successes)
	own.Ramp = cmp.Or(b.Ramp, own.Ramp)
	own.Code = cmp.Or(b.Code, own.Code)
	if d.failFast != nil {
		own.FailFast = *d.failFast
	}
	if d.off != nil {
		own.Disabled = *d.off
	}
	return own
}

func (d *dependencySettings) overBudget(own failure.Budget) failure.Budget {
	own.Ratio = cmp.Or(d.budget.Ratio, own.Ratio)
	own.Floor = cmp.Or(d.budget.Floor, own.Floor)
	own.Burst = cmp.Or(d.budget.Burst, own.Burst)
	return own
}

// breakerKeys reads the settings of a breaker. Settings that are valid alone but not together are reported at the end, when
// patterns are known.
func (r *reader) breakerKeys(at place, d *dependencySettings, check func() error) {
	b, before := &d.breaker, len(r.mistakes)
	r.object(at, []key{
		{"window", count(&b.Window, 1, 1000)},
		{"span", span(&b.Span)},
		{"min_calls", count(&b.MinCalls, 1, 1_000_000)},
		{"failure_rate", share(&b.FailureRate)},
		{"slow_call", span(&b.SlowCall)},
		{"slow_rate", share(&b.SlowRate)},
		{"open_for", span(&b.OpenFor)},
		{"open_max", span(&b.OpenMax)},
		{"probes", count(&b.Probes, 1, 1_000_000)},
		{"successes", count(&b.Successes, 1, 1_000_000)},
		{"ramp", span(&b.Ramp)},
		{"mode", func(r *reader, at place) { r.mode(at, &d.failFast) }},
		{"code", func(r *reader, at place) { b.Code = r.code(at) }},
		{"off", flag(&d.off)},
	})
	if len(r.mistakes) > before {
		return
	}
	r.atTheEnd(func() {
		if err := check(); err != nil {
			r.wrong(at, "%s", asWritten.Replace(err.Error()))
		}
	})
}

// asWritten replaces the field names in a breaker's error by the names in a file.
var asWritten = strings.NewReplacer(
	"breaker: ", "", "\n", "; ", "MinCalls", "min_calls", "OpenMax", "open_max", "OpenFor", "open_for", "SlowCall", "slow_call",
	"Window", "window", "Span", "span", "Ramp", "ramp", ", or 0 for the default", "",
)

func (r *reader) mode(at place, failFast **bool) {
	text, ok := r.scalar(at, "hold-queue or fail-fast")
	if !ok {
		return
	}
	fast := text == "fail-fast"
	if !fast && text != "hold-queue" {
		r.wrong(at, "%.40q is not a mode; use hold-queue (jobs wait) or fail-fast (jobs fail at once)", text)
		return
	}
	*failFast = &fast
}

func (r *reader) budgetKeys(at place, d *dependencySettings) {
	r.object(at, []key{
		{"ratio", share(&d.budget.Ratio)},
		{"floor", number(&d.budget.Floor, 1e6)},
		{"burst", number(&d.budget.Burst, 1e6)},
		{"off", flag(&d.budgetOff)},
	})
}

func (r *reader) probe(at place, p *Probe) {
	r.object(at, []key{
		{"url", func(r *reader, at place) { p.URL = r.address(at) }},
		{"every", span(&p.Every)},
	})
	if p.URL == "" && p.Every > 0 {
		r.wrong(at, "no url: give the address to probe, such as http://gateway/healthz")
	}
	if p.Every == 0 {
		p.Every = 5 * time.Second
	}
}

func (r *reader) address(at place) string {
	text, ok := r.scalar(at, "an address such as http://gateway/healthz")
	if !ok {
		return ""
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		r.wrong(at, "this is not an address: give one such as http://gateway/healthz")
	case u.User != nil:
		r.wrong(at, "a password in an address: every operator can read policies; use an address without one")
	default:
		return text
	}
	return ""
}

// code reads the name of a failure code that the application knows.
func (r *reader) code(at place) string {
	text, ok := r.scalar(at, "a failure code such as RATE_LIMITED")
	if ok && r.checkCode(at.Node, at.path, text) {
		return text
	}
	return ""
}
