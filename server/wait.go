package server

import (
	"context"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
)

// waitForJob returns a job when it has ended, or as it is when the time is over or the server stops. With no time it reads the job once.
func (s *Server) waitForJob(ctx context.Context, id holdfast.ID, wait time.Duration, read func(context.Context, holdfast.ID) (holdfast.Job, error)) (holdfast.Job, error) {
	if wait <= 0 {
		return read(ctx, id)
	}
	open, closed := s.untilClose(ctx)
	defer closed()
	limited, over := context.WithTimeout(open, min(wait, api.MostWait))
	defer over()
	job, err := holdfast.WaitJob(limited, hintedReader{read, s.cfg.Store}, id)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return read(ctx, id)
	}
	return job, err
}

// A hintedReader reads jobs by a function, with the hints of a store about when they end.
type hintedReader struct {
	read func(context.Context, holdfast.ID) (holdfast.Job, error)
	db   store.Store
}

// Job reads a job.
func (h hintedReader) Job(ctx context.Context, id holdfast.ID) (holdfast.Job, error) {
	return h.read(ctx, id)
}

// EndHint returns the store's hint; a channel without values if it has none.
func (h hintedReader) EndHint(id holdfast.ID) (ended <-chan struct{}, stop func()) {
	if hinter, ok := h.db.(interface {
		EndHint(id holdfast.ID) (<-chan struct{}, func())
	}); ok {
		return hinter.EndHint(id)
	}
	return nil, func() {}
}
