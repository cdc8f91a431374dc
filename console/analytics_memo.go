package console

import (
	"context"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/ops"
)

// An analyticsMemo keeps figures that take long to add up: they read every job of their time. Whoever asks first has them added up behind the
// page, and those who come later find them.
type analyticsMemo struct {
	desk  ops.Desk
	mu    sync.Mutex
	known map[time.Duration]*analyticsAnswer
}

// An analyticsAnswer is what was added up, or is being.
type analyticsAnswer struct {
	began time.Time
	ended chan struct{} // closed when it is there

	at      time.Time
	took    time.Duration
	figures ops.Analytics
	err     error
	before  *analyticsAnswer // what is shown until then
}

const (
	analyticsPatience = 60 * time.Millisecond // how long a page waits
	analyticsFresh    = 30 * time.Second      // how long an answer holds, at least
	analyticsLimit    = 2 * time.Minute       // how long it may be added up
	analyticsEase     = 20                    // and no more than one part in so many of the time is spent on it
)

// ask answers with the figures, the last ones while new ones are added up, or nil and since when that is going on.
func (m *analyticsMemo) ask(ctx context.Context, within time.Duration, now time.Time) (*analyticsAnswer, time.Time) {
	a := m.current(within, now)
	patience := time.NewTimer(analyticsPatience)
	defer patience.Stop()
	select {
	case <-a.ended:
		return a, a.began
	case <-ctx.Done():
	case <-patience.C:
	}
	return a.before, a.began
}

// current is the answer that is there or on its way. An old one has a new one begun.
func (m *analyticsMemo) current(within time.Duration, now time.Time) *analyticsAnswer {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.known[within]
	if a != nil && !a.old(now) {
		return a
	}
	fresh := &analyticsAnswer{began: now, ended: make(chan struct{})}
	if a != nil && a.err == nil {
		shown := *a
		shown.before, fresh.before = nil, &shown // no chain of all that was ever shown
	}
	m.known[within] = fresh
	go fresh.find(m.desk, within)
	return fresh
}

// old reports whether it is time for a new one.
func (a *analyticsAnswer) old(now time.Time) bool {
	select {
	case <-a.ended:
		return a.err != nil || now.Sub(a.at) > max(analyticsFresh, analyticsEase*a.took)
	default:
		return false
	}
}

// find adds up. It is nobody's request: it goes on when the visitor does.
func (a *analyticsAnswer) find(desk ops.Desk, within time.Duration) {
	ctx, stop := context.WithTimeout(context.Background(), analyticsLimit)
	defer stop()
	began := time.Now()
	a.figures, a.err = desk.Analytics(ctx, within)
	a.at, a.took = began, time.Since(began)
	close(a.ended)
}
