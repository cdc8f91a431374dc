package server

import (
	"context"

	"github.com/holdfastdev/holdfast/api"
)

func (s *Server) mountKeys() {
	desk := s.cfg.Desk
	mount(s, api.ListKeys, func(ctx context.Context, _ Caller, _ *struct{}) (out api.KeysOut, err error) {
		out.Keys, err = desk.Keys(ctx)
		return out, err
	})
	mount(s, api.MakeKey, func(ctx context.Context, c Caller, in *api.MakeKeyIn) (out api.KeyMade, err error) {
		out.Key, out.Text, err = desk.MakeKey(ctx, in.Body.Order, c.by(in.Body.Word))
		if err == nil {
			s.keys.lock()
		}
		return out, err
	})
	mount(s, api.RevokeKey, func(ctx context.Context, c Caller, in *api.DropKey) (nothing, error) {
		return nothing{}, desk.RevokeKey(ctx, in.ID, c.by(in.Word()))
	})
}
