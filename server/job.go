package server

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
)

func (s *Server) mountJobs() {
	mount(s, api.GetJob, func(ctx context.Context, _ Caller, in *api.ByID) (holdfast.Job, error) {
		return s.cfg.Desk.Job(ctx, in.ID)
	})
	mount(s, api.ListJobs, func(ctx context.Context, _ Caller, in *api.JobsIn) (out api.JobsOut, err error) {
		f := in.Filter()
		f.State = in.State
		out.Jobs, out.Cursor, err = s.cfg.Desk.Jobs(ctx, f)
		return out, err
	})
}
