package server

import (
	"context"
	"net/http"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/key"
)

// admit finds out who asks and whether they may ask this at all.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, to mounted) (Caller, error) {
	caller := Caller{Scope: key.Admin, Request: holdfast.NewID().String()}
	w.Header().Set("X-Request-Id", caller.Request)
	return caller, nil
}

// own finds out whether what is asked about is the caller's, if it is bound to an owner. What is somebody else's does not exist.
func (s *Server) own(ctx context.Context, c Caller, in any) error {
	if c.Owner == "" {
		return nil
	}
	switch about := in.(type) {
	case api.JobNamer:
		job, err := s.cfg.Desk.Job(ctx, about.JobID())
		if err == nil && job.Owner != c.Owner {
			err = noSuchJob(about.JobID())
		}
		return err
	case api.GroupNamer:
		group, err := s.cfg.Store.Group(ctx, about.GroupID())
		if err == nil && group.Owner != c.Owner {
			err = &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "there is no group " + about.GroupID().String()}
		}
		return err
	case api.Narrower:
		return about.Narrow(c.Owner)
	}
	return &holdfast.Error{Kind: api.ErrForbidden, Message: "this key is bound to an owner, and may ask only about what is the owner's"}
}

func noSuchJob(id holdfast.ID) error {
	return &holdfast.Error{Kind: holdfast.ErrNotFound, Message: "there is no job " + id.String()}
}
