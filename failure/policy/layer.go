package policy

import (
	"cmp"
	"maps"
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
	if t.backoff != nil {
		o.Backoff = t.backoff
	}
	if t.retryable != nil {
		o.Retryable = t.retryable
	}
}

// For is the policy for a kind and an owner, as the package's comment says who has the last word. Fields that nobody says
// anything about are zero.
func (s *Set) For(kind, owner string) failure.Policy {
	if s == nil {
		return failure.Policy{}
	}
	k := s.Key(kind, owner)
	if known, ok := s.merged.Load(k); ok {
		return known.(failure.Policy)
	}
	p := s.Over(failure.Policy{}, kind, owner)
	s.merged.Store(k, p)
	return p
}

// A Key names the entries that speak for a kind and an owner. Equal keys mean equal answers, and there are only as many as
// the file has entries, so whoever works with the answers may remember them by it.
type Key struct{ kind, owner string }

// Key finds which entries speak.
func (s *Set) Key(kind, owner string) Key {
	return Key{s.section("kinds").nearest(kind), s.section("owners").nearest(owner)}
}

// Over is the policy for a kind and an owner over one that was written in code: what the file says wins, and what it leaves
// open stays as it was. A general word of the file also wins over an exception for a code that was written in code.
func (s *Set) Over(own failure.Policy, kind, owner string) failure.Policy {
	if s == nil {
		return own
	}
	layers := []*entry{&s.base}
	layers = append(layers, s.section("kinds").chain(kind)...)
	layers = append(layers, s.section("owners").chain(owner)...)
	p := own
	codes := map[string]failure.Override{}
	maps.Copy(codes, own.Codes)
	for _, layer := range layers {
		layer.onto(&p)
		for code := range layer.codes {
			if _, known := codes[code]; !known {
				codes[code] = failure.Override{}
			}
		}
	}
	p.Codes = nil
	if len(codes) == 0 {
		return p
	}
	p.Codes = codes
	for code, o := range codes {
		for _, layer := range layers {
			layer.terms.over(&o)
			if said, ok := layer.codes[code]; ok {
				said.over(&o)
			}
		}
		codes[code] = o
	}
	return p
}
