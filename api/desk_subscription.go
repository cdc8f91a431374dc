package api

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
)

// Subscriptions lists subscriptions, newest first. Records that cannot be read are left out and reported in the error.
func (d *Desk) Subscriptions(ctx context.Context) ([]ops.Subscribed, error) {
	out, err := call(ctx, d.c, ListSubscriptions, struct{}{})
	if err == nil {
		err = out.err()
	}
	return out.Subscriptions, err
}

// Subscription returns one subscription.
func (d *Desk) Subscription(ctx context.Context, id holdfast.ID) (ops.Subscribed, error) {
	return call(ctx, d.c, GetSubscription, BySubscription{id})
}

// Subscribe creates or replaces a subscription. A new one gets its id here, so that the caller can repeat the call with the same id when the answer is lost.
func (d *Desk) Subscribe(ctx context.Context, sub subscription.Subscription, by ops.By) (subscription.Subscription, error) {
	if sub.ID.IsZero() {
		sub.ID = holdfast.NewID()
	}
	return act(ctx, d, Resubscribe, by.Actor, ResubscribeIn{BySubscription{sub.ID}, Asked{by.Request}, subscriptionBody(sub, Word{by.Actor, by.Reason})})
}

// Unsubscribe deletes a subscription.
func (d *Desk) Unsubscribe(ctx context.Context, id holdfast.ID, by ops.By) error {
	_, err := act(ctx, d, Unsubscribe, by.Actor, DropSubscription{BySubscription{id}, Asked{by.Request}, droppedBy(by)})
	return err
}

// EnableSubscription enables a subscription at the position where it was disabled.
func (d *Desk) EnableSubscription(ctx context.Context, id holdfast.ID, by ops.By) error {
	_, err := act(ctx, d, EnableSubscription, by.Actor, OnSubscription{BySubscription{id}, saidBy(by)})
	return err
}

// DisableSubscription disables a subscription.
func (d *Desk) DisableSubscription(ctx context.Context, id holdfast.ID, by ops.By) error {
	_, err := act(ctx, d, DisableSubscription, by.Actor, OnSubscription{BySubscription{id}, saidBy(by)})
	return err
}

// RewindSubscription delivers again all events after a number.
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

// Delivery returns one delivery with its attempts.
func (d *Desk) Delivery(ctx context.Context, id holdfast.ID) (ops.Delivery, error) {
	return call(ctx, d.c, GetDelivery, ByDelivery{id})
}

// Resend sends a delivery again. It returns the id of the job that does.
func (d *Desk) Resend(ctx context.Context, i holdfast.Intervention) (holdfast.ID, error) {
	out, err := act(ctx, d, Resend, i.Actor, ResendIn{ByDelivery{i.Job}, Asked{i.Request}, wordOn(i)})
	return out.ID, err
}
