package console

import (
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// A memo keeps groups that took long to count, for twenty times as long as it took: a page that is renewed every second does not count a hundred
// thousand members every second. What it shows says as of when.
type memo struct {
	mu    sync.Mutex
	known map[holdfast.ID]memorized
}

type memorized struct {
	group ops.Gathering
	until time.Time
}

const (
	memoLong  = 50 * time.Millisecond // what takes less is asked for every time
	memoEase  = 20
	mostMemos = 100
)

// group answers with a group, as it is or as it was a while ago.
func (m *memo) group(q *ask, id holdfast.ID) (ops.Gathering, error) {
	begun := time.Now()
	m.mu.Lock()
	kept, is := m.known[id]
	m.mu.Unlock()
	if is && begun.Before(kept.until) {
		return kept.group, nil
	}
	found, err := q.desk.Group(q.ctx, id)
	took := time.Since(begun)
	if err != nil || took < memoLong {
		return found, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= mostMemos {
		m.known = map[holdfast.ID]memorized{}
	}
	m.known[id] = memorized{found, time.Now().Add(memoEase * took)}
	return found, nil
}

// forget has everything be counted anew: somebody has just changed something.
func (m *memo) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.known)
}
