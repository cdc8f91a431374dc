package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfastdev/holdfast/store"
	"github.com/holdfastdev/holdfast/store/internal/rule"
)

// Pause places a hold and records an event. After a lost answer it does not repeat, because the event could then be recorded twice.
func (s *Store) Pause(ctx context.Context, h store.Hold) error {
	if err := rule.Hold(&h); err != nil {
		return err
	}
	name := "paused"
	if !h.Closed() {
		name = "limited"
	}
	return s.changeHold(ctx, "pause", func(ctx context.Context, p *pipeline, now time.Time) error {
		s.queuePlace(p.Batch, h, now)
		s.queueEvent(p.Batch, store.Event{Subject: subjectOf(h), Name: name, Actor: h.Actor, Reason: h.Reason}, now)
		return nil
	})
}

// Resume lifts a hold, and records an event if there was one.
func (s *Store) Resume(ctx context.Context, h store.Hold) error {
	if err := rule.Hold(&h); err != nil {
		return err
	}
	return s.changeHold(ctx, "resume", func(ctx context.Context, p *pipeline, now time.Time) error {
		there := false
		s.queueLift(p, h, now, &there)
		if err := p.flush(ctx); err != nil || !there {
			return err
		}
		s.queueEvent(p.Batch, store.Event{Subject: subjectOf(h), Name: "resumed", Actor: h.Actor, Reason: h.Reason}, now)
		return nil
	})
}

// changeHold changes holds in one transaction, and wakes all workers because more jobs may be claimable now.
func (s *Store) changeHold(ctx context.Context, verb string, change func(context.Context, *pipeline, time.Time) error) error {
	err := s.withRetries(ctx, verb, false, func(ctx context.Context) error {
		return s.transact(ctx, s.work, func(p *pipeline) error {
			var now time.Time
			p.queueRow(s.sql["now"], nil, &now)
			if err := p.flush(ctx); err != nil {
				return err
			}
			return change(ctx, p, now)
		})
	})
	if err == nil {
		s.hub.wake([]string{allQueues}, false)
	}
	return err
}

// subjectOf returns the subject of a hold's events.
func subjectOf(h store.Hold) string {
	scope, name := h.Scope()
	return "hold/" + scope + "/" + name
}

// queuePlace queues the insertion or replacement of a hold.
func (d *database) queuePlace(b *pgx.Batch, h store.Hold, now time.Time) {
	scope, name := h.Scope()
	var perSecond, burst, level, until, expected any
	if h.Rate != nil {
		perSecond, burst, level = h.Rate.PerSecond, h.Rate.Burst, h.Rate.Level
	}
	if h.For > 0 {
		until = timestamp(now.Add(max(h.For, time.Microsecond)))
	}
	if !h.Expected.IsZero() {
		expected = timestamp(h.Expected)
	}
	b.Queue(d.sql["hold_place"], scope, name, h.Source, h.Retries, h.AtMost, perSecond, burst, level, timestamp(now), until, expected, h.Actor, cleanText(h.Reason))
}

// queueLift queues the deletion of a hold. there is set if it was in force.
func (d *database) queueLift(p *pipeline, h store.Hold, now time.Time, there *bool) {
	scope, name := h.Scope()
	var one int
	p.queueRows(d.sql["hold_lift"], []any{scope, name, h.Source, timestamp(now)}, []any{&one}, func() error { *there = true; return nil })
}

// queueDeposit queues the addition of tokens to a rate limit.
func (d *database) queueDeposit(b *pgx.Batch, add store.Deposit, now time.Time) {
	scope, name := add.Hold.Scope()
	b.Queue(d.sql["hold_fill"], scope, name, add.Hold.Source, add.Tokens, timestamp(now))
}

// queueEvent queues an event of a subject that is not a job.
func (d *database) queueEvent(b *pgx.Batch, e store.Event, now time.Time) {
	b.Queue(d.sql["subject_event_add"], e.Subject, timestamp(now), e.Name, e.Actor, cleanText(e.Reason), cleanText(e.Request), e.Generation)
}

// changeHolds queues all changes of holds, in the order of their keys, in which claims lock them too. A hold that is lifted and placed in one change
// is in force afterwards.
func (d *database) changeHolds(p *pipeline, c *store.Change, now time.Time) {
	type step struct {
		hold store.Hold
		do   func()
	}
	var steps []step
	var there bool
	for _, h := range c.Lift {
		steps = append(steps, step{h, func() { d.queueLift(p, h, now, &there) }})
	}
	for _, h := range c.Place {
		steps = append(steps, step{h, func() { d.queuePlace(p.Batch, h, now) }})
	}
	for _, deposit := range c.Deposits {
		steps = append(steps, step{deposit.Hold, func() { d.queueDeposit(p.Batch, deposit, now) }})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return compareHolds(a.hold, b.hold) })
	for _, step := range steps {
		step.do()
	}
}
