package server

import (
	"context"

	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountStats() {
	desk := s.cfg.Desk
	mount(s, api.GetStats, func(ctx context.Context, _ Caller, _ *struct{}) (ops.Stats, error) {
		return desk.Stats(ctx)
	})
	mount(s, api.GetAnalytics, func(ctx context.Context, _ Caller, in *api.AnalyticsIn) (ops.Analytics, error) {
		return desk.Analytics(ctx, in.Within)
	})
	mount(s, api.GetDoctor, func(ctx context.Context, _ Caller, _ *struct{}) (ops.Report, error) {
		return desk.Doctor(ctx)
	})
}
