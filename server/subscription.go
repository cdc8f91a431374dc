package server

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/notify/subscription"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountSubscriptions() {
	operator := s.cfg.Operator
	mount(s, api.ListSubscriptions, func(ctx context.Context, _ Caller, _ *struct{}) (out api.SubscriptionsOut, err error) {
		out.Subscriptions, err = operator.Subscriptions(ctx)
		return out, out.Complain(err)
	})
	mount(s, api.GetSubscription, func(ctx context.Context, _ Caller, in *api.BySubscription) (ops.SubscriptionStatus, error) {
		return operator.Subscription(ctx, in.ID)
	})
	mount(s, api.Subscribe, func(ctx context.Context, c Caller, in *api.SubscribeIn) (subscription.Subscription, error) {
		return operator.Subscribe(ctx, in.Body.Subscription(holdfast.ID{}), c.by(in.Body.Word))
	})
	mount(s, api.Resubscribe, func(ctx context.Context, c Caller, in *api.ResubscribeIn) (subscription.Subscription, error) {
		return operator.Subscribe(ctx, in.Body.Subscription(in.ID), c.by(in.Body.Word))
	})
	mount(s, api.Unsubscribe, func(ctx context.Context, c Caller, in *api.DropSubscription) (nothing, error) {
		return nothing{}, operator.Unsubscribe(ctx, in.ID, c.by(in.Word()))
	})
	mount(s, api.EnableSubscription, func(ctx context.Context, c Caller, in *api.OnSubscription) (nothing, error) {
		return nothing{}, operator.EnableSubscription(ctx, in.ID, c.by(in.Body))
	})
	mount(s, api.DisableSubscription, func(ctx context.Context, c Caller, in *api.OnSubscription) (nothing, error) {
		return nothing{}, operator.DisableSubscription(ctx, in.ID, c.by(in.Body))
	})
	mount(s, api.RewindSubscription, func(ctx context.Context, c Caller, in *api.RewindIn) (nothing, error) {
		return nothing{}, operator.RewindSubscription(ctx, in.ID, in.Body.After, c.by(in.Body.Word))
	})
}
