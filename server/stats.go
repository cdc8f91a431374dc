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
	mount(s, api.GetCount, func(ctx context.Context, _ Caller, in *api.JobsIn) (out api.CountOut, err error) {
		out.Count, err = desk.Count(ctx, in.Filter())
		return out, err
	})
	mount(s, api.ListDepths, func(ctx context.Context, _ Caller, _ *struct{}) (out api.DepthsOut, err error) {
		out.Depths, err = desk.Depths(ctx)
		return out, err
	})
	mount(s, api.ListTrends, func(ctx context.Context, _ Caller, in *api.TrendsIn) (out api.TrendsOut, err error) {
		out.Trends, err = desk.Trends(ctx, in.Within, in.Step)
		return out, err
	})
	mount(s, api.GetAnalytics, func(ctx context.Context, _ Caller, in *api.AnalyticsIn) (ops.Analytics, error) {
		return desk.Analytics(ctx, in.Within)
	})
	mount(s, api.GetDoctor, func(ctx context.Context, _ Caller, _ *struct{}) (ops.Report, error) {
		return desk.Doctor(ctx)
	})
}
