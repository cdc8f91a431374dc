package child

import "sync"

// A Tail keeps the end of what is written to it. It is safe for concurrent use.
type Tail struct {
	Max   int // bytes that it keeps
	wrote func()

	mu   sync.Mutex
	text []byte
}

// Write never fails.
func (t *Tail) Write(text []byte) (int, error) {
	if t.wrote != nil {
		t.wrote()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	if extra := len(t.text) - t.Max; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(text), nil
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
