package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfastdev/holdfast/apps/fetchbox/code"
	"github.com/holdfastdev/holdfast/apps/fetchbox/work"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

const (
	followInterval = 250 * time.Millisecond // of what follows the feed
	sweepInterval  = 10 * time.Minute
	sharedSweepAge = time.Hour // uploads of other processes on the same bucket may be in progress
)

// engine returns the engine of this process.
func (a *app) engine() (*engine.Engine, error) {
	cfg := engine.Config{
		Queues: []string{work.QueueFetch, work.QueueAccept}, Slots: a.set.Concurrency, Prefetch: -1, // a resource that waits for a slot must not count as processing
		Lease: a.set.Lease, Grace: a.set.Grace, Taxonomy: code.Taxonomy(), Classify: code.Classify, Log: a.log,
		Dependencies: a.worker.Dependencies(),
		Retention:    a.retention(), RetentionWarning: -1, KeepFeed: a.keepFeed(),
		OnAttemptEnd: a.attemptEnded,
		Duties: []engine.Duty{
			{Name: "ledger", Interval: followInterval, Run: a.followFeed},
			{Name: "dead-letters", Interval: followInterval, Run: a.outbox.Step},
			{Name: "replays", Interval: time.Second, Run: a.replays.Step},
			{Name: "sweep", Interval: sweepInterval, Run: a.sweep},
		},
	}
	e, err := engine.New(a.jobs, cfg)
	if err != nil {
		return nil, err
	}
	a.worker.Register(e)
	return e, nil
}

func (a *app) retention() []store.RetentionRule {
	keep := store.RetentionRule{Name: "record", For: a.set.KeepRecord}
	if keep.For == 0 {
		keep.For = store.Forever
	}
	return []store.RetentionRule{keep}
}

// keepFeed returns how long events are kept: as long as records, so that ledger and stream can be built again for every job that there is.
func (a *app) keepFeed() time.Duration {
	if a.set.KeepRecord == 0 {
		return store.Forever
	}
	return a.set.KeepRecord
}

func (a *app) operatorConfig() ops.Config {
	return ops.Config{Taxonomy: code.Taxonomy(), Retention: a.retention(), Breakers: work.Breakers()}
}

// attemptEnded is called after each attempt.
func (a *app) attemptEnded(end engine.AttemptEnd) {
	a.metrics.ObserveAttempt(end)
	a.worker.AttemptEnded(end)
}

// followFeed is a duty: it brings the ledger up to date.
func (a *app) followFeed(ctx context.Context) error {
	left, missed, err := a.ledger.Step(ctx, a.jobs)
	a.metrics.ledgerBehind.Store(left)
	if missed > 0 {
		a.log.Warn("the ledger missed events that retention had deleted", "event", "ledger_missed", "events", missed)
	}
	if err == nil && a.set.KeepRecord > 0 {
		_, err = a.ledger.Forget(time.Now().Add(-a.set.KeepRecord))
	}
	return err
}

// sweep is a duty: it deletes what uploads and downloads that were cut off left behind, and groups that no manifest was stored for.
func (a *app) sweep(ctx context.Context) error {
	return errors.Join(a.worker.SweepUploads(ctx, sharedSweepAge), a.worker.SweepSpool(ctx), a.intake.Sweep(ctx))
}

// sweepAtStart deletes what this process left when it was killed. Unfinished uploads may be of other processes, unless there are none.
func (a *app) sweepAtStart(ctx context.Context) error {
	err := a.worker.SweepSpool(ctx)
	if a.set.alone() {
		err = errors.Join(err, a.worker.SweepUploads(ctx, 0))
	}
	return err
}
