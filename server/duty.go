package server

import (
	"context"

	"github.com/holdfastdev/holdfast/internal/api"
)

func (s *Server) mountDuties() {
	operator := s.cfg.Operator
	mount(s, api.ListDuties, func(ctx context.Context, _ Caller, _ *struct{}) (out api.DutiesOut, err error) {
		out.Duties, err = operator.Duties(ctx)
		return out, err
	})
	mountPause(s, api.PauseDuty, operator.PauseDuty)
	mountNamed(s, api.ResumeDuty, operator.ResumeDuty)
	mountNamed(s, api.RunDuty, operator.RunDuty)
	mount(s, api.ListWorkers, func(ctx context.Context, _ Caller, _ *struct{}) (out api.WorkersOut, err error) {
		out.Workers, err = operator.Workers(ctx)
		return out, err
	})
}
