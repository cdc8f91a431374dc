package policy

import (
	"fmt"
	"math"

	"go.yaml.in/yaml/v3"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/store"
)

// file reads the whole document.
func (r *reader) file(at place, s *Set) {
	r.define(at, s)
	r.object(at, []key{
		{"defaults", func(r *reader, at place) {
			r.object(at, append(s.base.terms.keys(), r.windowKey(&s.base)))
		}},
		{"codes", func(r *reader, at place) { r.codes(at, &s.base, definedElsewhere(nil)) }},
		{"kinds", r.names(s, "kinds", func(name string, e *entry) []key {
			keys := append(e.terms.keys(), codesKey(e), key{"cost", number(&e.cost, 1e9)})
			return append(keys, r.limitKey(name, e), r.windowKey(e))
		})},
		{"owners", r.names(s, "owners", func(name string, e *entry) []key {
			keys := append(e.terms.keys(), codesKey(e), key{"share", r.onlyNamed(name, "a share", number(&e.owner.share, 1000))})
			keys = append(keys, key{"enqueue", func(r *reader, at place) { e.owner.enqueue = r.pace(at) }}, key{"budget", func(r *reader, at place) { r.ownerBudget(at, &e.owner.budget) }})
			return append(keys, r.limitKey(name, e), r.windowKey(e))
		})},
		{"dependencies", r.names(s, "dependencies", func(name string, e *entry) []key {
			check := func() error { return s.Breaker(name).Check() }
			return []key{
				{"breaker", func(r *reader, at place) { r.breakerKeys(at, &e.depends, check) }},
				{"budget", func(r *reader, at place) { r.budgetKeys(at, &e.depends) }},
				{"probe", func(r *reader, at place) { r.probe(at, &e.depends.probe) }},
				r.limitKey(name, e), r.windowKey(e),
			}
		})},
		{"queues", r.names(s, "queues", func(name string, e *entry) []key {
			return []key{r.limitKey(name, e), r.windowKey(e)}
		})},
	})
	if s.base.codes == nil {
		s.base.codes = map[string]terms{}
	}
	r.uselessLimits(s)
	for _, check := range r.end {
		check()
	}
}

// keys returns the settings about retries.
func (t *terms) keys() []key {
	return []key{
		{"max_attempts", count(&t.maxAttempts, 1, math.MaxInt32)},
		{"give_up_after", span(&t.giveUpAfter)},
		{"backoff", backoff(&t.backoff)},
		{"max_crashes", count(&t.maxCrashes, 1, math.MaxInt32)},
		{"crash_backoff", backoff(&t.crashBackoff)},
		{"retry_after_cap", span(&t.retryAfterCap)},
		{"retry_within", span(&t.retryWithin)},
		{"throttle", throttle(&t.throttle)},
		{"throttle_trips_breaker", flag(&t.throttleTrips)},
		{"group_benign", flag(&t.groupBenign)},
		{"learned", flag(&t.learned)},
		{"min_success_rate", func(r *reader, at place) {
			if share(&t.minSuccessRate)(r, at); t.minSuccessRate == 1 {
				r.wrong(at, "100%% would stop every retry: give less than 100%%, such as 2%%")
			}
		}},
	}
}

// throttle reads whether a throttled attempt costs an attempt.
func throttle(to *failure.Throttle) func(*reader, place) {
	return func(r *reader, at place) {
		text, ok := r.scalar(at, "free or attempt")
		switch word := failure.Throttle(text); {
		case !ok:
		case word == failure.ThrottleFree, word == failure.ThrottleAttempt:
			*to = word
		default:
			r.wrong(at, "%.40q is not a throttle setting; use free (a throttled attempt costs nothing) or attempt (it costs an attempt)", text)
		}
	}
}

