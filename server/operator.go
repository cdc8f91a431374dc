package server

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// mountOperator mounts the routes of operators.
func (s *Server) mountOperator() {
	s.mountJobs()
	s.mountDeadLetters()
	s.mountGroups()
	s.mountHolds()
	s.mountBreakers()
	s.mountRedrives()
	s.mountErrors()
	s.mountSubscriptions()
	s.mountDeliveries()
	s.mountSchedules()
	s.mountRetention()
	s.mountDuties()
	s.mountPolicy()
	s.mountKeys()
	s.mountStats()
	s.mountTrail()
}

// nothing is the answer of routes without a body.
type nothing = api.Nothing

// mountNamed mounts a route that acts on something with a name.
func mountNamed(s *Server, r api.Route[api.OnNamed, nothing], do func(ctx context.Context, name string, by ops.Actor) error) {
	mount(s, r, func(ctx context.Context, c Caller, in *api.OnNamed) (nothing, error) {
		return nothing{}, do(ctx, in.Name, c.by(in.Body))
	})
}

// mountPause mounts a route that pauses something with a name.
func mountPause(s *Server, r api.Route[api.PauseNamed, nothing], do func(ctx context.Context, name string, lasting time.Duration, by ops.Actor) error) {
	mount(s, r, func(ctx context.Context, c Caller, in *api.PauseNamed) (nothing, error) {
		return nothing{}, do(ctx, in.Name, in.Body.For, c.by(in.Body.Word))
	})
}

// mountDelete mounts a route that deletes something with a name.
func mountDelete(s *Server, r api.Route[api.DropNamed, nothing], do func(ctx context.Context, name string, by ops.Actor) error) {
	mount(s, r, func(ctx context.Context, c Caller, in *api.DropNamed) (nothing, error) {
		return nothing{}, do(ctx, in.Name, c.by(in.Word()))
	})
}

// onJob is an intervention on a job, with an optional check of its owner.
func (c Caller) onJob(job holdfast.ID, w api.WordOn) store.Intervention {
	i := c.on(job, w.Word)
	if i.Owner == "" {
		i.Owner = w.Owner
	}
	return i
}

// onGroup is an intervention on a group, with an optional check of its owner.
func (c Caller) onGroup(group holdfast.ID, w api.WordOn) store.Intervention {
	i := c.onJob(holdfast.ID{}, w)
	i.Group = group
	return i
}
