package storetest

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfastdev/holdfast"
)

// controlDefects are defects of holds, records, redrives and error groups.
var controlDefects = map[string]func(holdfast.Store) holdfast.Store{
	"an edit of whatever the job has become": func(s holdfast.Store) holdfast.Store {
		return editsAs{s, func(e *holdfast.Edit) { e.Seen = "" }}
	},
	"an edit that keeps the time": func(s holdfast.Store) holdfast.Store {
		return editsAs{s, func(e *holdfast.Edit) { e.Delay = nil }}
	},
	"an edit that ignores the owner": func(s holdfast.Store) holdfast.Store {
		return editsAs{s, func(e *holdfast.Edit) { e.Owner = "" }}
	},
	"a limit kept as a counter":             func(s holdfast.Store) holdfast.Store { return &countsLimits{Store: s} },
	"a bucket that is never charged":        func(s holdfast.Store) holdfast.Store { return freeTokens{s} },
	"a hold on retries that holds all":      func(s holdfast.Store) holdfast.Store { return holdsAll{s} },
	"an owner that is always served first":  func(s holdfast.Store) holdfast.Store { return unfair{s} },
	"a redrive without compare-and-set":     func(s holdfast.Store) holdfast.Store { return redrivesTwice{s} },
	"a redrive that patches nothing":        func(s holdfast.Store) holdfast.Store { return neverPatches{s} },
	"a record kept without its version":     func(s holdfast.Store) holdfast.Store { return lastWins{s} },
	"half of a change":                      func(s holdfast.Store) holdfast.Store { return halfChange{s} },
	"a breach that is reported twice":       func(s holdfast.Store) holdfast.Store { return &tellsTwice{Store: s} },
	"failures that are counted by the call": func(s holdfast.Store) holdfast.Store { return countsCalls{s} },
	"a version that is not checked": func(s holdfast.Store) holdfast.Store {
		return settlesAs{s, func(e *holdfast.Settlement) { e.Version = "" }}
	},
	"a declared dependency that is lost": func(s holdfast.Store) holdfast.Store { return forgetsDepends{s} },
	"a promise to start again, forgotten": func(s holdfast.Store) holdfast.Store {
		return settlesAs{s, func(e *holdfast.Settlement) { e.Within = 0 }}
	},
	"a claim that stops at the first closed": func(s holdfast.Store) holdfast.Store { return stopsShort{s} },
}

// countsLimits does not decrement the count for jobs of a lost worker.
type countsLimits struct {
	holdfast.Store
	leaked int
}

func (s *countsLimits) Reclaim(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	jobs, _, _ := s.Store.Jobs(ctx, holdfast.Filter{State: holdfast.Processing, Limit: 200})
	for _, job := range jobs {
		s.leaked += countIf(!job.LeaseUntil.After(job.AsOf))
	}
	return s.Store.Reclaim(ctx, c)
}

func (s *countsLimits) Claim(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	holds, err := s.Store.Holds(ctx)
	if err == nil && slices.ContainsFunc(holds, func(h holdfast.Hold) bool { return h.AtMost > 0 }) && s.leaked >= c.Limit {
		return nil, nil
	}
	return s.Store.Claim(ctx, c)
}

type freeTokens struct{ holdfast.Store }

func (s freeTokens) Claim(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	leases, err := s.Store.Claim(ctx, c)
	holds, _ := s.Store.Holds(ctx)
	for _, h := range holds {
		if h.Rate != nil && len(leases) > 0 {
			_ = s.Store.Keep(ctx, holdfast.Change{Deposits: []holdfast.Deposit{{Hold: h, Tokens: 1}}})
		}
	}
	return leases, err
}

type holdsAll struct{ holdfast.Store }

func (s holdsAll) Pause(ctx context.Context, h holdfast.Hold) error {
	h.Retries = false
	return s.Store.Pause(ctx, h)
}

// unfair gives one owner a weight that was not set.
type unfair struct{ holdfast.Store }

func (s unfair) Claim(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	_ = s.Store.Keep(ctx, kept(holdfast.Record{Room: "share", Name: "acme", Body: raw(`{"weight": 1000}`)}))
	return s.Store.Claim(ctx, c)
}

// redrivesTwice checks only the state of a job, and not whether the redrive took it before.
type redrivesTwice struct{ holdfast.Store }

func (s redrivesTwice) Redrive(ctx context.Context, r holdfast.Redrive) ([]error, error) {
	answers, err := s.Store.Redrive(ctx, r)
	for i, answer := range answers {
		job, _ := s.Store.Job(ctx, r.Jobs[i])
		if answer == nil && job.State == holdfast.Failed && !job.Discarded {
			_, answers[i] = s.Store.Retry(ctx, holdfast.Intervention{Job: job.ID, Actor: r.Actor, Reason: r.Reason})
		}
	}
	return answers, err
}

type neverPatches struct{ holdfast.Store }

func (s neverPatches) Redrive(ctx context.Context, r holdfast.Redrive) ([]error, error) {
	r.Patch = nil
	return s.Store.Redrive(ctx, r)
}

// lastWins writes a record whatever its version.
type lastWins struct{ holdfast.Store }

func (s lastWins) Keep(ctx context.Context, c holdfast.Change) error {
	c.Records = slices.Clone(c.Records)
	for i := range c.Records {
		r := &c.Records[i]
		known, err := s.Store.Records(ctx, r.Room)
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
	return s.Store.Keep(ctx, c)
}

// halfChange applies the rest of a change even if its records are refused.
type halfChange struct{ holdfast.Store }

func (s halfChange) Keep(ctx context.Context, c holdfast.Change) error {
	err := s.Store.Keep(ctx, c)
	if errors.Is(err, holdfast.ErrConflict) {
		c.Records = nil
		_ = s.Store.Keep(ctx, c)
	}
	return err
}

type tellsTwice struct {
	holdfast.Store
	last []holdfast.ID
}

func (s *tellsTwice) Breach(ctx context.Context, limit int) ([]holdfast.ID, error) {
	found, err := s.Store.Breach(ctx, limit)
	found, s.last = append(found, s.last...), found
	return found, err
}

// countsCalls keeps only the fingerprint of the first failure of a call.
type countsCalls struct{ holdfast.Store }

func (s countsCalls) Settle(ctx context.Context, settlements []holdfast.Settlement) ([]error, error) {
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

type forgetsDepends struct{ holdfast.Store }

func (s forgetsDepends) Present(ctx context.Context, p holdfast.Presence) error {
	p.Depends = nil
	return s.Store.Present(ctx, p)
}

// stopsShort takes nothing while any limit is in force that is exhausted.
type stopsShort struct{ holdfast.Store }

func (s stopsShort) Claim(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	holds, err := s.Store.Holds(ctx)
	if err != nil || slices.ContainsFunc(holds, func(h holdfast.Hold) bool { return h.Rate != nil && h.Rate.Level < 1 }) {
		return nil, err
	}
	return s.Store.Claim(ctx, c)
}

type editsAs struct {
	holdfast.Store
	change func(*holdfast.Edit)
}

func (s editsAs) Edit(ctx context.Context, e holdfast.Edit) (holdfast.Job, error) {
	s.change(&e)
	return s.Store.Edit(ctx, e)
}
