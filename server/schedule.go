package server

import (
	"context"

	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountSchedules() {
	desk := s.cfg.Desk
	mount(s, api.ListSchedules, func(ctx context.Context, _ Caller, in *api.SchedulesIn) (out api.SchedulesOut, err error) {
		out.Schedules, err = desk.Schedules(ctx, in.Next)
		return out, out.Complain(err)
	})
	mount(s, api.GetSchedule, func(ctx context.Context, _ Caller, in *api.ScheduleIn) (ops.Scheduled, error) {
		return desk.Schedule(ctx, in.Name, in.Next)
	})
	mount(s, api.SetSchedule, func(ctx context.Context, c Caller, in *api.SetScheduleIn) (ops.Scheduled, error) {
		return desk.SetSchedule(ctx, in.Body.Schedule(in.Name), c.by(in.Body.Word))
	})
	mountDelete(s, api.RemoveSchedule, desk.RemoveSchedule)
	mountPause(s, api.PauseSchedule, desk.PauseSchedule)
	mountNamed(s, api.ResumeSchedule, desk.ResumeSchedule)
	mountNamed(s, api.RunSchedule, desk.RunSchedule)
}
