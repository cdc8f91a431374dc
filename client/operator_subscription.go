package client

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// Subscriptions lists subscriptions, newest first. Records that cannot be read are left out and reported in the error.
func (d *Operator) Subscriptions(ctx context.Context) ([]ops.SubscriptionStatus, error) {
	out, err := call(ctx, d.c, api.ListSubscriptions, struct{}{})
	if err == nil {
		err = out.Err()
	}
	return out.Subscriptions, err
}

// Subscription returns one subscription.
func (d *Operator) Subscription(ctx context.Context, id holdfast.ID) (ops.SubscriptionStatus, error) {
	return call(ctx, d.c, api.GetSubscription, api.BySubscription{ID: id})
}

// Subscribe creates or replaces a subscription. A new one gets its id here, so that the caller can repeat the call with the same id when the answer is lost.
func (d *Operator) Subscribe(ctx context.Context, sub subscription.Subscription, by ops.Actor) (subscription.Subscription, error) {
	if sub.ID.IsZero() {
		sub.ID = holdfast.NewID()
	}
	return act(ctx, d, api.Resubscribe, by.Name, api.ResubscribeIn{BySubscription: api.BySubscription{ID: sub.ID}, Asked: api.Asked{Request: by.Request}, Body: api.SubscriptionBodyOf(sub, api.Word{Actor: by.Name, Reason: by.Reason})})
}

// Unsubscribe deletes a subscription.
func (d *Operator) Unsubscribe(ctx context.Context, id holdfast.ID, by ops.Actor) error {
	_, err := act(ctx, d, api.Unsubscribe, by.Name, api.DropSubscription{BySubscription: api.BySubscription{ID: id}, Asked: api.Asked{Request: by.Request}, Dropped: droppedBy(by)})
	return err
}

// EnableSubscription enables a subscription at the position where it was disabled.
func (d *Operator) EnableSubscription(ctx context.Context, id holdfast.ID, by ops.Actor) error {
	_, err := act(ctx, d, api.EnableSubscription, by.Name, api.OnSubscription{BySubscription: api.BySubscription{ID: id}, Said: saidBy(by)})
	return err
}

// DisableSubscription disables a subscription.
func (d *Operator) DisableSubscription(ctx context.Context, id holdfast.ID, by ops.Actor) error {
	_, err := act(ctx, d, api.DisableSubscription, by.Name, api.OnSubscription{BySubscription: api.BySubscription{ID: id}, Said: saidBy(by)})
	return err
}

// RewindSubscription delivers again all events after a number.
func (d *Operator) RewindSubscription(ctx context.Context, id holdfast.ID, after int64, by ops.Actor) error {
	_, err := act(ctx, d, api.RewindSubscription, by.Name, api.RewindIn{BySubscription: api.BySubscription{ID: id}, Asked: api.Asked{Request: by.Request}, Body: api.RewindBody{Word: api.Word{Actor: by.Name, Reason: by.Reason}, After: after}})
	return err
}

// Deliveries lists the deliveries of a subscription, or of all of them, newest first.
func (d *Operator) Deliveries(ctx context.Context, of holdfast.ID, f store.Filter) (jobs []holdfast.Job, cursor string, err error) {
	in := api.DeliveriesIn{Subscription: of, State: f.State, DeadLetters: f.DeadLetters, Code: f.Code, OlderThan: f.OlderThan, YoungerThan: f.NewerThan, Limit: f.Limit, Cursor: f.Cursor}
	out, err := call(ctx, d.c, api.ListDeliveries, in)
	return out.Deliveries, out.Cursor, err
}

// Delivery returns one delivery with its attempts.
func (d *Operator) Delivery(ctx context.Context, id holdfast.ID) (ops.Delivery, error) {
	return call(ctx, d.c, api.GetDelivery, api.ByDelivery{ID: id})
}

// Resend sends a delivery again. It returns the id of the job that does.
func (d *Operator) Resend(ctx context.Context, i store.Intervention) (holdfast.ID, error) {
	out, err := act(ctx, d, api.Resend, i.Actor, api.ResendIn{ByDelivery: api.ByDelivery{ID: i.Job}, Asked: api.Asked{Request: i.Request}, Body: wordOn(i)})
	return out.ID, err
}
