package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// policiesRules are the rules for the failures of a kind, in order.
type policiesRules struct {
	Title   string
	Lines   []policiesRule
	Breaker string // breaker of its dependency, in words
	Calls   string
	Link    string
	Holds   []string // limits and windows of the file for the kind
}

// A policiesRule is one rule: its condition and its effect.
type policiesRule struct {
	When     string
	Code     string // a single code, with a link to simulate it
	Codes    []string
	Attempts string
	Waits    string
	Then     string
	Try      string
}

// policiesRules returns the rules of a kind in order: exceptions for codes, final codes, all other codes.
func (q *request) policiesRules(c policiesCase) policiesRules {
	p := c.set.For(c.kind, c.owner)
	r := policiesRules{Title: "Rules for any kind", Calls: c.dependency}
	if c.kind != "" {
		r.Title = "Rules for the kind " + truncate(c.kind, 80)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Codes)) {
		r.Lines = append(r.Lines, q.policiesRule(c, name))
	}
	final := policiesRule{When: "A final code", Attempts: "1", Waits: "", Then: "dead letter at once"}
	for _, code := range c.taxonomy.Codes() {
		if _, excepted := p.Codes[code.Name]; !code.Retryable && !excepted {
			final.Codes = append(final.Codes, code.Name)
		}
	}
	rest := q.policiesRule(c, "UNKNOWN")
	if _, excepted := p.Codes["UNKNOWN"]; excepted {
		rest = q.policiesRule(c, policiesOrdinary(c.taxonomy, p))
	}
	rest.When, rest.Code, rest.Try = "Any other code", "", ""
	r.Lines = append(r.Lines, final, rest, policiesCrash(c), policiesRetryAfter(p))
	if p.RetryWithin > 0 {
		r.Lines = append(r.Lines, policiesRule{When: "Retry deadline", Then: "after a failure the next attempt starts within " + formatDuration(p.RetryWithin)})
	}
	if p.Learned {
		r.Lines = append(r.Lines, policiesRule{When: "Earlier retries did not help", Then: "dead letter early: the policy learns from earlier retries"})
	}
	q.policiesBreaker(&r, c)
	for _, h := range c.set.Holds() {
		if scope, name := h.Scope(); scope == "kind" && h.Covers(c.kind) {
			r.Holds = append(r.Holds, fmt.Sprintf("%s (%s)", h.Reason, name))
		}
	}
	for _, w := range c.set.Windows() {
		if scope, name := w.On.Scope(); scope == "queue" && name == "*" || scope == "kind" && w.On.Covers(c.kind) {
			r.Holds = append(r.Holds, w.On.Reason)
		}
	}
	return r
}

// policiesOrdinary returns a retryable code without an exception, or UNKNOWN.
func policiesOrdinary(t *failure.Taxonomy, p failure.Policy) string {
	for _, code := range t.Codes() {
		if _, excepted := p.Codes[code.Name]; code.Retryable && !excepted {
			return code.Name
		}
	}
	return "UNKNOWN"
}

// policiesRule returns the rule for a code, by simulation.
func (q *request) policiesRule(c policiesCase, code string) policiesRule {
	c.code, c.take, c.most = code, 0, policiesBrief
	early, late := c.simulate(0), c.simulate(1)
	r := policiesRule{When: "The code", Code: code, Attempts: policiesCount(early, late), Waits: policiesWaits(early, late), Then: "dead letter"}
	switch {
	case len(late.starts) == 1:
		r.Then = "dead letter at once"
	case early.ended && late.ended:
		r.Then = "dead letter after " + policiesBetween(early.end, late.end)
	default:
		r.Then = "retries for longer than " + policiesDuration(early.end)
	}
	r.Try, _ = link(q.link("/policies"), "kind", c.kind, "owner", c.owner, "code", code) // pairs are complete
	return r
}

func policiesCount(early, late policiesRun) string {
	if !late.ended {
		return "over " + num(policiesBrief)
	}
	if least, most := min(len(early.starts), len(late.starts)), max(len(early.starts), len(late.starts)); least != most {
		return fmt.Sprintf("%d to %d", least, most)
	}
	return num(len(early.starts))
}

