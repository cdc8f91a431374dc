package server

import (
	"context"

	"github.com/holdfastdev/holdfast/internal/api"
)

func (s *Server) mountKeys() {
	operator := s.cfg.Operator
	mount(s, api.ListKeys, func(ctx context.Context, _ Caller, _ *struct{}) (out api.KeysOut, err error) {
		out.Keys, err = operator.Keys(ctx)
		return out, err
	})
	mount(s, api.MakeKey, func(ctx context.Context, c Caller, in *api.MakeKeyIn) (out api.KeyMade, err error) {
		out.Key, out.Text, err = operator.CreateKey(ctx, in.Body.Request, c.by(in.Body.Word))
		if err == nil {
			s.keys.lock()
		}
		return out, err
	})
	mount(s, api.RevokeKey, func(ctx context.Context, c Caller, in *api.DropKey) (nothing, error) {
		return nothing{}, operator.RevokeKey(ctx, in.ID, c.by(in.Word()))
	})
}
