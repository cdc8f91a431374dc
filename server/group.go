package server

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountGroups() {
	desk := s.cfg.Desk
	mount(s, api.ListGroups, func(ctx context.Context, _ Caller, in *api.GroupsIn) (out api.GroupsOut, err error) {
		out.Groups, out.Cursor, err = desk.Groups(ctx, holdfast.GroupFilter(*in))
		return out, err
	})
	mount(s, api.GetGroup, func(ctx context.Context, _ Caller, in *api.ByGroup) (ops.Gathering, error) {
		return desk.Group(ctx, in.ID)
	})
	mount(s, api.RetryGroup, func(ctx context.Context, c Caller, in *api.OnGroup) (out api.RetryGroupOut, err error) {
		out.Jobs, err = desk.RetryGroup(ctx, c.onGroup(in.ID, in.Body))
		return out, err
	})
	mount(s, api.CancelGroup, func(ctx context.Context, c Caller, in *api.OnGroup) (nothing, error) {
		return nothing{}, desk.CancelGroup(ctx, c.onGroup(in.ID, in.Body))
	})
}
