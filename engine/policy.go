package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/store"
)

const (
	namespacePolicy = "policy"
	policyCurrent   = "current"
	policyInterval  = 2 * time.Second
)

// policies are the policy in force and what this process makes of it: the rules by which attempts are decided, the configuration of dependencies, and
// the limits and shares in the store. The duties "policy" and "learn" keep it up to date; any goroutine may read it.
type policies struct {
	*core
	registry     *registry
	active       *activePolicy
	cache        policyCache
	successRates successRates
	remoteKinds  remoteKinds

	placed atomic.Bool   // the policy in force is known and its limits are in the store
	known  chan struct{} // closed when placed becomes true; nothing is claimed or settled for remote workers before

	adopted        *policy.Set // the policy whose limits and shares this process has written to the store; used by the duty "policy" only
	publishedCodes string      // the name of the record with this engine's codes and policies; empty if it has none
	codesReadAt    time.Time   // when the codes of other programs were last read; used by the duty "policy" only
}

func newPolicies(c *core, kinds *registry) *policies {
	return &policies{core: c, registry: kinds, active: newActivePolicy(c.cfg.Policies, c.cfg.Taxonomy), known: make(chan struct{})}
}

// start names the record of this engine's codes. It is called when all kinds are registered.
func (p *policies) start() { p.publishedCodes = catalog.Name(p.cfg.Taxonomy, p.inGo()) }

// A policyBody is the body of the record of the applied policy.
type policyBody struct {
	Text    string `json:"text"`
	Removed bool   `json:"removed,omitempty"` // the policy was removed: the one of the Config applies again
}

// activePolicy is the policy in force: the one that was applied to the store, or else the one of the Config. The atomic fields may be read by any goroutine; one
// goroutine calls read and setKnownCodes.
type activePolicy struct {
	configured *policy.Set       // the one of the Config; never nil
	taxonomy   *failure.Taxonomy // the one of the Config

	known     atomic.Pointer[failure.Taxonomy] // the codes of the Config and those that other programs published; nil: the built-in ones
	effective atomic.Pointer[failure.Taxonomy] // known, and the codes that the policy in force defines; decisions use this one

	set        atomic.Pointer[policy.Set] // never nil
	hasBudgets atomic.Bool                // the policy gives some owner a budget

	version int       // of the record that was last read, valid or not; 0: none; -1: read it again
	keptAt  time.Time // of the same record

	following atomic.Pointer[following] // never nil
}

// following says how far this process follows the applied policy. It is published with its presence.
type following struct {
	version int    // of the applied policy that is in force here; 0: none
	misses  string // which parts of the applied policy are not followed or not known here
}

func newActivePolicy(own *policy.Set, taxonomy *failure.Taxonomy) *activePolicy {
	if own == nil {
		own = new(policy.Set)
	}
	r := &activePolicy{configured: own, taxonomy: taxonomy}
	r.known.Store(taxonomy)
	r.following.Store(&following{})
	r.activate(own)
	return r
}

// setKnownCodes sets the known codes. If they have changed, the applied policy is parsed again with them.
func (r *activePolicy) setKnownCodes(known *failure.Taxonomy) {
	if !slices.Equal(known.Own(), r.known.Load().Own()) {
		r.known.Store(known)
		r.effective.Store(r.set.Load().Taxonomy(known))
		r.version = -1
	}
}

// activate puts a policy into force, and reports whether it differs from the one before.
func (r *activePolicy) activate(set *policy.Set) bool {
	r.hasBudgets.Store(slices.ContainsFunc(set.Owners(), func(owner string) bool {
		_, limited := set.OwnerBudget(owner)
		return limited
	}))
	r.effective.Store(set.Taxonomy(r.known.Load()))
	return r.set.Swap(set) != set
}

