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
	learnBeat  = 5 * time.Minute
	experience = 7 * 24 * time.Hour // older than this it proves nothing about today
)

// hopes are what experience says about trying again, by kind.
type hopes struct {
	known atomic.Pointer[map[string]map[string]map[int]failure.Hope]
}

// of is by code and by the number of the failure.
func (h *hopes) of(kind string) map[string]map[int]failure.Hope {
	if known := h.known.Load(); known != nil {
		return (*known)[kind]
	}
	return nil
}

// learn looks at what became of retries, for kinds whose policy is to go by it.
func (e *Engine) learn(context.Context) error {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(e.kinds)), e.learns) && !slices.ContainsFunc(e.jury.judged(), e.learns) {
		e.hopes.known.Store(nil)
		return nil
	}
	ctx, done := e.call(e.cfg.Lease)
	defer done()
	rows, err := e.store.Experience(ctx, experience)
	if err != nil {
		return err
	}
	known := make(map[string]map[string]map[int]failure.Hope)
	for _, row := range rows {
		if row.Number == 0 || !e.learns(row.Kind) {
			continue
		}
		if known[row.Kind] == nil {
			known[row.Kind] = make(map[string]map[int]failure.Hope)
		}
		codes := known[row.Kind]
		if codes[row.Code] == nil {
			codes[row.Code] = make(map[int]failure.Hope)
		}
		codes[row.Code][row.Number] = failure.Hope{Tried: row.Complete + row.Again, Succeeded: row.Complete}
	}
	e.hopes.known.Store(&known)
	return nil
}

// learns reports whether some policy of a kind goes by experience. An owner's entry may say so too; that is found out when
// it is asked for.
func (e *Engine) learns(name string) bool {
	own := policy.Own{Engine: e.rules.Policy}
	if k := e.kinds[name]; k != nil {
		own.Kind = k.rules.Policy
	} else if !e.jury.knows(name) {
		return false
	}
	set := e.rulings.set.Load()
	if set.Over(own, name, "").Learned {
		return true
	}
	return slices.ContainsFunc(set.Owners(), func(owner string) bool { return set.Over(own, name, owner).Learned })
}
