package console

import (
	"context"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/redrive"
	"github.com/holdfastdev/holdfast/ops"
)

// A glance is what every page says at its edge: what needs somebody now.
type glance struct {
	Open     int  // breakers that keep jobs back
	Dead     int  // dead letters, up to ops.MostCounted
	Troubles int  // error groups that are new or came back, and that nobody looks after yet
	Redrives int  // that are under way
	Paused   int  // queues that somebody paused
	Workers  int  // alive
	Blind    bool // the store did not answer: the rest is worth nothing
}

// Wrong reports whether something needs somebody: then the console begins with failures.
func (g glance) Wrong() bool { return g.Open > 0 || g.Dead > 0 || g.Troubles > 0 }

// A pulse takes a glance at most once a second, however many pages are asked for.
type pulse struct {
	desk ops.Desk

	mu   sync.Mutex
	last glance
	at   time.Time
}

// freshFor is how long a glance serves; glanceWithin is how long a page waits for one.
const (
	freshFor     = time.Second
	glanceWithin = 2 * time.Second
)

// now answers with a glance that is at most a second old.
func (p *pulse) now(ctx context.Context) glance {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < freshFor {
		return p.last
	}
	ctx, enough := context.WithTimeout(ctx, glanceWithin)
	defer enough()
	seen, err := look(ctx, p.desk)
	if err != nil {
		seen = glance{Blind: true}
	}
	if ctx.Err() == nil {
		p.last, p.at = seen, time.Now()
	}
	return seen
}

// look asks the desk what needs somebody. Every question is bounded.
func look(ctx context.Context, desk ops.Desk) (g glance, err error) {
	breakers, err := desk.Breakers(ctx)
	if err != nil {
		return g, err
	}
	for _, one := range breakers {
		if one.State.Refuses() {
			g.Open++
		}
	}
	if g.Dead, err = desk.Count(ctx, holdfast.Filter{DeadLetters: true}); err != nil {
		return g, err
	}
	for _, status := range []holdfast.Status{holdfast.Open, holdfast.Regressed} {
		groups, _, err := desk.ErrorGroups(ctx, holdfast.ErrorFilter{Status: status, Limit: 100})
		if err != nil {
			return g, err
		}
		for _, one := range groups {
			if one.LastDay > 0 {
				g.Troubles++
			}
		}
	}
	redrives, err := desk.Redrives(ctx)
	if err != nil {
		return g, err
	}
	for _, one := range redrives {
		if one.State == redrive.Running || one.State == redrive.Paused {
			g.Redrives++
		}
	}
	holds, err := desk.Holds(ctx)
	if err != nil {
		return g, err
	}
	for _, one := range holds {
		if one.Queue != "" && one.Closed() && (one.Source == "" || one.Source == holdfast.SourceOperator) {
			g.Paused++
		}
	}
	workers, err := desk.Workers(ctx)
	g.Workers = len(workers)
	return g, err
}
