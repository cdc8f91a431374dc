package failure

import "sync"

const (
	memoTexts = 256     // per generation, of which there are two
	memoBytes = 2 << 10 // longer texts are worked out anew each time
)

// A memo remembers what a pure function made of texts. When something breaks, thousands of attempts fail with the same
// few, and the expressions that read a text cost ten times the rest of a verdict. What was not asked for of late is forgotten.
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
	made = m.of(text) // may panic, and may take a while: nobody waits for it
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
