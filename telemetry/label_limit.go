package telemetry

import (
	"strings"
	"sync"
)

// other replaces every value of a label beyond the limit.
const other = "other"

// A labelLimit limits the number of values of a label, because each value costs Prometheus a series for ever. It is safe
// for concurrent use.
type labelLimit struct {
	most int

	mu       sync.Mutex
	known    map[string]string
	declared int // values in known that workers declared; they do not count against the limit of the others
}

// declare admits values that workers have declared. They have a limit of their own, as high as that of all others, so that
// callers who choose names freely cannot use it up.
func (b *labelLimit) declare(values []string) {
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

func newLabelLimit(most int) *labelLimit {
	return &labelLimit{most: most, known: make(map[string]string)}
}

// of returns the label value under which value is counted.
func (b *labelLimit) of(value string) string {
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
	value = strings.Clone(value) // it may be a part of a large string
	b.known[value] = strings.ToValidUTF8(value, "?")
	return b.known[value]
}
