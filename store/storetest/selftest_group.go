package storetest

import (
	"context"
	"errors"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// groupDefects are defects of groups.
var groupDefects = map[string]func(store.Store) store.Store{
	"a group whose outcome is a counter":          func(s store.Store) store.Store { return &countsEnds{Store: s, ended: map[holdfast.ID]int{}} },
	"a retry that leaves the group as it was":     func(s store.Store) store.Store { return neverReopens{s} },
	"waiting members start at once":               func(s store.Store) store.Store { return neverWaits{s} },
	"waiting members are never released":          func(s store.Store) store.Store { return neverAdvances{s} },
	"a retried group without its waiting members": func(s store.Store) store.Store { return retriesHalf{s} },
	"a cancelled group whose members continue":    func(s store.Store) store.Store { return onlySeals{s} },
}

// countsEnds counts completions as they come, although a member may complete twice.
type countsEnds struct {
	store.Store
	ended map[holdfast.ID]int
}

func (s *countsEnds) Settle(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	answers, err := s.Store.Settle(ctx, settlements)
	for i := range answers {
		job, _ := s.Store.Job(ctx, settlements[i].Job)
		if answers[i] == nil && settlements[i].To.Terminal() && !job.Group.IsZero() {
			s.ended[job.Group]++
		}
	}
	return answers, err
}

func (s *countsEnds) Group(ctx context.Context, id holdfast.ID) (holdfast.Group, error) {
	g, err := s.Store.Group(ctx, id)
	if s.ended[id] >= g.Members.Total && g.State == holdfast.GroupProcessing {
		g.State = g.Members.Outcome(g.Quorum)
	}
	return g, err
}

type neverReopens struct{ store.Store }

func (s neverReopens) Group(ctx context.Context, id holdfast.ID) (holdfast.Group, error) {
	g, err := s.Store.Group(ctx, id)
	g.Generation = min(g.Generation, 1)
	return g, err
}

type neverWaits struct{ store.Store }

func (s neverWaits) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	hasty := append([]holdfast.Draft{}, drafts...)
	for i := range hasty {
		hasty[i].After = nil
	}
	return s.Store.Enqueue(ctx, hasty)
}

type neverAdvances struct{ store.Store }

func (neverAdvances) AdvanceGroups(context.Context, int) (int, error) { return 0, nil }

// retriesHalf retries failed members one by one, without those that wait for them.
type retriesHalf struct{ store.Store }

func (s retriesHalf) RetryGroup(ctx context.Context, i store.Intervention) (int, error) {
	jobs, _, err := s.Store.Jobs(ctx, store.Filter{Group: i.Group, DeadLetters: true, Limit: 200})
	if err != nil || len(jobs) == 0 {
		return s.Store.RetryGroup(ctx, i)
	}
	n := 0
	for _, job := range jobs {
		_, failed := s.Store.Retry(ctx, store.Intervention{Job: job.ID, Owner: i.Owner, Actor: i.Actor, Reason: i.Reason})
		err = errors.Join(err, failed)
		n++
	}
	return n, err
}

type onlySeals struct{ store.Store }

func (s onlySeals) CancelGroup(ctx context.Context, i store.Intervention) error {
	if i.Actor == "" || i.Owner != "" {
		return s.Store.CancelGroup(ctx, i)
	}
	return s.Store.SealGroup(ctx, i.Group)
}
