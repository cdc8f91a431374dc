package console

import (
	"context"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
)

// A glance is what every page says at its edge, what needs somebody now, and what it was seen by: several pages show more of it.
type glance struct {
	Open     int  // breakers that keep jobs back
	Dead     int  // dead letters, up to ops.MostCounted
	Troubles int  // error groups that are new or came back, and that nobody looks after yet
	Redrives int  // that are under way
	Paused   int  // queues that somebody paused
	Workers  int  // alive
	Blind    bool // the store did not answer: the rest is worth nothing

	breakers  []ops.Breaker
	open      []holdfast.ErrorGroup // the last seen first, up to mostGlanced
	regressed []holdfast.ErrorGroup
	redrives  []redrive.Progress
	workers   []holdfast.Presence
}

// Wrong reports whether something needs somebody: then the console begins with failures.
func (g glance) Wrong() bool { return g.Open > 0 || g.Dead > 0 || g.Troubles > 0 }

// A pulse takes a glance at most once a second, however many pages are asked for.
type pulse struct {
	desk ops.Desk

	mu   sync.Mutex
	last glance
	err  error
	at   time.Time
}

const (
	freshFor     = time.Second     // how long a glance serves, unless it is known that something has changed
	glanceWithin = 2 * time.Second // how long a page waits for one
	mostGlanced  = 100             // error groups of a status
)

// now answers with a glance that is at most a second old. Pages that cannot do without it are told what went wrong.
func (p *pulse) now(ctx context.Context) (glance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < freshFor {
		return p.last, p.err
	}
	ctx, enough := context.WithTimeout(ctx, glanceWithin)
	defer enough()
	seen, err := look(ctx, p.desk)
	if err != nil {
		seen = glance{Blind: true}
	}
	if ctx.Err() == nil {
		p.last, p.err, p.at = seen, err, time.Now()
	}
	return seen, err
}

// forget has the next page look again: somebody has just changed something.
func (p *pulse) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = time.Time{}
}

// look asks the desk what needs somebody. Every question is bounded.
func look(ctx context.Context, desk ops.Desk) (g glance, err error) {
	var holds []ops.Held
	err = atOnce(
		func() (err error) { g.breakers, err = desk.Breakers(ctx); return err },
		func() (err error) { g.Dead, err = desk.Count(ctx, holdfast.Filter{DeadLetters: true}); return err },
		func() (err error) { g.open, err = glanced(ctx, desk, holdfast.Open); return err },
		func() (err error) { g.regressed, err = glanced(ctx, desk, holdfast.Regressed); return err },
		func() (err error) { g.redrives, err = readable(desk.Redrives(ctx)); return err },
		func() (err error) { holds, err = desk.Holds(ctx); return err },
		func() (err error) { g.workers, err = desk.Workers(ctx); return err },
	)
	for _, one := range g.breakers {
		if one.State.Refuses() {
			g.Open++
		}
	}
	for _, groups := range [][]holdfast.ErrorGroup{g.open, g.regressed} {
		for _, one := range groups {
			if one.LastDay > 0 {
				g.Troubles++
			}
		}
	}
	for _, one := range g.redrives {
		if one.State == redrive.Running || one.State == redrive.Paused {
			g.Redrives++
		}
	}
	for _, one := range holds {
		if one.Queue != "" && one.Closed() && (one.Source == "" || one.Source == holdfast.SourceOperator) {
			g.Paused++
		}
	}
	g.Workers = len(g.workers)
	return g, err
}

// glanced are the error groups of a status that were seen last.
func glanced(ctx context.Context, desk ops.Desk, status holdfast.Status) ([]holdfast.ErrorGroup, error) {
	groups, _, err := desk.ErrorGroups(ctx, holdfast.ErrorFilter{Status: status, Limit: mostGlanced})
	return groups, err
}

// readable are the redrives whose records can be read. One that cannot does not keep the rest from being seen: the page of redrives says so.
func readable(all []redrive.Progress, err error) ([]redrive.Progress, error) {
	if len(all) > 0 {
		return all, nil
	}
	return nil, err
}

// atOnce asks several things at the same time, and answers with the first error in their order.
func atOnce(questions ...func() error) error {
	var all sync.WaitGroup
	errs := make([]error, len(questions))
	for i, ask := range questions {
		all.Go(func() { errs[i] = ask() })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
