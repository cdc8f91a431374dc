package server

import (
	"context"

	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountSchedules() {
	operator := s.cfg.Operator
	mount(s, api.ListSchedules, func(ctx context.Context, _ Caller, in *api.SchedulesIn) (out api.SchedulesOut, err error) {
		out.Schedules, err = operator.Schedules(ctx, in.Next)
		return out, out.Complain(err)
	})
	mount(s, api.GetSchedule, func(ctx context.Context, _ Caller, in *api.ScheduleIn) (ops.ScheduleStatus, error) {
		return operator.Schedule(ctx, in.Name, in.Next)
	})
	mount(s, api.SetSchedule, func(ctx context.Context, c Caller, in *api.SetScheduleIn) (ops.ScheduleStatus, error) {
		return operator.SetSchedule(ctx, in.Body.Schedule(in.Name), c.by(in.Body.Word))
	})
	mountDelete(s, api.RemoveSchedule, operator.RemoveSchedule)
	mountPause(s, api.PauseSchedule, operator.PauseSchedule)
	mountNamed(s, api.ResumeSchedule, operator.ResumeSchedule)
	mountNamed(s, api.RunSchedule, operator.RunSchedule)
}
