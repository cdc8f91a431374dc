package server

import (
	"context"

	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountDeliveries() {
	operator := s.cfg.Operator
	mount(s, api.ListDeliveries, func(ctx context.Context, _ Caller, in *api.DeliveriesIn) (out api.DeliveriesOut, err error) {
		out.Deliveries, out.Cursor, err = operator.Deliveries(ctx, in.Subscription, in.Filter())
		return out, err
	})
	mount(s, api.GetDelivery, func(ctx context.Context, _ Caller, in *api.ByDelivery) (ops.Delivery, error) {
		return operator.Delivery(ctx, in.ID)
	})
	mount(s, api.Resend, func(ctx context.Context, c Caller, in *api.ResendIn) (out api.ResendOut, err error) {
		out.ID, err = operator.Resend(ctx, c.onJob(in.ID, in.Body))
		return out, err
	})
}
