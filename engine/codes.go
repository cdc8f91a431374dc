package engine

import (
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
	"github.com/holdfastdev/holdfast/store"
)

// codesInterval is how often the codes that other programs published are read.
const codesInterval = 30 * time.Second

// syncCodes publishes this engine's failure codes and policies to the store, unless they are published already, and reads those of other programs: a remote worker may
// report an attempt with a code that only another program defines.
func (p *policies) syncCodes() error {
	if !p.codesReadAt.IsZero() && time.Since(p.codesReadAt) < codesInterval {
		return nil
	}
	records, err := p.records(catalog.Namespace)
	if err != nil {
		return err
	}
	if change := catalog.Publish(p.cfg.Taxonomy, p.inGo(), p.cfg.Version, records); len(change) > 0 {
		// On a version conflict another engine of the same program has published them.
		if err := p.keepChange(store.Change{Records: change}); err != nil && !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
	}
	var workers []store.WorkerInfo
	if len(records) > 1 { // with several records, the ones that workers use take precedence
		if workers, err = p.workers(); err != nil {
			return err
		}
	}
	p.active.setKnownCodes(catalog.Read(records, workers).With(p.cfg.Taxonomy))
	p.codesReadAt = time.Now()
	return nil
}

func (p *policies) workers() ([]store.WorkerInfo, error) {
	ctx, done := p.storeContext(p.cfg.Lease)
	defer done()
	return p.store.Workers(ctx)
}

// inGo describes the policies that this program sets in Go, so that other processes can explain them.
func (p *policies) inGo() policy.GoSettings {
	described := policy.GoSettings{Engine: policy.Describe(p.registry.rules.Policy)}
	for name, k := range p.registry.kinds {
		if words := policy.Describe(k.rules.Policy); !words.IsZero() {
			if described.Kinds == nil {
				described.Kinds = map[string]policy.Described{}
			}
			described.Kinds[name] = words
		}
	}
	for name, d := range p.cfg.Dependencies {
		if words := policy.DescribeDependency(d.Breaker, d.Budget, d.NoBudget); len(words) > 0 {
			if described.Dependencies == nil {
				described.Dependencies = map[string]map[string]string{}
			}
			described.Dependencies[name] = words
		}
	}
	return described
}
