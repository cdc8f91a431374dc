package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast/failure"
	"github.com/holdfastdev/holdfast/failure/policy"
)

const (
	learnInterval = 5 * time.Minute
	experience    = 7 * 24 * time.Hour // older retries are not considered
)

// successRates are how often retries have succeeded, by kind, code and number of the failure. It is safe for concurrent use.
type successRates struct {
	known atomic.Pointer[map[string]map[string]map[int]failure.SuccessRate]
}

// of returns the rates of a kind, by code and by the number of the failure.
func (h *successRates) of(kind string) map[string]map[int]failure.SuccessRate {
	if known := h.known.Load(); known != nil {
		return (*known)[kind]
	}
	return nil
}

// learn reads how often retries have succeeded, for kinds whose policy uses it (Policy.Learned).
func (p *policies) learn(context.Context) error {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(p.registry.kinds)), p.usesExperience) && !slices.ContainsFunc(p.remoteKinds.all(), p.usesExperience) {
		p.successRates.known.Store(nil)
		return nil
	}
	ctx, done := p.storeContext(p.cfg.Lease)
	defer done()
	rows, err := p.store.RetryStats(ctx, experience)
	if err != nil {
		return err
	}
	known := make(map[string]map[string]map[int]failure.SuccessRate)
	for _, row := range rows {
		if row.Number == 0 || !p.usesExperience(row.Kind) {
			continue
		}
		if known[row.Kind] == nil {
			known[row.Kind] = make(map[string]map[int]failure.SuccessRate)
		}
		codes := known[row.Kind]
		if codes[row.Code] == nil {
			codes[row.Code] = make(map[int]failure.SuccessRate)
		}
		codes[row.Code][row.Number] = failure.SuccessRate{Tried: row.Complete + row.Again, Succeeded: row.Complete}
	}
	p.successRates.known.Store(&known)
	return nil
}

// usesExperience reports whether a policy for the kind is learned, also if it is so for some owners only.
func (p *policies) usesExperience(name string) bool {
	own := policy.Own{Engine: p.registry.rules.Policy}
	if k := p.registry.kinds[name]; k != nil {
		own.Kind = k.rules.Policy
	} else if !p.remoteKinds.has(name) {
		return false
	}
	set := p.active.set.Load()
	if set.Over(own, name, "").Learned {
		return true
	}
	return slices.ContainsFunc(set.Owners(), func(owner string) bool { return set.Over(own, name, owner).Learned })
}

// maxRemoteKinds limits how many kinds without a local handler are remembered.
const maxRemoteKinds = 1000

// remoteKinds are the kinds of attempts that remote workers reported and that have no handler here. learn reads the experience with them, too. It is safe
// for concurrent use.
type remoteKinds struct {
	mu    sync.Mutex
	names map[string]bool
}

func (r *remoteKinds) add(kind string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names = make(map[string]bool)
	}
	if len(r.names) < maxRemoteKinds {
		r.names[kind] = true
	}
}

func (r *remoteKinds) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.names))
}

func (r *remoteKinds) has(kind string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[kind]
}
