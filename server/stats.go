package server

import (
	"context"

	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountStats() {
	operator := s.cfg.Operator
	mount(s, api.GetStats, func(ctx context.Context, _ Caller, _ *struct{}) (ops.Stats, error) {
		return operator.Stats(ctx)
	})
	mount(s, api.GetCount, func(ctx context.Context, _ Caller, in *api.JobsIn) (out api.CountOut, err error) {
		out.Count, err = operator.Count(ctx, in.Filter())
		return out, err
	})
	mount(s, api.ListDepths, func(ctx context.Context, _ Caller, _ *struct{}) (out api.DepthsOut, err error) {
		out.Depths, err = operator.Depths(ctx)
		return out, err
	})
	mount(s, api.ListTrends, func(ctx context.Context, _ Caller, in *api.TrendsIn) (out api.TrendsOut, err error) {
		out.Trends, err = operator.Trends(ctx, in.Within, in.Step)
		return out, err
	})
	mount(s, api.GetAnalytics, func(ctx context.Context, _ Caller, in *api.AnalyticsIn) (ops.Analytics, error) {
		return operator.Analytics(ctx, in.Within)
	})
	mount(s, api.GetDoctor, func(ctx context.Context, _ Caller, _ *struct{}) (ops.IntegrityReport, error) {
		return operator.CheckIntegrity(ctx)
	})
}
