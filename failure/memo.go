package failure

import "sync"

const (
	memoTexts = 256     // in each of the two maps
	memoBytes = 2 << 10 // results for longer texts are not cached
)

// A memo caches the results of a pure function of texts. During an outage thousands of attempts fail with the same few
// texts, and the regular expressions that process a text cost ten times as much as the rest of a verdict. Results that were
// not used recently are dropped: when the new map is full it becomes the old one, and an old result that is used again
// moves to the new map. It is safe for concurrent use.
type memo struct {
	of func(string) string

	mu       sync.Mutex
	new, old map[string]string
}

func (m *memo) get(text string) string {
	if len(text) > memoBytes {
		return m.of(text)
	}
	m.mu.Lock()
	made, known := m.new[text]
	if !known {
		made, known = m.old[text]
		if known {
			m.keep(text, made)
		}
	}
	m.mu.Unlock()
	if known {
		return made
	}
	made = m.of(text) // may panic or take long, so the lock is not held
	m.mu.Lock()
	m.keep(text, made)
	m.mu.Unlock()
	return made
}

func (m *memo) keep(text, made string) {
	if len(m.new) >= memoTexts || m.new == nil {
		m.old, m.new = m.new, make(map[string]string, memoTexts)
	}
	m.new[text] = made
}
