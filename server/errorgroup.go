package server

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/ops"
)

func (s *Server) mountErrors() {
	desk := s.cfg.Desk
	mount(s, api.ListErrors, func(ctx context.Context, _ Caller, in *api.ErrorsIn) (out api.ErrorsOut, err error) {
		out.Errors, out.Cursor, err = desk.ErrorGroups(ctx, holdfast.ErrorFilter(*in))
		return out, err
	})
	mount(s, api.ListErrorTrends, func(ctx context.Context, _ Caller, in *api.ErrorTrendsIn) (out api.ErrorTrendsOut, err error) {
		out.Trends, err = desk.ErrorTrends(ctx, in.Fingerprint, in.Within, in.Step)
		return out, err
	})
	mount(s, api.GetError, func(ctx context.Context, _ Caller, in *api.ByFingerprint) (ops.Trouble, error) {
		return desk.ErrorGroup(ctx, in.Fingerprint)
	})
	mount(s, api.TriageError, func(ctx context.Context, c Caller, in *api.TriageIn) (nothing, error) {
		b := in.Body
		t := holdfast.Triage{Fingerprint: in.Fingerprint, Status: b.Status, For: b.For, Count: b.Count, Version: b.Version, Actor: c.actor(b.Actor), Reason: b.Reason}
		return nothing{}, desk.Triage(ctx, t)
	})
}
