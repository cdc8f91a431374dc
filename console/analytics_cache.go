package console

import (
	"context"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/ops"
)

// An analyticsCache caches figures that take long to compute, because they read every job of the time range. The first request starts the computation in the
// background; later requests get its result. It is safe for concurrent use.
type analyticsCache struct {
	operator ops.Operator
	mu       sync.Mutex
	known    map[time.Duration]*analyticsAnswer
}

// An analyticsAnswer is a result, or a computation in progress.
type analyticsAnswer struct {
	began time.Time
	ended chan struct{} // closed when the result is available

	at      time.Time
	took    time.Duration
	figures ops.Analytics
	err     error
	before  *analyticsAnswer // the previous result, shown until then
}

const (
	analyticsWait       = 60 * time.Millisecond // how long a page waits for a result
	analyticsFresh      = 30 * time.Second      // minimum age before a result is computed again
	analyticsLimit      = 2 * time.Minute       // time limit of a computation
	analyticsCostFactor = 20                    // a result is used for this many times the duration of its computation
)

// get returns the current result, the previous one while a new one is computed, or nil, and the start of the computation.
func (m *analyticsCache) get(ctx context.Context, within time.Duration, now time.Time) (*analyticsAnswer, time.Time) {
	a := m.current(within, now)
	timeout := time.NewTimer(analyticsWait)
	defer timeout.Stop()
	select {
	case <-a.ended:
		return a, a.began
	case <-ctx.Done():
	case <-timeout.C:
	}
	return a.before, a.began
}

// current returns the result or the computation in progress. If the result is old it starts a new computation.
func (m *analyticsCache) current(within time.Duration, now time.Time) *analyticsAnswer {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.known[within]
	if a != nil && !a.old(now) {
		return a
	}
	fresh := &analyticsAnswer{began: now, ended: make(chan struct{})}
	if a != nil && a.err == nil {
		shown := *a
		shown.before, fresh.before = nil, &shown // do not keep a chain of all earlier results
	}
	m.known[within] = fresh
	go fresh.compute(m.operator, within)
	return fresh
}

// old reports whether the result must be computed again.
func (a *analyticsAnswer) old(now time.Time) bool {
	select {
	case <-a.ended:
		return a.err != nil || now.Sub(a.at) > max(analyticsFresh, analyticsCostFactor*a.took)
	default:
		return false
	}
}

// compute computes the figures. It is independent of the request that started it.
func (a *analyticsAnswer) compute(operator ops.Operator, within time.Duration) {
	ctx, stop := context.WithTimeout(context.Background(), analyticsLimit)
	defer stop()
	began := time.Now()
	a.figures, a.err = operator.Analytics(ctx, within)
	a.at, a.took = began, time.Since(began)
	close(a.ended)
}
