package server

import (
	"context"

	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountBreakers() {
	operator := s.cfg.Operator
	mount(s, api.ListBreakers, func(ctx context.Context, _ Caller, _ *struct{}) (out api.BreakersOut, err error) {
		out.Breakers, err = operator.Breakers(ctx)
		return out, err
	})
	mount(s, api.GetBreaker, func(ctx context.Context, _ Caller, in *api.ByName) (ops.Breaker, error) {
		return operator.Breaker(ctx, in.Name)
	})
	mountNamed(s, api.OpenBreaker, operator.OpenBreaker)
	mountNamed(s, api.CloseBreaker, operator.CloseBreaker)
	mountNamed(s, api.AutoBreaker, operator.AutoBreaker)
	mount(s, api.ForceBreaker, func(ctx context.Context, c Caller, in *api.ForceIn) (nothing, error) {
		return nothing{}, operator.ForceBreaker(ctx, in.Name, in.Body.Open, c.by(in.Body.Word))
	})
}
