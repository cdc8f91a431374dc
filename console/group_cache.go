package console

import (
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/ops"
)

// A groupCache caches groups whose members took long to count, for twenty times as long as counting took. So a page that refreshes every second does not count
// a hundred thousand members every second. The page shows the time of the count. It is safe for concurrent use.
type groupCache struct {
	mu    sync.Mutex
	known map[holdfast.ID]cachedGroup
}

type cachedGroup struct {
	group ops.GroupDetail
	until time.Time
}

const (
	slowCount       = 50 * time.Millisecond // groups that are counted faster are not cached
	cacheFactor     = 20                    // cached for this many times the duration of the count
	maxCachedGroups = 100
)

// group returns a group, current or cached.
func (m *groupCache) group(q *request, id holdfast.ID) (ops.GroupDetail, error) {
	begun := time.Now()
	m.mu.Lock()
	cached, ok := m.known[id]
	m.mu.Unlock()
	if ok && begun.Before(cached.until) {
		return cached.group, nil
	}
	found, err := q.operator.Group(q.ctx, id)
	took := time.Since(begun)
	if err != nil || took < slowCount {
		return found, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= maxCachedGroups {
		m.known = map[holdfast.ID]cachedGroup{}
	}
	m.known[id] = cachedGroup{found, time.Now().Add(cacheFactor * took)}
	return found, nil
}

// forget empties the cache, because something has changed.
func (m *groupCache) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.known)
}
