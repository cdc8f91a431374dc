package engine

import (
	"errors"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/catalog"
	"github.com/holdfastdev/holdfast/failure/policy"
)

// codesBeat is how often the codes that others published are read.
const codesBeat = 30 * time.Second

// codes publishes this engine's own failure codes and policies to the store, unless they are published already, and reads those of others: an
// attempt that was made elsewhere, by a worker in another language, may end with a code that only another program defines.
func (e *Engine) codes() error {
	if !e.codesRead.IsZero() && time.Since(e.codesRead) < codesBeat {
		return nil
	}
	records, err := e.records(catalog.Room)
	if err != nil {
		return err
	}
	if change := catalog.Publish(e.cfg.Taxonomy, e.inGo(), e.cfg.Version, records); len(change) > 0 {
		// On a version conflict another engine of the same program has published them.
		if err := e.keepChange(holdfast.Change{Records: change}); err != nil && !errors.Is(err, holdfast.ErrConflict) {
			return err
		}
	}
	var workers []holdfast.Presence
	if len(records) > 1 { // which of several applies depends on which are in use
		if workers, err = e.workers(); err != nil {
			return err
		}
	}
	e.rulings.learn(catalog.Read(records, workers).Beside(e.cfg.Taxonomy))
	e.codesRead = time.Now()
	return nil
}

func (e *Engine) workers() ([]holdfast.Presence, error) {
	ctx, done := e.call(e.cfg.Lease)
	defer done()
	return e.store.Workers(ctx)
}

// inGo puts what this program says in Go about retries into words, for explanations elsewhere.
func (e *Engine) inGo() policy.InGo {
	said := policy.InGo{Engine: policy.Say(e.rules.Policy)}
	for name, k := range e.kinds {
		if words := policy.Say(k.rules.Policy); !words.IsZero() {
			if said.Kinds == nil {
				said.Kinds = map[string]policy.Said{}
			}
			said.Kinds[name] = words
		}
	}
	for name, d := range e.cfg.Dependencies {
		if words := policy.SayDependency(d.Breaker, d.Budget, d.NoBudget); len(words) > 0 {
			if said.Dependencies == nil {
				said.Dependencies = map[string]map[string]string{}
			}
			said.Dependencies[name] = words
		}
	}
	return said
}