// read follows the record of the applied policy, and reports whether another policy is in force now. A policy that cannot be parsed is returned as an error, once,
// and the last valid policy stays in force.
func (r *activePolicy) read(records []store.Record) (changed bool, err error) {
	current := store.Record{}
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
		return r.activate(r.configured), nil
	}
	var next *policy.Set
	var unknown policy.Problems
	if err == nil {
		// A policy with codes that this process does not know is followed otherwise.
		next, unknown, err = policy.ParseLenient([]byte(body.Text), r.known.Load())
	}
	if err != nil {
		stays := r.following.Load().version
		r.following.Store(&following{stays, clip(fmt.Sprintf("version %d cannot be read here: %v", current.Version, err), maxMisses)})
		return false, fmt.Errorf("the policy in the store is invalid and was not adopted, the last valid one stays in force: %w", err)
	}
	now := following{version: current.Version}
	if len(unknown) > 0 {
		now.misses = clip(unknown.Error(), maxMisses)
	}
	r.following.Store(&now)
	return r.activate(next), nil
}

// maxMisses limits what a presence says about the policy, in bytes.
const maxMisses = 1000

// A dependencyConfig is the configuration of one dependency, from the Config and from the policy.
type dependencyConfig struct {
	Dependency
}

// dependencyConfig returns the configuration of a dependency. What the policy sets takes precedence over the Config.
func (p *policies) dependencyConfig(d *dependency) dependencyConfig {
	set, cfg := p.active.set.Load(), dependencyConfig{p.cfg.Dependencies[d.name]}
	cfg.Breaker = set.BreakerOver(cfg.Breaker, d.name)
	budget, on := set.BudgetOver(cfg.Budget, d.name)
	cfg.Budget, cfg.NoBudget = budget, cfg.NoBudget || !on
	if probe, ok := set.Probe(d.name); ok && p.cfg.ProbeURL != nil {
		cfg.Probe, cfg.ProbeEvery = func(ctx context.Context) error { return p.cfg.ProbeURL(ctx, probe.URL) }, probe.Every
	}
	cfg.ProbeEvery = orElse(cfg.ProbeEvery, probeEvery)
	return cfg
}

// A policyCacheKey identifies the policy for a kind and for the entries of the set that apply to a job.
type policyCacheKey struct {
	kind *kind
	key  policy.Key
}

// policyCache caches the merged policies of the set in force. It is safe for concurrent use.
type policyCache struct {
	mu    sync.Mutex
	set   *policy.Set
	known map[policyCacheKey]failure.Policy
}

// rulesFor returns the rules by which an outcome is decided. For a completed attempt no policy is looked up, because none applies.
func (p *policies) rulesFor(o *outcome) failure.Rules {
	a := o.attempt
	rules, own := p.registry.rules, policy.Own{Engine: p.registry.rules.Policy}
	if a.kind != nil {
		rules, own.Kind = a.kind.rules, a.kind.rules.Policy
	}
	if o.Event == failure.Returned && o.Err == nil {
		return rules
	}
	rules.Taxonomy = p.active.effective.Load()
	if a.lease.Dependency != "" {
		rules.Dependency = a.lease.Dependency
	}
	rules.Policy = p.cache.policy(p.active.set.Load(), own, a)
	if rules.Policy.Learned {
		rules.SuccessRates = p.successRates.of(a.lease.Kind)
	}
	return rules
}

// policy returns the policy that applies to an attempt. The cache is dropped when another set is in force, or when it has 10,000 entries.
func (j *policyCache) policy(set *policy.Set, own policy.Own, a *attempt) failure.Policy {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.set != set || j.known == nil || len(j.known) > 10_000 {
		j.set, j.known = set, make(map[policyCacheKey]failure.Policy)
	}
	key := policyCacheKey{a.kind, set.Key(a.lease.Kind, a.lease.Owner)}
	merged, known := j.known[key]
	if !known {
		merged = set.Over(own, a.lease.Kind, a.lease.Owner)
		j.known[key] = merged
	}
	return merged
}
