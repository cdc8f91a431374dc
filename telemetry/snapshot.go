package telemetry

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast/failure/breaker"
	"github.com/holdfastdev/holdfast/failure/redrive"
)

// feedDuty is the duty that numbers events for the feed.
const feedDuty = "sequence"

func (l *storeCollector) stats(ctx context.Context, s valueSet) error {
	stats, err := l.operator.Stats(ctx)
	if err != nil {
		return err
	}
	if alive, err := l.operator.Workers(ctx); err == nil { // on an error every name counts as chosen by a caller
		for _, w := range alive {
			l.names.queues.declare(w.Queues)
			l.names.kinds.declare(w.Kinds)
		}
	}
	s.set(workers, float64(stats.Workers))
	s.set(slots, float64(stats.Slots))
	for _, q := range stats.Queues {
		queue := l.names.queues.of(q.Queue)
		s.add(queueDepth, float64(q.Ready), queue, "ready")
		s.add(queueDepth, float64(q.Later), queue, "later")
		s.add(processing, float64(q.Processing), queue)
		s.add(deadLetters, float64(q.Dead), queue)
		s.most(queueAtLeast, flag(len(q.AtLeast) > 0), queue)
		s.most(queueHeld, flag(q.Held), queue)
		age := 0.0
		if !q.Oldest.IsZero() {
			age = max(0, time.Since(q.Oldest).Seconds())
		}
		s.most(queueOldest, age, queue)
	}
	return nil
}

func (l *storeCollector) holds(ctx context.Context, s valueSet) error {
	all, err := l.operator.Holds(ctx)
	if err != nil {
		return err
	}
	for _, h := range all {
		source := l.names.words.of(h.Source)
		s.add(holds, 1, source)
		s.add(heldJobs, float64(max(0, h.Behind)), source)
	}
	return nil
}

var circuitStates = []breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen, breaker.Recovering, breaker.ForcedOpen, breaker.ForcedClosed}

func (l *storeCollector) breakers(ctx context.Context, s valueSet) error {
	all, err := l.operator.Breakers(ctx)
	if err != nil {
		return err
	}
	for _, b := range all {
		dependency := l.names.dependencies.of(b.Dependency)
		state := b.State
		if state == "" {
			state = breaker.Closed
		}
		for _, each := range circuitStates {
			s.add(breakerState, flag(each == state), dependency, string(each))
		}
		away := 0.0
		if state.Refuses() && !b.Since.IsZero() {
			away = max(0, time.Since(b.Since).Seconds())
		}
		s.most(breakerOpen, away, dependency)
		s.add(breakerWaiting, float64(b.Behind), dependency)
	}
	return nil
}

func (l *storeCollector) duties(ctx context.Context, s valueSet) error {
	all, err := l.operator.Duties(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		duty := l.names.duties.of(d.Name)
		s.most(dutyLag, d.Lag.Seconds(), duty)
		s.most(dutyPaused, flag(d.Paused), duty)
		erred := 0.0
		if !d.ErrorAt.IsZero() {
			erred = float64(d.ErrorAt.UnixMilli()) / 1000
		}
		s.most(dutyErred, erred, duty)
		if d.Name == feedDuty {
			s.set(feedLag, d.Lag.Seconds())
		}
	}
	return nil
}

func (l *storeCollector) subscriptions(ctx context.Context, s valueSet) error {
	all, err := l.operator.Subscriptions(ctx)
	for _, sub := range all { // some may be readable although others are not
		state, sink := "told", l.names.words.of(sub.Sink)
		if sub.Disabled != "" {
			state = "disabled"
		} else {
			s.most(behind, float64(sub.Lag), sink)
		}
		s.add(subscriptions, 1, sink, state)
	}
	return err
}

func (l *storeCollector) redrives(ctx context.Context, s valueSet) error {
	all, err := l.operator.Redrives(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		s.add(redrives, 1, string(p.State))
		if p.State != redrive.Running {
			continue
		}
		s.add(redriving, float64(p.Counts.InFlight), "in_flight")
		s.add(redriving, float64(p.Counts.Complete), "complete")
		s.add(redriving, float64(p.Counts.Failed), "failed")
	}
	return nil
}
