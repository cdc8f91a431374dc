package server

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func (s *Server) mountRetention() {
	operator := s.cfg.Operator
	mount(s, api.GetRetention, func(ctx context.Context, _ Caller, _ *struct{}) (ops.Retention, error) {
		return operator.Retention(ctx)
	})
	mount(s, api.ApplyRetention, func(ctx context.Context, c Caller, in *api.RetentionIn) (nothing, error) {
		if in.Body.Rules == nil { // removing all rules has a method of its own, so that it cannot happen by mistake
			return nothing{}, &holdfast.Error{Err: holdfast.ErrInvalid, Message: "no rules: send a list, which may be empty, or use DELETE to return to the workers' own rules"}
		}
		return nothing{}, operator.ApplyRetention(ctx, in.Body.Rules, c.by(in.Body.Word))
	})
	mount(s, api.ResetRetention, func(ctx context.Context, c Caller, in *api.DropRetention) (nothing, error) {
		return nothing{}, operator.ApplyRetention(ctx, nil, c.by(in.Word()))
	})
	mount(s, api.ListTombstones, func(ctx context.Context, _ Caller, in *api.TombstonesIn) (out api.TombstonesOut, err error) {
		out.Tombstones, out.Cursor, err = operator.Tombstones(ctx, store.TombstoneFilter(*in))
		return out, err
	})
}
