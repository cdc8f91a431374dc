package engine

import (
	"context"
	"maps"
	"slices"
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
func (e *Engine) learn(context.Context) error {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(e.registry.kinds)), e.usesExperience) && !slices.ContainsFunc(e.remote.kindNames(), e.usesExperience) {
		e.successRates.known.Store(nil)
		return nil
	}
	ctx, done := e.storeContext(e.cfg.Lease)
	defer done()
	rows, err := e.store.RetryStats(ctx, experience)
	if err != nil {
		return err
	}
	known := make(map[string]map[string]map[int]failure.SuccessRate)
	for _, row := range rows {
		if row.Number == 0 || !e.usesExperience(row.Kind) {
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
	e.successRates.known.Store(&known)
	return nil
}

// usesExperience reports whether a policy for the kind is learned, also if it is so for some owners only.
func (e *Engine) usesExperience(name string) bool {
	own := policy.Own{Engine: e.registry.rules.Policy}
	if k := e.registry.kinds[name]; k != nil {
		own.Kind = k.rules.Policy
	} else if !e.remote.knowsKind(name) {
		return false
	}
	set := e.policy.set.Load()
	if set.Over(own, name, "").Learned {
		return true
	}
	return slices.ContainsFunc(set.Owners(), func(owner string) bool { return set.Over(own, name, owner).Learned })
}