// names reads a section: names, each with an entry.
func (r *reader) names(s *Set, kind string, keys func(name string, e *entry) []key) func(*reader, place) {
	return func(r *reader, at place) {
		sec := newSection(kind)
		s.sections[kind] = sec
		r.each(at, func(word *yaml.Node, value place) {
			h := hold(kind, word.Value)
			h.Actor = actor
			if err := h.Check(); err != nil {
				r.add(word, "%s: %v", value.path, err)
				return
			}
			e := &entry{}
			sec.put(word.Value, e)
			r.object(value, keys(word.Value, e))
		})
	}
}

// actor is the actor of the holds that a policy places.
const actor = "policy"

// hold returns a hold on the name of a section's entry.
func hold(kind, name string) store.Hold {
	switch kind {
	case "kinds":
		return store.Hold{Kind: name}
	case "owners":
		return store.Hold{Owner: name}
	case "dependencies":
		return store.Hold{Dependency: name}
	}
	return store.Hold{Queue: name}
}

// onlyNamed wraps a reader of a setting that a pattern cannot have.
func (r *reader) onlyNamed(name, what string, read func(*reader, place)) func(*reader, place) {
	return func(r *reader, at place) {
		if name[len(name)-1] == '*' {
			r.wrong(at, "%s for a pattern: use a name without *", what)
			return
		}
		read(r, at)
	}
}

func codesKey(e *entry) key {
	return key{"codes", func(r *reader, at place) { r.codes(at, e, nil) }}
}

// codes reads settings by failure code. others are further settings that are allowed there.
func (r *reader) codes(at place, e *entry, others []key) {
	e.codes = map[string]terms{}
	r.each(at, func(word *yaml.Node, value place) {
		r.checkCode(word, value.path, word.Value)
		var t terms
		r.object(value, append([]key{
			{"max_attempts", count(&t.maxAttempts, 1, math.MaxInt32)},
			{"give_up_after", span(&t.giveUpAfter)},
			{"backoff", backoff(&t.backoff)},
			{"retryable", flag(&t.retryable)},
			{"throttle", throttle(&t.throttle)},
			{"throttle_trips_breaker", flag(&t.throttleTrips)},
			{"group_benign", flag(&t.groupBenign)},
		}, others...))
		e.codes[word.Value] = t
	})
}

// checkCode refuses an invalid name of a code, and records one that the taxonomy does not contain.
func (r *reader) checkCode(at *yaml.Node, path, name string) bool {
	if _, known := r.taxonomy.Code(name); known || r.defined[name] {
		return true
	}
	if failure.ValidName(name) {
		r.unknown = append(r.unknown, Problem{at.Line, path + ": " + r.unknownCode(name)})
		return true
	}
	r.add(at, "%s: %.80q cannot be the name of a failure code: use A-Z, 0-9 and _, and start with a letter", path, name)
	return false
}

func (r *reader) unknownCode(name string) string {
	var known []string
	for _, code := range r.taxonomy.Codes() {
		known = append(known, code.Name)
	}
	if meant := Nearest(name, known); meant != "" {
		return fmt.Sprintf("%.80q is not a known failure code; did you mean %s?", name, meant)
	}
	return fmt.Sprintf("%.80[1]q is a failure code that is not defined: correct it, or define it: codes: {%.64[1]s: {message: ..., remedy: ..., category: ..., blame: ..., retryable: ...}}", name)
}

func (r *reader) ownerBudget(at place, b *OwnerBudget) {
	r.object(at, []key{
		{"retries_per_day", count(&b.RetriesPerDay, 1, math.MaxInt32)},
		{"retries_per_month", count(&b.RetriesPerMonth, 1, math.MaxInt32)},
		{"cost_per_day", number(&b.CostPerDay, 1e12)},
		{"zone", func(r *reader, at place) { b.Zone = r.zone(at) }},
	})
	if *b == (OwnerBudget{Zone: b.Zone}) && b.Zone != nil {
		r.wrong(at, "a zone without a budget: give retries_per_day, retries_per_month or cost_per_day")
	}
}
