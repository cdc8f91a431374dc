package engine

import (
	"sync"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// maxRemembered limits how many reported attempts are remembered, so that a repeated report is not counted again.
const maxRemembered = 20_000

// seenReports is what an engine remembers about the reports of remote workers. It is safe for concurrent use.
//
// A worker repeats a report whose answer it did not get. The store applies a settlement once, but the engine would count its call for the breaker and its
// cost for the owner again, and call the hooks again. counted and announced prevent that, for the last maxRemembered attempts.
type seenReports struct {
	mu        sync.Mutex
	counted   recentAttempts // whose effects are recorded
	announced recentAttempts // which are settled, logged and passed to the hooks
}

// An attemptKey identifies one attempt: no token is given twice for a job.
type attemptKey struct {
	job   holdfast.ID
	token int
}

// An attemptResult is the settled result of an attempt, as far as it is needed to recognise a repeated report.
type attemptResult struct {
	to     holdfast.State
	charge store.Charge
	failed bool // it has a failure record
}

// recentAttempts remembers the results of the last maxRemembered attempts. The zero value is empty.
type recentAttempts struct {
	known map[attemptKey]attemptResult
	order []attemptKey // a ring
	next  int          // the oldest entry of a full ring
}

// add remembers an attempt and reports whether it was known before.
func (m *recentAttempts) add(key attemptKey, result attemptResult) (known bool) {
	if _, known := m.known[key]; known {
		return true
	}
	if m.known == nil {
		m.known = make(map[attemptKey]attemptResult)
	}
	m.known[key] = result
	if len(m.order) < maxRemembered {
		m.order = append(m.order, key)
		return false
	}
	delete(m.known, m.order[m.next])
	m.order[m.next] = key
	m.next = (m.next + 1) % maxRemembered
	return false
}

// countOnce reports whether the effects of an attempt must be recorded now. It is true once for each attempt.
func (r *seenReports) countOnce(o *outcome) bool { return r.firstTime(o, &r.counted) }

// announceOnce reports whether an attempt must be announced now. It is true once for each attempt.
func (r *seenReports) announceOnce(o *outcome) bool { return r.firstTime(o, &r.announced) }

func (r *seenReports) firstTime(o *outcome, in *recentAttempts) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !in.add(o.key(), attemptResult{o.verdict.To, o.verdict.Charge, o.verdict.Failure != nil})
}

func (o *outcome) key() attemptKey { return attemptKey{o.attempt.lease.ID, o.attempt.lease.Token} }

// isRepeat reports whether the same outcome was reported and settled before. The store cannot always tell: a worker that repeats a report may send the
// lease with counters that have changed since, and then the verdict on it (another attempt or the end) differs from the one that was settled.
// A repeat is answered with success and is not settled again.
func (r *seenReports) isRepeat(o *outcome) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, known := r.announced.known[o.key()]
	crash := o.verdict.Charge == store.ChargeCrash
	switch {
	case !known || crash != (was.charge == store.ChargeCrash):
		return false
	case was.failed && o.verdict.Failure != nil: // whether it was charged depends on a breaker, which may have changed since
		return true
	}
	return was.charge == o.verdict.Charge && was.to == o.verdict.To
}
