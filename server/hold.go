package server

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

func (s *Server) mountHolds() {
	operator := s.cfg.Operator
	mount(s, api.ListHolds, func(ctx context.Context, _ Caller, _ *struct{}) (out api.HoldsOut, err error) {
		out.Holds, err = operator.Holds(ctx)
		return out, err
	})
	mount(s, api.ListHeldLines, func(ctx context.Context, _ Caller, _ *struct{}) (out api.HeldLinesOut, err error) {
		out.Lines, out.More, err = operator.HeldLines(ctx)
		return out, err
	})
	mount(s, api.PlaceHold, func(ctx context.Context, c Caller, in *api.PauseIn) (nothing, error) {
		b, h := in.Body, in.Body.Hold()
		h.Actor, h.Reason = c.actor(b.Actor), b.Reason
		h.Retries, h.AtMost, h.Rate, h.For, h.Expected = b.Retries, b.AtMost, b.Rate, b.For, b.Expected
		return nothing{}, operator.Pause(ctx, h)
	})
	mount(s, api.LiftHold, func(ctx context.Context, c Caller, in *api.LiftIn) (nothing, error) {
		h := in.Body.Hold()
		h.Actor, h.Reason = c.actor(in.Body.Actor), in.Body.Reason
		return nothing{}, operator.Resume(ctx, h)
	})
	mount(s, api.ListQueues, func(ctx context.Context, _ Caller, _ *struct{}) (out api.QueuesOut, err error) {
		stats, err := operator.Stats(ctx)
		out.Queues = stats.Queues
		return out, err
	})
	mountPause(s, api.PauseQueue, func(ctx context.Context, name string, lasting time.Duration, by ops.Actor) error {
		return operator.Pause(ctx, store.Hold{Queue: name, For: lasting, Actor: by.Name, Reason: by.Reason})
	})
	mountNamed(s, api.ResumeQueue, func(ctx context.Context, name string, by ops.Actor) error {
		return operator.Resume(ctx, store.Hold{Queue: name, Actor: by.Name, Reason: by.Reason})
	})
	mount(s, api.ListShares, func(ctx context.Context, _ Caller, _ *struct{}) (out api.SharesOut, err error) {
		out.Shares, err = operator.Shares(ctx)
		return out, err
	})
	mount(s, api.SetShare, func(ctx context.Context, c Caller, in *api.ShareIn) (nothing, error) {
		return nothing{}, operator.SetShare(ctx, ops.Share{Owner: in.Owner, Weight: in.Body.Weight}, c.by(in.Body.Word))
	})
}
