package ops

import (
	"context"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
)

// A Recovery is one time that a dependency was away, as its breaker saw it. Transitions are exact. When the backlog was gone is
// read from the newest jobs that were there before: it is known for the latest recovery of a dependency only, and is an estimate.
type Recovery struct {
	Dependency string    `json:"dependency"`
	Opened     time.Time `json:"opened"`
	Why        string    `json:"why,omitempty"`
	Reopened   int       `json:"reopened"`         // how often a probe or the ramp failed in between
	Back       time.Time `json:"back,omitzero"`    // its jobs began to flow again; zero while it is away
	Closed     time.Time `json:"closed,omitzero"`  // they flow freely
	Drained    time.Time `json:"drained,omitzero"` // the last job that had waited for it started, about
	Waiting    int       `json:"waiting"`          // due jobs that still wait for it, up to MostCounted

	Away  time.Duration `json:"away,omitzero"`  // from opened to back
	Drain time.Duration `json:"drain,omitzero"` // from back to drained: what the backlog took
}

// mostRecoveries bounds what is looked into: each costs a list of jobs.
const mostRecoveries = 20

// recoveries reads the breakers' histories, the latest recovery first.
func (s *Service) recoveries(ctx context.Context) ([]Recovery, error) {
	records, err := s.store.Records(ctx, breakerRoom)
	if err != nil {
		return nil, err
	}
	list := []Recovery{}
	latest := map[string]bool{}
	asOf := map[string]time.Time{}
	for _, r := range records {
		asOf[r.Name] = r.AsOf
		list = append(list, episodes(r.Name, decode(r).History)...)
	}
	slices.SortStableFunc(list, func(a, b Recovery) int { return b.Opened.Compare(a.Opened) })
	for n := range list {
		e := &list[n]
		if latest[e.Dependency] || len(latest) >= mostRecoveries {
			continue
		}
		latest[e.Dependency] = true
		if err := s.backlog(ctx, e, asOf[e.Dependency]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// episodes tells the times a dependency was away, from its breaker's transitions.
func episodes(dependency string, history []breaker.Transition) (list []Recovery) {
	var away *Recovery
	for _, t := range history {
		switch {
		case t.To.Refuses() && away == nil:
			list = append(list, Recovery{Dependency: dependency, Opened: t.At, Why: t.Why})
			away = &list[len(list)-1]
		case away == nil:
		case t.To.Refuses():
			away.Reopened++
			away.Back, away.Away = time.Time{}, 0
		case t.To == breaker.Recovering || t.To == breaker.Closed || t.To == breaker.ForcedClosed:
			if away.Back.IsZero() {
				away.Back, away.Away = t.At, t.At.Sub(away.Opened)
			}
			if t.To != breaker.Recovering {
				away.Closed, away = t.At, nil
			}
		}
	}
	return list
}

// backlog looks when the jobs that had waited for a dependency were started.
func (s *Service) backlog(ctx context.Context, e *Recovery, now time.Time) (err error) {
	if e.Closed.IsZero() {
		e.Waiting, err = s.store.Behind(ctx, holdfast.Hold{Dependency: e.Dependency, Source: holdfast.SourceBreaker, Actor: breaker.System})
		if err != nil {
			return err
		}
	}
	if e.Back.IsZero() || !now.After(e.Back) {
		return nil
	}
	jobs, _, err := s.store.Jobs(ctx, holdfast.Filter{Dependency: e.Dependency, OlderThan: now.Sub(e.Back), Limit: mostListed})
	if err != nil {
		return err
	}
	for _, job := range jobs {
		switch {
		case job.State == holdfast.Queued && !job.DueAt.After(job.AsOf) && job.Failures == 0:
			e.Drained, e.Drain = time.Time{}, 0
			return nil
		case job.StartedAt.After(e.Back) && job.StartedAt.After(e.Drained):
			e.Drained, e.Drain = job.StartedAt, job.StartedAt.Sub(e.Back)
		}
	}
	return nil
}
