package server

import (
	"context"

	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func (s *Server) mountGroups() {
	operator := s.cfg.Operator
	mount(s, api.ListGroups, func(ctx context.Context, _ Caller, in *api.GroupsIn) (out api.GroupsOut, err error) {
		out.Groups, out.Cursor, err = operator.Groups(ctx, store.GroupFilter(*in))
		return out, err
	})
	mount(s, api.GetGroup, func(ctx context.Context, _ Caller, in *api.ByGroup) (ops.GroupDetail, error) {
		return operator.Group(ctx, in.ID)
	})
	mount(s, api.GetGraph, func(ctx context.Context, _ Caller, in *api.ByGroup) (ops.Graph, error) {
		return operator.GroupGraph(ctx, in.ID)
	})
	mount(s, api.RetryGroup, func(ctx context.Context, c Caller, in *api.RetryGroupIn) (out api.RetryGroupOut, err error) {
		i := c.onGroup(in.ID, in.Body.WordOn)
		i.Compensated = in.Body.Compensated
		out.Jobs, err = operator.RetryGroup(ctx, i)
		return out, err
	})
	mount(s, api.CancelGroup, func(ctx context.Context, c Caller, in *api.OnGroup) (nothing, error) {
		return nothing{}, operator.CancelGroup(ctx, c.onGroup(in.ID, in.Body))
	})
}
