package server

import (
	"context"

	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func (s *Server) mountErrors() {
	operator := s.cfg.Operator
	mount(s, api.ListErrors, func(ctx context.Context, _ Caller, in *api.ErrorsIn) (out api.ErrorsOut, err error) {
		out.Errors, out.Cursor, err = operator.ErrorGroups(ctx, store.ErrorFilter(*in))
		return out, err
	})
	mount(s, api.ListErrorTrends, func(ctx context.Context, _ Caller, in *api.ErrorTrendsIn) (out api.ErrorTrendsOut, err error) {
		out.Trends, err = operator.ErrorTrends(ctx, in.Fingerprint, in.Within, in.Step)
		return out, err
	})
	mount(s, api.GetError, func(ctx context.Context, _ Caller, in *api.ByFingerprint) (ops.ErrorGroupDetail, error) {
		return operator.ErrorGroup(ctx, in.Fingerprint)
	})
	mount(s, api.TriageError, func(ctx context.Context, c Caller, in *api.TriageIn) (nothing, error) {
		b := in.Body
		t := store.Triage{Fingerprint: in.Fingerprint, Status: b.Status, For: b.For, Count: b.Count, Version: b.Version, Actor: c.actor(b.Actor), Reason: b.Reason}
		return nothing{}, operator.Triage(ctx, t)
	})
}
