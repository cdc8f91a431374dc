package postgres

import (
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A scopeSet remembers scopes for scopeAge: those whose claims need a plan, or those with many lanes.
type scopeSet struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// maxScopes bounds the number of scopes that a store remembers.
const maxScopes = 1000

// scopeAge is how long a scope stays in a scopeSet without being added again.
const scopeAge = time.Second

func (d *scopeSet) has(scope *lane.Scope) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.until[scope.Key()])
}

func (d *scopeSet) add(scope *lane.Scope) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.until == nil || len(d.until) > maxScopes {
		d.until = map[string]time.Time{}
	}
	d.until[scope.Key()] = time.Now().Add(scopeAge)
}
