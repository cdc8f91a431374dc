package engine

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
)

// records reads a room, and the store's clock with it.
func (e *Engine) records(room string) ([]holdfast.Record, error) {
	ctx, done := e.call(e.cfg.Lease)
	defer done()
	records, err := e.store.Records(ctx, room)
	if err == nil && len(records) > 0 {
		e.clock.set(records[0].AsOf)
	}
	return records, err
}

// holds reads all holds.
func (e *Engine) holds() ([]holdfast.Hold, error) {
	ctx, done := e.call(e.cfg.Lease)
	defer done()
	return e.store.Holds(ctx)
}

// keepChange makes a change durable. It is not cut short by a stop.
func (e *Engine) keepChange(c holdfast.Change) error {
	ctx, done := e.call(e.cfg.Lease)
	defer done()
	return e.store.Keep(ctx, c)
}

// clip cuts a text to so many bytes, at the end of a letter.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func sortedBy[T any, K cmp.Ordered](all []T, key func(T) K) []T {
	return slices.SortedFunc(slices.Values(all), func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
