package storetest

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// controlDefects are defects of holds, records, redrives and error groups.
var controlDefects = map[string]func(store.Store) store.Store{
	"an edit of whatever the job has become": func(s store.Store) store.Store {
		return editsAs{s, func(e *store.Edit) { e.IfDigest = "" }}
	},
	"an edit that keeps the time": func(s store.Store) store.Store {
		return editsAs{s, func(e *store.Edit) { e.Delay = nil }}
	},
	"an edit that ignores the owner": func(s store.Store) store.Store {
		return editsAs{s, func(e *store.Edit) { e.Owner = "" }}
	},
	"a limit kept as a counter":                func(s store.Store) store.Store { return &countsLimits{Store: s} },
	"a bucket that is never charged":           func(s store.Store) store.Store { return freeTokens{s} },
	"a hold on retries that holds all":         func(s store.Store) store.Store { return holdsAll{s} },
	"an owner that is always served first":     func(s store.Store) store.Store { return unfair{s} },
	"a redrive without compare-and-set":        func(s store.Store) store.Store { return redrivesTwice{s} },
	"a redrive that patches nothing":           func(s store.Store) store.Store { return neverPatches{s} },
	"a record kept without its version":        func(s store.Store) store.Store { return lastWins{s} },
	"half of a change":                         func(s store.Store) store.Store { return halfChange{s} },
	"a missed deadline that is reported twice": func(s store.Store) store.Store { return &tellsTwice{Store: s} },
	"failures that are counted by the call":    func(s store.Store) store.Store { return countsCalls{s} },
	"a version that is not checked": func(s store.Store) store.Store {
		return settlesAs{s, func(e *store.Settlement) { e.Version = "" }}
	},
	"a declared dependency that is lost": func(s store.Store) store.Store { return forgetsDepends{s} },
	"a promise to start again, forgotten": func(s store.Store) store.Store {
		return settlesAs{s, func(e *store.Settlement) { e.StartWithin = 0 }}
	},
	"a claim that stops at the first closed": func(s store.Store) store.Store { return stopsShort{s} },
}

// countsLimits does not decrement the count for jobs of a lost worker.
type countsLimits struct {
	store.Store
	leaked int
}

func (s *countsLimits) Reclaim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	jobs, _, _ := s.Store.Jobs(ctx, store.Filter{State: holdfast.Processing, Limit: 200})
	for _, job := range jobs {
		s.leaked += countIf(!job.LeaseUntil.After(job.AsOf))
	}
	return s.Store.Reclaim(ctx, c)
}

func (s *countsLimits) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	holds, err := s.Store.Holds(ctx)
	if err == nil && slices.ContainsFunc(holds, func(h store.Hold) bool { return h.AtMost > 0 }) && s.leaked >= c.Limit {
		return nil, nil
	}
	return s.Store.Claim(ctx, c)
}

type freeTokens struct{ store.Store }

func (s freeTokens) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	leases, err := s.Store.Claim(ctx, c)
	holds, _ := s.Store.Holds(ctx)
	for _, h := range holds {
		if h.Rate != nil && len(leases) > 0 {
			_ = s.Store.Apply(ctx, store.Change{Deposits: []store.Deposit{{Hold: h, Tokens: 1}}})
		}
	}
	return leases, err
}

type holdsAll struct{ store.Store }

func (s holdsAll) Pause(ctx context.Context, h store.Hold) error {
	h.Retries = false
	return s.Store.Pause(ctx, h)
}

// unfair gives one owner a weight that was not set.
type unfair struct{ store.Store }

func (s unfair) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	_ = s.Store.Apply(ctx, kept(store.Record{Namespace: "share", Name: "acme", Body: raw(`{"weight": 1000}`)}))
	return s.Store.Claim(ctx, c)
}

// redrivesTwice checks only the state of a job, and not whether the redrive took it before.
type redrivesTwice struct{ store.Store }

func (s redrivesTwice) Redrive(ctx context.Context, r store.Redrive) ([]error, error) {
	answers, err := s.Store.Redrive(ctx, r)
	for i, answer := range answers {
		job, _ := s.Store.Job(ctx, r.Jobs[i])
		if answer == nil && job.State == holdfast.Failed && !job.Discarded {
			_, answers[i] = s.Store.Retry(ctx, store.Intervention{Job: job.ID, Actor: r.Actor, Reason: r.Reason})
		}
	}
	return answers, err
}

type neverPatches struct{ store.Store }

func (s neverPatches) Redrive(ctx context.Context, r store.Redrive) ([]error, error) {
	r.Patch = nil
	return s.Store.Redrive(ctx, r)
}

// lastWins writes a record whatever its version.
type lastWins struct{ store.Store }

func (s lastWins) Apply(ctx context.Context, c store.Change) error {
	c.Records = slices.Clone(c.Records)
	for i := range c.Records {
		r := &c.Records[i]
		known, err := s.Store.Records(ctx, r.Namespace)
		if err != nil {
			return err
		}
		r.Version = 0
		for _, k := range known {
			if k.Name == r.Name {
				r.Version = k.Version
			}
		}
	}
	return s.Store.Apply(ctx, c)
}

// halfChange applies the rest of a change even if its records are refused.
type halfChange struct{ store.Store }

func (s halfChange) Apply(ctx context.Context, c store.Change) error {
	err := s.Store.Apply(ctx, c)
	if errors.Is(err, holdfast.ErrConflict) {
		c.Records = nil
		_ = s.Store.Apply(ctx, c)
	}
	return err
}

type tellsTwice struct {
	store.Store
	last []holdfast.ID
}

func (s *tellsTwice) MissedDeadlines(ctx context.Context, limit int) ([]holdfast.ID, error) {
	found, err := s.Store.MissedDeadlines(ctx, limit)
	found, s.last = append(found, s.last...), found
	return found, err
}

// countsCalls keeps only the fingerprint of the first failure of a call.
type countsCalls struct{ store.Store }

func (s countsCalls) Settle(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	changed, seen := slices.Clone(settlements), map[string]bool{}
	for i := range changed {
		f := changed[i].Failure
		if f == nil {
			continue
		}
		if bare := *f; seen[f.Fingerprint] {
			bare.Fingerprint = ""
			changed[i].Failure = &bare
		}
		seen[f.Fingerprint] = true
	}
	return s.Store.Settle(ctx, changed)
}

type forgetsDepends struct{ store.Store }

func (s forgetsDepends) ReportWorker(ctx context.Context, p store.WorkerInfo) error {
	p.Depends = nil
	return s.Store.ReportWorker(ctx, p)
}

// stopsShort takes nothing while any limit is in force that is exhausted.
type stopsShort struct{ store.Store }

func (s stopsShort) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	holds, err := s.Store.Holds(ctx)
	if err != nil || slices.ContainsFunc(holds, func(h store.Hold) bool { return h.Rate != nil && h.Rate.Level < 1 }) {
		return nil, err
	}
	return s.Store.Claim(ctx, c)
}

type editsAs struct {
	store.Store
	change func(*store.Edit)
}

func (s editsAs) Edit(ctx context.Context, e store.Edit) (holdfast.Job, error) {
	s.change(&e)
	return s.Store.Edit(ctx, e)
}
