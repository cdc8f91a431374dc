package console

import (
	"context"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// A snapshot is the state that every page shows: the counts of the menu and the records behind them. Several pages show more of it.
type snapshot struct {
	Open        int  // breakers that hold jobs
	Dead        int  // dead letters, up to ops.MaxCounted
	NewErrors   int  // error groups that are open or regressed and failed in the last 24 hours
	Redrives    int  // running or paused
	Paused      int  // queues that an operator paused
	Workers     int  // alive
	Unavailable bool // the store did not answer; the other fields are zero

	breakers  []ops.Breaker
	open      []store.ErrorGroup // the last seen first, up to maxGroupsRead
	regressed []store.ErrorGroup
	redrives  []redrive.Progress
	workers   []store.WorkerInfo
}

// NeedsAttention reports whether a breaker is open, a dead letter exists or a new error occurred. The start page is then the errors page.
func (g snapshot) NeedsAttention() bool { return g.Open > 0 || g.Dead > 0 || g.NewErrors > 0 }

// A snapshotCache takes a snapshot at most once a second, for all pages together. It is safe for concurrent use.
type snapshotCache struct {
	operator ops.Operator

	mu   sync.Mutex
	last snapshot
	err  error
	at   time.Time
}

const (
	snapshotTTL     = time.Second     // how long a snapshot is used, unless something changed
	snapshotTimeout = 2 * time.Second // how long a page waits for a snapshot
	maxGroupsRead   = 100             // error groups of one status
)

// now returns a snapshot that is at most a second old. On an error it returns an unavailable snapshot and the error.
func (p *snapshotCache) now(ctx context.Context) (snapshot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < snapshotTTL {
		return p.last, p.err
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	seen, err := takeSnapshot(ctx, p.operator)
	if err != nil {
		seen = snapshot{Unavailable: true}
	}
	if ctx.Err() == nil {
		p.last, p.err, p.at = seen, err, time.Now()
	}
	return seen, err
}

// forget discards the snapshot, because something has changed.
func (p *snapshotCache) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = time.Time{}
}

// takeSnapshot reads the operator. Every query is bounded.
func takeSnapshot(ctx context.Context, operator ops.Operator) (g snapshot, err error) {
	var holds []ops.HoldStatus
	err = inParallel(
		func() (err error) { g.breakers, err = operator.Breakers(ctx); return err },
		func() (err error) { g.Dead, err = operator.Count(ctx, store.Filter{DeadLetters: true}); return err },
		func() (err error) { g.open, err = recentErrorGroups(ctx, operator, store.StatusOpen); return err },
		func() (err error) {
			g.regressed, err = recentErrorGroups(ctx, operator, store.StatusRegressed)
			return err
		},
		func() (err error) { g.redrives, err = readableRedrives(operator.Redrives(ctx)); return err },
		func() (err error) { holds, err = operator.Holds(ctx); return err },
		func() (err error) { g.workers, err = operator.Workers(ctx); return err },
	)
	for _, one := range g.breakers {
		if one.State.Refuses() {
			g.Open++
		}
	}
	for _, groups := range [][]store.ErrorGroup{g.open, g.regressed} {
		for _, one := range groups {
			if one.LastDay > 0 {
				g.NewErrors++
			}
		}
	}
	for _, one := range g.redrives {
		if one.State == redrive.Running || one.State == redrive.Paused {
			g.Redrives++
		}
	}
	for _, one := range holds {
		if one.Queue != "" && one.Closed() && (one.Source == "" || one.Source == store.SourceOperator) {
			g.Paused++
		}
	}
	g.Workers = len(g.workers)
	return g, err
}

// recentErrorGroups returns the error groups of a status, the last seen first.
func recentErrorGroups(ctx context.Context, operator ops.Operator, status store.Status) ([]store.ErrorGroup, error) {
	groups, _, err := operator.ErrorGroups(ctx, store.ErrorFilter{Status: status, Limit: maxGroupsRead})
	return groups, err
}

// readableRedrives drops the error of a partly failed read: one unreadable record does not hide the others. The redrives page shows the error.
func readableRedrives(all []redrive.Progress, err error) ([]redrive.Progress, error) {
	if len(all) > 0 {
		return all, nil
	}
	return nil, err
}

// inParallel runs functions concurrently and returns the error of the first, in argument order, that failed.
func inParallel(funcs ...func() error) error {
	var all sync.WaitGroup
	errs := make([]error, len(funcs))
	for i, f := range funcs {
		all.Go(func() { errs[i] = f() })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
