package sqlite

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store/internal/lane"
)

// A lineMemory remembers which lines were not empty, because searching all lines takes long when there are many.
//
// The memory may be wrong in both directions without harm. A remembered line that is empty costs one search. A line that
// gets its first job meanwhile is found when the memory has expired, or as soon as the remembered lines have too few
// jobs for a claim. No job is overtaken by a less urgent one because of it: see noteEnqueued.
//
// One claim uses it at a time. Only noteEnqueued is safe for concurrent use.
type lineMemory struct {
	scopes   map[string]*openLines // by the key of the scope; only where there are many lines
	nonEmpty int                   // how many lines were not empty at the last search
	searches int                   // searches for lines since the store was opened

	urgent   atomic.Pointer[int64] // the least urgent of the first priorities that the scopes remember; nil: none remembers any
	outdated atomic.Bool           // a job was enqueued that is more urgent than that
}

const (
	minRememberedLines = 64                     // lines of several owners are remembered if there are more; lines of one owner, if there are more than lane.FewLines
	minMemoryAge       = 100 * time.Millisecond // lines are remembered at least this long,
	memoryAgeFactor    = 20                     // or this many times as long as the search took
	maxScopes          = 8                      // scopes that are remembered
)

// recall returns what is remembered for the scope of a view, or nil if the view has to search. The writer always
// searches: it sees jobs that are not committed yet.
func (m *lineMemory) recall(v *claimView) *openLines {
	if known := m.scopes[v.scope.Key()]; !v.onWriter && known.validFor(v) {
		return known
	}
	return nil
}

// keep remembers the lines that a view has found in a search that began at this time.
func (m *lineMemory) keep(v *claimView, began time.Time) *openLines {
	if m.scopes == nil || len(m.scopes) >= maxScopes {
		m.scopes = map[string]*openLines{}
	}
	found := newOpenLines(v, began)
	m.scopes[v.scope.Key()] = found
	return found
}

// drop forgets the lines of a scope. They describe the lines after the planned claim, so they are wrong if that claim
// was not taken.
func (m *lineMemory) drop(of *lane.Scope) { delete(m.scopes, of.Key()) }

// dropOutdated forgets all lines if noteEnqueued has asked for it.
func (m *lineMemory) dropOutdated() {
	if m.outdated.Swap(false) {
		clear(m.scopes)
	}
}

// expectLines returns how many lines the next search may expect to meet. One search in 64 expects none and so searches
// all lines: there may be few by now.
func (m *lineMemory) expectLines() int {
	if m.searches++; m.searches%64 == 0 {
		m.nonEmpty = 0
	}
	return m.nonEmpty
}

// publishUrgent tells noteEnqueued which priority would come before everything that is remembered.
func (m *lineMemory) publishUrgent() {
	var top *int64
	for _, c := range m.scopes {
		if c.heads != nil && len(*c.heads) > 0 && (top == nil || (*c.heads)[0].priority > *top) {
			priority := (*c.heads)[0].priority
			top = &priority
		}
	}
	m.urgent.Store(top)
}

// noteEnqueued makes the next claim search all lines if one of these committed jobs is more urgent than everything that
// is remembered. So a claim that follows an enqueue of the same process takes the most urgent job first, whichever line
// it is in. Other new jobs are met in their line's turn, or when the memory has expired.
func (m *lineMemory) noteEnqueued(drafts []holdfast.Draft) {
	top := m.urgent.Load()
	if top != nil && slices.ContainsFunc(drafts, func(d holdfast.Draft) bool { return int64(d.Priority) < *top }) {
		m.outdated.Store(true)
	}
}
