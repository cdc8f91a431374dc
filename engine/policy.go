package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/policy"
)

const (
	roomPolicy    = "policy"
	policyCurrent = "current"
	policyBeat    = 2 * time.Second
)

// A policyBody is what was applied to the store.
type policyBody struct {
	Text    string `json:"text"`
	Removed bool   `json:"removed,omitempty"` // the Config's is in force again
}

// rulings are the policies in force: what was applied to the store, or else what the Config says.
type rulings struct {
	own      *policy.Set       // the Config's; never nil
	taxonomy *failure.Taxonomy // the Config's

	known   atomic.Pointer[failure.Taxonomy] // the Config's, and codes that others published; nil: the built-in ones
	decides atomic.Pointer[failure.Taxonomy] // known, and what the policy in force defines

	set     atomic.Pointer[policy.Set] // never nil
	budgets atomic.Bool                // it gives some owner a budget

	version int       // of the record that was read last, good or bad; 0: none
	keptAt  time.Time // likewise

	following atomic.Pointer[following] // never nil
}

// following is how far this process follows the applied policy, for its presence.
type following struct {
	version int    // of the applied policy that is in force here; 0: none
	misses  string // what of the applied policy is not followed or not known here
}

func newRulings(own *policy.Set, taxonomy *failure.Taxonomy) *rulings {
	if own == nil {
		own = new(policy.Set)
	}
	r := &rulings{own: own, taxonomy: taxonomy}
	r.known.Store(taxonomy)
	r.following.Store(&following{})
	r.put(own)
	return r
}

// learn takes in which codes are known now. A policy that was read with others is read again.
func (r *rulings) learn(known *failure.Taxonomy) {
	if !slices.Equal(known.Own(), r.known.Load().Own()) {
		r.known.Store(known)
		r.decides.Store(r.set.Load().Taxonomy(known))
		r.version = -1
	}
}

// put brings a policy into force, and reports whether it is another one.
func (r *rulings) put(set *policy.Set) bool {
	r.budgets.Store(slices.ContainsFunc(set.Owners(), func(owner string) bool {
		_, limited := set.OwnerBudget(owner)
		return limited
	}))
	r.decides.Store(set.Taxonomy(r.known.Load()))
	return r.set.Swap(set) != set
}

// read follows the record of the policy, and reports whether another policy is in force now. A text that makes no sense is an
// error, once; the last good policy stays.
func (r *rulings) read(records []holdfast.Record) (changed bool, err error) {
	current := holdfast.Record{}
	for _, record := range records {
		if record.Name == policyCurrent {
			current = record
		}
	}
	if current.Version == r.version && current.KeptAt.Equal(r.keptAt) {
		return false, nil
	}
	r.version, r.keptAt = current.Version, current.KeptAt
	var body policyBody
	err = json.Unmarshal(current.Body, &body)
	if current.Version == 0 || err == nil && body.Removed {
		r.following.Store(&following{})
		return r.put(r.own), nil
	}
	var next *policy.Set
	var unknown policy.Mistakes
	if err == nil {
		// Codes that this process does not know are no reason not to follow the rest of it.
		next, unknown, err = policy.ParseLenient([]byte(body.Text), r.known.Load())
	}
	if err != nil {
		stays := r.following.Load().version
		r.following.Store(&following{stays, clip(fmt.Sprintf("version %d cannot be read here: %v", current.Version, err), maxMisses)})
		return false, fmt.Errorf("the policy in the store makes no sense, the last good one stays in force: %w", err)
	}
	now := following{version: current.Version}
	if len(unknown) > 0 {
		now.misses = clip(unknown.Error(), maxMisses)
	}
	r.following.Store(&now)
	return r.put(next), nil
}

// maxMisses bounds what a presence says about the policy, in bytes.
const maxMisses = 1000

// A howTo is everything said about dealing with one dependency.
type howTo struct {
	Dependency
}

// howTo puts together what the code says and what the policy says. The policy wins.
func (e *Engine) howTo(d *dependency) howTo {
	set, how := e.rulings.set.Load(), howTo{e.cfg.Dependencies[d.name]}
	how.Breaker = set.BreakerOver(how.Breaker, d.name)
	budget, on := set.BudgetOver(how.Budget, d.name)
	how.Budget, how.NoBudget = budget, how.NoBudget || !on
	if p, ok := set.Probe(d.name); ok && e.cfg.ProbeURL != nil {
		how.Probe, how.ProbeEvery = func(ctx context.Context) error { return e.cfg.ProbeURL(ctx, p.URL) }, p.Every
	}
	how.ProbeEvery = orElse(how.ProbeEvery, probeEvery)
	return how
}

// A judgement is a policy that was worked out for a kind and the entries of the set that speak for it.
type judgement struct {
	kind *kind
	key  policy.Key
}

// judgements remembers policies that were worked out, for as long as the set is in force.
type judgements struct {
	mu    sync.Mutex
	set   *policy.Set
	known map[judgement]failure.Policy
}

// rulesFor are the rules by which an outcome is decided. What completed needs none, and pays for none.
func (e *Engine) rulesFor(o *outcome) failure.Rules {
	a := o.attempt
	rules, own := e.rules, policy.Own{Engine: e.rules.Policy}
	if a.kind != nil {
		rules, own.Kind = a.kind.rules, a.kind.rules.Policy
	}
	if o.Event == failure.Returned && o.Err == nil {
		return rules
	}
	rules.Taxonomy = e.rulings.decides.Load()
	if a.lease.Dependency != "" {
		rules.Dependency = a.lease.Dependency
	}
	rules.Policy = e.judgements.policy(e.rulings.set.Load(), own, a)
	if rules.Policy.Learned {
		rules.Hopes = e.hopes.of(a.lease.Kind)
	}
	return rules
}

// policy is the one in force for an attempt.
func (j *judgements) policy(set *policy.Set, own policy.Own, a *attempt) failure.Policy {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.set != set || j.known == nil || len(j.known) > 10_000 {
		j.set, j.known = set, make(map[judgement]failure.Policy)
	}
	key := judgement{a.kind, set.Key(a.lease.Kind, a.lease.Owner)}
	merged, known := j.known[key]
	if !known {
		merged = set.Over(own, a.lease.Kind, a.lease.Owner)
		j.known[key] = merged
	}
	return merged
}
