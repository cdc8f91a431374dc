package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast/store"
)

// records reads the records of a room. It also updates the store's clock as this process knows it.
func (e *Engine) records(room string) ([]store.Record, error) {
	ctx, done := e.storeContext(e.cfg.Lease)
	defer done()
	records, err := e.store.Records(ctx, room)
	if err == nil && len(records) > 0 {
		e.clock.set(records[0].AsOf)
	}
	return records, err
}

// holds returns all holds.
func (e *Engine) holds() ([]store.Hold, error) {
	ctx, done := e.storeContext(e.cfg.Lease)
	defer done()
	return e.store.Holds(ctx)
}

// keepChange writes a change. ErrConflict means that a record has another version than the change expects: another process was first, and the caller
// reads the record again or leaves it to that process. A stop of the engine does not cancel the call.
func (e *Engine) keepChange(c store.Change) error {
	ctx, done := e.storeContext(e.cfg.Lease)
	defer done()
	return e.store.Apply(ctx, c)
}

// clip cuts a text to at most limit bytes, without splitting a character.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// sortedBy returns the elements ordered by key.
func sortedBy[T any, K cmp.Ordered](all []T, key func(T) K) []T {
	return slices.SortedFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
