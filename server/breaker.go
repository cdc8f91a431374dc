package server

import (
	"context"

	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountBreakers() {
	desk := s.cfg.Desk
	mount(s, api.ListBreakers, func(ctx context.Context, _ Caller, _ *struct{}) (out api.BreakersOut, err error) {
		out.Breakers, err = desk.Breakers(ctx)
		return out, err
	})
	mount(s, api.GetBreaker, func(ctx context.Context, _ Caller, in *api.ByName) (ops.Breaker, error) {
		return desk.Breaker(ctx, in.Name)
	})
	mountNamed(s, api.OpenBreaker, desk.OpenBreaker)
	mountNamed(s, api.CloseBreaker, desk.CloseBreaker)
	mountNamed(s, api.AutoBreaker, desk.AutoBreaker)
	mount(s, api.ForceBreaker, func(ctx context.Context, c Caller, in *api.ForceIn) (nothing, error) {
		return nothing{}, desk.ForceBreaker(ctx, in.Name, in.Body.Open, c.by(in.Body.Word))
	})
}
