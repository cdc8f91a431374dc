package api

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/duty"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/schedule"
)

// Subscriptions lists them, the newest first.
func (d *Desk) Subscriptions(ctx context.Context) ([]ops.Subscribed, error) {
	out, err := call(ctx, d.c, ListSubscriptions, struct{}{})
	if err == nil {
		err = out.err()
	}
	return out.Subscriptions, err
}

// Subscription tells about one.
func (d *Desk) Subscription(ctx context.Context, id holdfast.ID) (ops.Subscribed, error) {
	return call(ctx, d.c, GetSubscription, BySubscription{id})
}

// Subscribe keeps a subscription. It is given its id here, so that an answer that was lost can be asked for again.
func (d *Desk) Subscribe(ctx context.Context, sub subscription.Subscription, by ops.By) (subscription.Subscription, error) {
	if sub.ID.IsZero() {
		sub.ID = holdfast.NewID()
	}
	return act(ctx, d, Resubscribe, by.Actor, ResubscribeIn{BySubscription{sub.ID}, Asked{by.Request}, subscriptionBody(sub, Word{by.Actor, by.Reason})})
}

// Unsubscribe forgets a subscription.
func (d *Desk) Unsubscribe(ctx context.Context, id holdfast.ID, by ops.By) error {
	_, err := act(ctx, d, Unsubscribe, by.Actor, DropSubscription{BySubscription{id}, Asked{by.Request}, dropped(by)})
	return err
}

// EnableSubscription lets a subscription be told again.
func (d *Desk) EnableSubscription(ctx context.Context, id holdfast.ID, by ops.By) error {
	_, err := act(ctx, d, EnableSubscription, by.Actor, OnSubscription{BySubscription{id}, said(by)})
	return err
}

// DisableSubscription has a subscription told nothing.
func (d *Desk) DisableSubscription(ctx context.Context, id holdfast.ID, by ops.By) error {
	_, err := act(ctx, d, DisableSubscription, by.Actor, OnSubscription{BySubscription{id}, said(by)})
	return err
}

// RewindSubscription has a subscription told once more of all that came after a number.
func (d *Desk) RewindSubscription(ctx context.Context, id holdfast.ID, after int64, by ops.By) error {
	_, err := act(ctx, d, RewindSubscription, by.Actor, RewindIn{BySubscription{id}, Asked{by.Request}, RewindBody{Word{by.Actor, by.Reason}, after}})
	return err
}

// Deliveries lists the deliveries of a subscription, or of all of them, newest first.
func (d *Desk) Deliveries(ctx context.Context, of holdfast.ID, f holdfast.Filter) (jobs []holdfast.Job, cursor string, err error) {
	in := DeliveriesIn{of, f.State, f.DeadLetters, f.Code, f.OlderThan, f.YoungerThan, f.Limit, f.Cursor}
	out, err := call(ctx, d.c, ListDeliveries, in)
	return out.Deliveries, out.Cursor, err
}

// Delivery tells all about one delivery.
func (d *Desk) Delivery(ctx context.Context, id holdfast.ID) (ops.Delivery, error) {
	return call(ctx, d.c, GetDelivery, ByDelivery{id})
}

// Resend delivers once more.
func (d *Desk) Resend(ctx context.Context, i holdfast.Intervention) (holdfast.ID, error) {
	out, err := act(ctx, d, Resend, i.Actor, ResendIn{ByDelivery{i.Job}, Asked{i.Request}, wordOn(i)})
	return out.ID, err
}

// Schedules lists them by name, each with its next slots.
func (d *Desk) Schedules(ctx context.Context, next int) ([]ops.Scheduled, error) {
	out, err := call(ctx, d.c, ListSchedules, SchedulesIn{next})
	if err == nil {
		err = out.err()
	}
	return out.Schedules, err
}

// Schedule tells about one, with its next slots.
func (d *Desk) Schedule(ctx context.Context, name string, next int) (ops.Scheduled, error) {
	return call(ctx, d.c, GetSchedule, ScheduleIn{ByName{name}, next})
}

