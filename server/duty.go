package server

import (
	"context"

	"github.com/holdfastdev/holdfast/api"
)

func (s *Server) mountDuties() {
	desk := s.cfg.Desk
	mount(s, api.ListDuties, func(ctx context.Context, _ Caller, _ *struct{}) (out api.DutiesOut, err error) {
		out.Duties, err = desk.Duties(ctx)
		return out, err
	})
	mountPause(s, api.PauseDuty, desk.PauseDuty)
	mountNamed(s, api.ResumeDuty, desk.ResumeDuty)
	mountNamed(s, api.RunDuty, desk.RunDuty)
	mount(s, api.ListWorkers, func(ctx context.Context, _ Caller, _ *struct{}) (out api.WorkersOut, err error) {
		out.Workers, err = desk.Workers(ctx)
		return out, err
	})
}
