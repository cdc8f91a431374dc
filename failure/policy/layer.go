package policy

import (
	"cmp"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/failure"
)

// terms are the settings of an entry about retries. Zero fields are not set.
type terms struct {
	maxAttempts    int
	giveUpAfter    time.Duration
	backoff        failure.Backoff
	retryable      *bool // only for a code
	maxCrashes     int
	crashBackoff   failure.Backoff
	retryAfterCap  time.Duration
	retryWithin    time.Duration
	throttle       failure.Throttle
	throttleTrips  *bool
	groupBenign    *bool
	learned        *bool
	minSuccessRate float64
}

// onto writes the settings that are set over a policy.
func (t *terms) onto(p *failure.Policy) {
	p.MaxAttempts = cmp.Or(t.maxAttempts, p.MaxAttempts)
	p.GiveUpAfter = cmp.Or(t.giveUpAfter, p.GiveUpAfter)
	p.MaxCrashes = cmp.Or(t.maxCrashes, p.MaxCrashes)
	p.RetryAfterCap = cmp.Or(t.retryAfterCap, p.RetryAfterCap)
	p.RetryWithin = cmp.Or(t.retryWithin, p.RetryWithin)
	p.MinSuccessRate = cmp.Or(t.minSuccessRate, p.MinSuccessRate)
	p.Throttle = cmp.Or(t.throttle, p.Throttle)
	p.ThrottleTripsBreaker = cmp.Or(t.throttleTrips, p.ThrottleTripsBreaker)
	p.GroupBenign = cmp.Or(t.groupBenign, p.GroupBenign)
	if t.backoff != nil {
		p.Backoff = t.backoff
	}
	if t.crashBackoff != nil {
		p.CrashBackoff = t.crashBackoff
	}
	if t.learned != nil {
		p.Learned = *t.learned
	}
}

// over writes the settings that are set over the exception for a code.
func (t *terms) over(o *failure.Override) {
	o.MaxAttempts = cmp.Or(t.maxAttempts, o.MaxAttempts)
	o.GiveUpAfter = cmp.Or(t.giveUpAfter, o.GiveUpAfter)
	o.Throttle = cmp.Or(t.throttle, o.Throttle)
	o.ThrottleTripsBreaker = cmp.Or(t.throttleTrips, o.ThrottleTripsBreaker)
	o.GroupBenign = cmp.Or(t.groupBenign, o.GroupBenign)
	if t.backoff != nil {
		o.Backoff = t.backoff
	}
	if t.retryable != nil {
		o.Retryable = t.retryable
	}
}

// For returns the policy for a kind and an owner by the file alone. Fields that the file does not set are zero.
func (s *Set) For(kind, owner string) failure.Policy {
	if s == nil {
		return failure.Policy{}
	}
	k := s.Key(kind, owner)
	if known, ok := s.merged.Load(k); ok {
		return known.(failure.Policy)
	}
	p := s.Over(Own{}, kind, owner)
	s.merged.Store(k, p)
	return p
}

// A Key identifies the entries that apply to a kind and an owner. Equal keys mean equal policies, and there are only as many as
// the file has entries, so callers can cache results by it.
type Key struct {
	kind, owner string
	delivery    bool
}

// Key returns the key for a kind and an owner.
func (s *Set) Key(kind, owner string) Key {
	return Key{s.section("kinds").nearest(kind), s.section("owners").nearest(owner), delivers(kind)}
}

// Own holds the policies that a program has in Go.
type Own struct {
	Engine failure.Policy // for all kinds
	Kind   failure.Policy // for the kind
}

// Over returns the policy for a kind and an owner from the file and from Go, in the order of precedence that the package comment
// describes.
func (s *Set) Over(own Own, kind, owner string) failure.Policy {
	levels := s.levels(own, kind, owner)
	var p failure.Policy
	codes := map[string]failure.Override{}
	for _, l := range levels {
		l.entry.onto(&p)
		for code := range l.entry.codes {
			codes[code] = failure.Override{}
		}
	}
	if len(codes) == 0 {
		return p
	}
	p.Codes = codes
	for code, o := range codes {
		for _, l := range levels {
			l.entry.terms.over(&o)
			if forCode, ok := l.entry.codes[code]; ok {
				forCode.over(&o)
			}
		}
		codes[code] = o
	}
	return p
}

// A level is one source in the order of precedence.
type level struct {
	name  string // as explanations show it
	codes string // prefix of the name of its settings for a code
	entry *entry
}

// codeName returns the name of a level's settings for a code, as explanations show it.
func (l level) codeName(code string) string {
	if l.name == levelKind || l.name == levelEngine {
		return l.codes + "[" + code + "]"
	}
	return l.codes + "." + code
}

// Names of levels, as explanations show them. A level of the file is named by its path in it.
const (
	levelJob      = "the job"
	levelKind     = "Go: KindOptions.Policy"
	levelDefaults = "defaults"
	levelEngine   = "Go: Config.Policy"
	levelBuiltIn  = "built in"
)

// levels returns the sources that apply to a kind and an owner, the highest precedence last. This is the only place that
// knows the order.
func (s *Set) levels(own Own, kind, owner string) []level {
	engine, ofKind := entryOf(own.Engine), entryOf(own.Kind)
	all := []level{{levelEngine, levelEngine + ".Codes", &engine}}
	if s != nil && !delivers(kind) {
		all = append(all, level{levelDefaults, "codes", &s.base})
	}
	all = append(all, level{levelKind, levelKind + ".Codes", &ofKind})
	for _, named := range []struct{ section, name string }{{"kinds", kind}, {"owners", owner}} {
		for _, found := range s.section(named.section).chain(named.name) {
			path := named.section + "." + found.name
			all = append(all, level{path, path + ".codes", found.entry})
		}
	}
	return all
}

// entryOf returns a policy in Go as an entry of a file.
func entryOf(p failure.Policy) entry {
	e := entry{terms: terms{
		maxAttempts: p.MaxAttempts, giveUpAfter: p.GiveUpAfter, backoff: p.Backoff, maxCrashes: p.MaxCrashes, crashBackoff: p.CrashBackoff, retryAfterCap: p.RetryAfterCap,
		retryWithin: p.RetryWithin, throttle: p.Throttle, throttleTrips: p.ThrottleTripsBreaker, groupBenign: p.GroupBenign, minSuccessRate: p.MinSuccessRate,
	}}
	if p.Learned {
		e.learned = &p.Learned
	}
	for code, o := range p.Codes {
		if e.codes == nil {
			e.codes = map[string]terms{}
		}
		e.codes[code] = terms{maxAttempts: o.MaxAttempts, giveUpAfter: o.GiveUpAfter, backoff: o.Backoff, retryable: o.Retryable, throttle: o.Throttle, throttleTrips: o.ThrottleTripsBreaker, groupBenign: o.GroupBenign}
	}
	return e
}

// delivers reports whether jobs of a kind are deliveries of subscriptions.
func delivers(kind string) bool { return strings.HasPrefix(kind, deliveries["kinds"]) }

// deliveries holds the prefixes of names of deliveries, by section. Only entries with the same prefix apply to deliveries.
var deliveries = map[string]string{"kinds": "holdfast.", "owners": "subscription/"}