// policiesWaits returns the first waits, and the last if there are many.
func policiesWaits(early, late policiesRun) string {
	n := min(len(early.waits), len(late.waits))
	var words []string
	for i := 1; i < n; i++ {
		if i == 4 && n > 5 {
			words = append(words, "…", policiesShort(early.waits[n-1], late.waits[n-1]))
			break
		}
		words = append(words, policiesShort(early.waits[i], late.waits[i]))
	}
	return strings.Join(words, ", ")
}

// policiesCrash returns the rule for crashes.
func policiesCrash(c policiesCase) policiesRule {
	r := policiesRule{When: "Its worker crashes", Then: "dead letter as POISON: the job probably crashes workers"}
	rules, lease := c.rules(), store.Lease{Job: holdfast.Job{Kind: c.kind, Owner: c.owner}}
	var waits []string
	for lease.Crashes < policiesBrief {
		v := failure.Decide(rules, lease, failure.Outcome{Event: failure.Lost})
		if lease.Crashes++; v.To != holdfast.Queued {
			break
		}
		if len(waits) < 4 {
			waits = append(waits, policiesAtOnce(v.Delay))
		}
	}
	r.Attempts, r.Waits = num(lease.Crashes), strings.Join(waits, ", ")
	return r
}

func policiesAtOnce(d time.Duration) string {
	if d == 0 {
		return "at once"
	}
	return policiesDuration(d)
}

// policiesRetryAfter returns the rule for a dependency that asks to be called later: the requested time, up to a limit. The verdict contains the limit.
func policiesRetryAfter(p failure.Policy) policiesRule {
	v := failure.Decide(failure.Rules{Policy: p}, store.Lease{}, failure.Outcome{Err: failure.RetryAfter(failure.WithCode(fmt.Errorf("simulated"), "RATE_LIMITED"), check.MaxDelay)})
	r := policiesRule{When: "The dependency gives a time", Then: "the next attempt starts then, if that is later than the backoff"}
	if v.To == holdfast.Queued {
		r.Waits = "at most " + formatDuration(v.Delay)
	}
	return r
}

// policiesBreaker sets the rule of the breaker of the kind's dependency.
func (q *request) policiesBreaker(r *policiesRules, c policiesCase) {
	if c.dependency == "" {
		return
	}
	r.Link = q.link("/breakers#b-" + c.dependency)
	b := c.set.Breaker(c.dependency).WithDefaults()
	if b.Disabled {
		r.Breaker = "Disabled by the policy: only a person can open it."
		return
	}
	window := fmt.Sprintf("the last %d calls", b.Window)
	if b.Span > 0 {
		window = "the calls of the last " + formatDuration(b.Span)
	}
	meanwhile := "jobs stay queued at no cost"
	if b.FailFast {
		meanwhile = "jobs fail at once"
	}
	r.Breaker = fmt.Sprintf("Opens when %s of %s failed, with at least %d calls. Then %s. Probes start after %s, doubling up to %s, %d at a time. After %d successful calls it recovers over %s.",
		formatPercent(b.FailureRate), window, b.MinCalls, meanwhile, formatDuration(b.OpenFor), formatDuration(b.OpenMax), b.Probes, b.Successes, formatDuration(b.Ramp))
}

// policiesKind returns the row of a kind, for a failure without an exception.
func (q *request) policiesKind(c policiesCase, kind string) policiesKind {
	here := c.kind == kind
	c.kind = kind
	p := c.set.For(kind, c.owner)
	rule := q.policiesRule(c, policiesOrdinary(c.taxonomy, p))
	k := policiesKind{Kind: kind, Title: kind, Attempts: rule.Attempts, Waits: rule.Waits, Ends: rule.Then, Exceptions: len(p.Codes), Here: here}
	if kind == "" {
		k.Title = "any other kind"
	}
	k.Link, _ = link(q.link("/policies"), "kind", kind, "owner", c.owner, "code", q.text("code")) // pairs are complete
	return k
}