// SetSchedule adds a schedule, or replaces the one of that name.
func (d *Desk) SetSchedule(ctx context.Context, plan schedule.Schedule, by ops.By) (ops.Scheduled, error) {
	return act(ctx, d, SetSchedule, by.Actor, SetScheduleIn{ByName{plan.Name}, Asked{by.Request}, scheduleBody(plan, Word{by.Actor, by.Reason})})
}

// RemoveSchedule forgets a schedule.
func (d *Desk) RemoveSchedule(ctx context.Context, name string, by ops.By) error {
	_, err := act(ctx, d, RemoveSchedule, by.Actor, DropNamed{ByName{name}, Asked{by.Request}, dropped(by)})
	return err
}

// PauseSchedule lets the slots of a schedule pass by.
func (d *Desk) PauseSchedule(ctx context.Context, name string, lasting time.Duration, by ops.By) error {
	return d.pause(ctx, PauseSchedule, name, lasting, by)
}

// ResumeSchedule ends a pause.
func (d *Desk) ResumeSchedule(ctx context.Context, name string, by ops.By) error {
	_, err := act(ctx, d, ResumeSchedule, by.Actor, named(name, by))
	return err
}

// RunSchedule has a schedule make a job out of turn.
func (d *Desk) RunSchedule(ctx context.Context, name string, by ops.By) error {
	_, err := act(ctx, d, RunSchedule, by.Actor, named(name, by))
	return err
}

func (d *Desk) pause(ctx context.Context, r Route[PauseNamed, Nothing], name string, lasting time.Duration, by ops.By) error {
	_, err := act(ctx, d, r, by.Actor, PauseNamed{ByName{name}, Asked{by.Request}, PauseBody{Word{by.Actor, by.Reason}, lasting}})
	return err
}

// Retention tells the rules that hold and what they have done so far.
func (d *Desk) Retention(ctx context.Context) (ops.Retention, error) {
	return call(ctx, d.c, GetRetention, struct{}{})
}

// ApplyRetention has ended jobs kept by these rules; nil goes back to the workers' own.
func (d *Desk) ApplyRetention(ctx context.Context, rules []holdfast.Retain, by ops.By) error {
	if rules == nil {
		_, err := act(ctx, d, ResetRetention, by.Actor, DropRetention{Asked{by.Request}, dropped(by)})
		return err
	}
	_, err := act(ctx, d, ApplyRetention, by.Actor, RetentionIn{Asked{by.Request}, RetentionBody{Word{by.Actor, by.Reason}, rules}})
	return err
}

// Tombstones lists what remains of purged jobs, the last purged first.
func (d *Desk) Tombstones(ctx context.Context, f holdfast.TombstoneFilter) (stones []holdfast.Tombstone, cursor string, err error) {
	out, err := call(ctx, d.c, ListTombstones, TombstonesIn(f))
	return out.Tombstones, out.Cursor, err
}

// Duties lists what workers do on a beat.
func (d *Desk) Duties(ctx context.Context) ([]duty.Standing, error) {
	out, err := call(ctx, d.c, ListDuties, struct{}{})
	return out.Duties, err
}

// PauseDuty has every worker leave a duty alone.
func (d *Desk) PauseDuty(ctx context.Context, name string, lasting time.Duration, by ops.By) error {
	return d.pause(ctx, PauseDuty, name, lasting, by)
}

// ResumeDuty ends a pause.
func (d *Desk) ResumeDuty(ctx context.Context, name string, by ops.By) error {
	_, err := act(ctx, d, ResumeDuty, by.Actor, named(name, by))
	return err
}

// RunDuty has every worker perform a duty once.
func (d *Desk) RunDuty(ctx context.Context, name string, by ops.By) error {
	_, err := act(ctx, d, RunDuty, by.Actor, named(name, by))
	return err
}
