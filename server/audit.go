package server

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountTrail() {
	desk := s.cfg.Desk
	mount(s, api.GetAudit, func(ctx context.Context, _ Caller, in *api.AuditIn) (ops.Trail, error) {
		return desk.Trail(ctx, ops.AuditFilter(*in))
	})
	mount(s, api.GetFeed, func(ctx context.Context, _ Caller, in *api.FeedIn) (holdfast.Feed, error) {
		return desk.Feed(ctx, in.After, in.Limit)
	})
	mount(s, api.GetLatest, func(ctx context.Context, _ Caller, in *api.LatestIn) (holdfast.Feed, error) {
		return desk.Latest(ctx, in.Limit)
	})
}
