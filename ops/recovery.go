package ops

import (
	"context"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/store"
)

// A Recovery is one outage of a dependency, as its breaker saw it. The times of transitions are exact. The end of the backlog is
// estimated from the newest jobs that existed before the recovery, and only for the latest recovery of a dependency.
type Recovery struct {
	Dependency string    `json:"dependency"`
	Opened     time.Time `json:"opened"`
	Why        string    `json:"why,omitempty"`
	Reopened   int       `json:"reopened"`         // how often a probe or the ramp failed in between
	Back       time.Time `json:"back,omitzero"`    // when its jobs started to run again; zero while it is down
	Closed     time.Time `json:"closed,omitzero"`  // when the ramp ended
	Drained    time.Time `json:"drained,omitzero"` // from Back to Drained
	Waiting    int       `json:"waiting"`          // due jobs that still wait for it, up to 10,000

	Away  time.Duration `json:"away,omitzero"`  // from Opened to Back
	Drain time.Duration `json:"drain,omitzero"` // from back to drained: what the backlog took
}

// maxRecoveries limits the dependencies whose backlog is read; each needs a list of jobs.
const maxRecoveries = 20

// recoveries returns the recoveries in the breakers' histories, the latest first.
func (s *Service) recoveries(ctx context.Context) ([]Recovery, error) {
	records, err := s.store.Records(ctx, namespaceBreaker)
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
		if latest[e.Dependency] || len(latest) >= maxRecoveries {
			continue
		}
		latest[e.Dependency] = true
		if err := s.backlog(ctx, e, asOf[e.Dependency]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// episodes returns the outages of a dependency from its breaker's transitions.
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

// backlog finds when the jobs that had waited for a dependency started.
func (s *Service) backlog(ctx context.Context, e *Recovery, now time.Time) (err error) {
	if e.Closed.IsZero() {
		e.Waiting, err = s.store.CountHeld(ctx, store.Hold{Dependency: e.Dependency, Source: store.SourceBreaker, Actor: breaker.System})
		if err != nil {
			return err
		}
	}
	if e.Back.IsZero() || !now.After(e.Back) {
		return nil
	}
	jobs, _, err := s.store.Jobs(ctx, store.Filter{Dependency: e.Dependency, OlderThan: now.Sub(e.Back), Limit: maxPage})
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
