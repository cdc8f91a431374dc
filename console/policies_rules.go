package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
)

// policiesRules are what a kind's failures meet, in order.
type policiesRules struct {
	Title   string
	Lines   []policiesRule
	Breaker string // of what the kind calls, in words
	Calls   string
	Link    string
	Holds   []string // limits and windows that the file gives the kind
}

// A policiesRule is one line: what it is about, and what happens then.
type policiesRule struct {
	When     string
	Code     string // a single one, to try out
	Codes    []string
	Attempts string
	Waits    string
	Then     string
	Try      string
}

// policiesRules puts the rules of a kind in order: exceptions for codes, what is final, and the rest.
func (q *ask) policiesRules(c policiesCase) policiesRules {
	p := c.set.For(c.kind, c.owner)
	r := policiesRules{Title: "Rules for any kind", Calls: c.dependency}
	if c.kind != "" {
		r.Title = "Rules for the kind " + cut(c.kind, 80)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Codes)) {
		r.Lines = append(r.Lines, q.policiesRule(c, name))
	}
	final := policiesRule{When: "A code that is final", Attempts: "1", Waits: "", Then: "dead letter at once"}
	for _, code := range c.taxonomy.Codes() {
		if _, excepted := p.Codes[code.Name]; !code.Retryable && !excepted {
			final.Codes = append(final.Codes, code.Name)
		}
	}
	rest := q.policiesRule(c, "UNKNOWN")
	if _, excepted := p.Codes["UNKNOWN"]; excepted {
		rest = q.policiesRule(c, policiesPlain(c.taxonomy, p))
	}
	rest.When, rest.Code, rest.Try = "Any other code", "", ""
	r.Lines = append(r.Lines, final, rest, policiesLost(c), policiesAsked(p))
	if p.RetryWithin > 0 {
		r.Lines = append(r.Lines, policiesRule{When: "A promise", Then: "after a failure the next attempt starts within " + took(p.RetryWithin)})
	}
	if p.Learned {
		r.Lines = append(r.Lines, policiesRule{When: "Experience says it is in vain", Then: "dead letter early: the policy learns from what became of retries"})
	}
	q.policiesBreaker(&r, c)
	for _, h := range c.set.Holds() {
		if scope, name := h.On(); scope == "kind" && h.Covers(c.kind) {
			r.Holds = append(r.Holds, fmt.Sprintf("%s (%s)", h.Reason, name))
		}
	}
	for _, w := range c.set.Windows() {
		if scope, name := w.On.On(); scope == "queue" && name == "*" || scope == "kind" && w.On.Covers(c.kind) {
			r.Holds = append(r.Holds, w.On.Reason)
		}
	}
	return r
}

// policiesPlain is a code about which nobody says anything otherwise, or UNKNOWN.
func policiesPlain(t *failure.Taxonomy, p failure.Policy) string {
	for _, code := range t.Codes() {
		if _, excepted := p.Codes[code.Name]; code.Retryable && !excepted {
			return code.Name
		}
	}
	return "UNKNOWN"
}

// policiesRule is what happens to failures with a code.
func (q *ask) policiesRule(c policiesCase, code string) policiesRule {
	c.code, c.take, c.most = code, 0, policiesBrief
	early, late := c.live(0), c.live(1)
	r := policiesRule{When: "The code", Code: code, Attempts: policiesCount(early, late), Waits: policiesWaits(early, late), Then: "dead letter"}
	switch {
	case len(late.starts) == 1:
		r.Then = "dead letter at once"
	case early.ended && late.ended:
		r.Then = "dead letter after " + policiesBetween(early.end, late.end)
	default:
		r.Then = "goes on for longer than " + policiesTook(early.end)
	}
	r.Try, _ = link(q.link("/policies"), "kind", c.kind, "owner", c.owner, "code", code) // pairs are complete
	return r
}

func policiesCount(early, late policiesLife) string {
	if !late.ended {
		return "over " + num(policiesBrief)
	}
	if least, most := min(len(early.starts), len(late.starts)), max(len(early.starts), len(late.starts)); least != most {
		return fmt.Sprintf("%d to %d", least, most)
	}
	return num(len(early.starts))
}

// policiesWaits are the first waits, and the last when there are many.
func policiesWaits(early, late policiesLife) string {
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

// policiesLost is what happens to a job whose workers get lost.
func policiesLost(c policiesCase) policiesRule {
	r := policiesRule{When: "Its worker is lost", Then: "dead letter as POISON: it is presumed to kill workers"}
	rules, lease := c.rules(), holdfast.Lease{Job: holdfast.Job{Kind: c.kind, Owner: c.owner}}
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
	return policiesTook(d)
}

// policiesAsked is how long somebody else may have a job wait: as long as asked for, up to a cap. The verdict tells the cap.
func policiesAsked(p failure.Policy) policiesRule {
	v := failure.Decide(failure.Rules{Policy: p}, holdfast.Lease{}, failure.Outcome{Err: failure.RetryAfter(failure.WithCode(fmt.Errorf("simulated"), "RATE_LIMITED"), holdfast.MaxDelay)})
	r := policiesRule{When: "The other side says when", Then: "the next attempt starts then, if that is later than the backoff"}
	if v.To == holdfast.Queued {
		r.Waits = "at most " + took(v.Delay)
	}
	return r
}

// policiesBreaker says how the breaker of what the kind calls is judged.
func (q *ask) policiesBreaker(r *policiesRules, c policiesCase) {
	if c.dependency == "" {
		return
	}
	r.Link = q.link("/breakers#b-" + c.dependency)
	b := c.set.Breaker(c.dependency).Filled()
	if b.Disabled {
		r.Breaker = "The policy leaves it off: nothing opens it but a person."
		return
	}
	judged := fmt.Sprintf("the last %d calls", b.Window)
	if b.Span > 0 {
		judged = "the calls of the last " + took(b.Span)
	}
	meanwhile := "jobs wait in their queue, unstarted and uncharged"
	if b.FailFast {
		meanwhile = "jobs fail at once"
	}
	r.Breaker = fmt.Sprintf("It opens when %s of %s failed, of at least %d. Then %s. It is probed after %s, twice as long each time up to %s, by %d at once; after %d good calls the rest comes back over %s.",
		share(b.FailureRate), judged, b.MinCalls, meanwhile, took(b.OpenFor), took(b.OpenMax), b.Probes, b.Successes, took(b.Ramp))
}

// policiesKind is the policy of a kind in a line: for a failure about which nobody says anything otherwise.
func (q *ask) policiesKind(c policiesCase, kind string) policiesKind {
	here := c.kind == kind
	c.kind = kind
	p := c.set.For(kind, c.owner)
	rule := q.policiesRule(c, policiesPlain(c.taxonomy, p))
	k := policiesKind{Kind: kind, Title: kind, Attempts: rule.Attempts, Waits: rule.Waits, Ends: rule.Then, Exceptions: len(p.Codes), Here: here}
	if kind == "" {
		k.Title = "any other kind"
	}
	k.Link, _ = link(q.link("/policies"), "kind", kind, "owner", c.owner, "code", q.text("code")) // pairs are complete
	return k
}
