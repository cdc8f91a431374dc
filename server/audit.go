package server

import (
	"context"

	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func (s *Server) mountTrail() {
	operator := s.cfg.Operator
	mount(s, api.GetAudit, func(ctx context.Context, _ Caller, in *api.AuditIn) (ops.AuditLog, error) {
		return operator.AuditLog(ctx, ops.AuditFilter(*in))
	})
	mount(s, api.GetFeed, func(ctx context.Context, _ Caller, in *api.FeedIn) (store.Feed, error) {
		return operator.Feed(ctx, in.After, in.Limit)
	})
	mount(s, api.GetLatest, func(ctx context.Context, _ Caller, in *api.LatestIn) (store.Feed, error) {
		return operator.LatestEvents(ctx, in.Limit)
	})
}
