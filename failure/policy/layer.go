package policy

import (
	"cmp"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast/failure"
)

// terms are what an entry says about trying again. Zero fields say nothing.
type terms struct {
	maxAttempts   int
	giveUpAfter   time.Duration
	backoff       failure.Backoff
	retryable     *bool // only for a code
	maxCrashes    int
	crashBackoff  failure.Backoff
	retryAfterCap time.Duration
	retryWithin   time.Duration
	throttle      failure.Throttle
	throttleTrips *bool
	groupBenign   *bool
	learned       *bool
	hopeless      float64
}

// onto writes what is said over a policy.
func (t *terms) onto(p *failure.Policy) {
	p.MaxAttempts = cmp.Or(t.maxAttempts, p.MaxAttempts)
	p.GiveUpAfter = cmp.Or(t.giveUpAfter, p.GiveUpAfter)
	p.MaxCrashes = cmp.Or(t.maxCrashes, p.MaxCrashes)
	p.RetryAfterCap = cmp.Or(t.retryAfterCap, p.RetryAfterCap)
	p.RetryWithin = cmp.Or(t.retryWithin, p.RetryWithin)
	p.Hopeless = cmp.Or(t.hopeless, p.Hopeless)
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

// over writes what is said over the exception for a code.
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

// For is the policy for a kind and an owner by the file alone. Fields that the file says nothing about are zero.
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

// A Key names the entries that apply to a kind and an owner. Equal keys mean equal answers, and there are only as many as
// the file has entries, so callers may remember answers by it.
type Key struct {
	kind, owner string
	delivery    bool
}

// Key finds which entries apply.
func (s *Set) Key(kind, owner string) Key {
	return Key{s.section("kinds").nearest(kind), s.section("owners").nearest(owner), delivers(kind)}
}

// Own are the policies that a program has in Go.
type Own struct {
	Engine failure.Policy // of all kinds
	Kind   failure.Policy // of the kind
}

// Over is the policy for a kind and an owner: what the file says and what a program says in Go, in the order of precedence that the package's comment gives.
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
			if said, ok := l.entry.codes[code]; ok {
				said.over(&o)
			}
		}
		codes[code] = o
	}
	return p
}

// A level is one place in the order of precedence.
type level struct {
	name  string // as explanations call it
	codes string // what it says about a code: this, and the name of the code
	entry *entry
}

// codeName is how explanations call what a level says about a code.
func (l level) codeName(code string) string {
	if l.name == levelKind || l.name == levelEngine {
		return l.codes + "[" + code + "]"
	}
	return l.codes + "." + code
}

// Names of levels, as explanations show them. Those of a file's entries are their paths in it.
const (
	levelJob      = "the job"
	levelKind     = "Go: Kind.Policy"
	levelDefaults = "defaults"
	levelEngine   = "Go: Config.Policy"
	levelBuiltIn  = "built in"
)

// levels lists what applies to a kind and an owner, the highest last. This is the order of precedence: there is no other place that knows it.
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

// entryOf is what a policy in Go says, as if it stood in a file.
func entryOf(p failure.Policy) entry {
	e := entry{terms: terms{
		maxAttempts: p.MaxAttempts, giveUpAfter: p.GiveUpAfter, backoff: p.Backoff, maxCrashes: p.MaxCrashes, crashBackoff: p.CrashBackoff, retryAfterCap: p.RetryAfterCap,
		retryWithin: p.RetryWithin, throttle: p.Throttle, throttleTrips: p.ThrottleTripsBreaker, groupBenign: p.GroupBenign, hopeless: p.Hopeless,
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

// deliveries are how names of deliveries begin, by section. Only entries that begin so too apply to them.
var deliveries = map[string]string{"kinds": "holdfast.", "owners": "subscription/"}
