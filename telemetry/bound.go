package telemetry

import (
	"strings"
	"sync"
)

// other stands for every value of a label beyond the first so many.
const other = "other"

// A bound keeps a label to so many values, whatever people choose to call things: each costs the watching machines a series for ever.
type bound struct {
	most int

	mu       sync.Mutex
	known    map[string]string
	declared int // of those: they leave the others as much room as before
}

// declare admits values that workers have declared. They have room of their own, as much again as all others, so that callers who choose names
// freely cannot use it up.
func (b *bound) declare(values []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, value := range values {
		if _, ok := b.known[value]; ok || value == "" || b.declared >= b.most || len(value) > 200 {
			continue
		}
		b.known[value] = strings.ToValidUTF8(strings.Clone(value), "?")
		b.declared++
	}
}

func newBound(most int) *bound { return &bound{most: most, known: make(map[string]string)} }

// of is the value under which something is counted.
func (b *bound) of(value string) string {
	if value == "" {
		return "none"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if as, ok := b.known[value]; ok {
		return as
	}
	if len(b.known)-b.declared >= b.most || len(value) > 200 {
		return other
	}
	value = strings.Clone(value) // it may be a part of something large
	b.known[value] = strings.ToValidUTF8(value, "?")
	return b.known[value]
}
