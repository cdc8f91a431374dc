package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
)

func (s *Server) mountEnqueue() {
	mount(s, api.EnqueueJob, func(ctx context.Context, c Caller, in *api.EnqueueIn) (out api.Receipt, err error) {
		draft, err := in.Draft()
		if err != nil {
			return out, err
		}
		receipts, err := s.enqueue(ctx, c, []holdfast.Draft{draft})
		if err != nil {
			return out, err
		}
		return api.Receipt(receipts[0]), nil
	})
	mountRaw(s, api.EnqueueBulk, func(w http.ResponseWriter, r *http.Request, c Caller, in *api.BulkIn) error {
		if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind == "application/x-ndjson" {
			return s.stream(w, r, c, in)
		}
		return s.bulk(w, r, c, in)
	})
	mount(s, api.GatherGroup, func(ctx context.Context, c Caller, in *api.GatherIn) (holdfast.Group, error) {
		if err := c.mayEnqueueThen(in.Body.Group().Then); err != nil {
			return holdfast.Group{}, err
		}
		return s.enqueuer().CreateGroup(ctx, in.Body.Group())
	})
	mount(s, api.SealGroup, func(ctx context.Context, c Caller, in *api.OnGroup) (nothing, error) {
		return nothing{}, s.cfg.Operator.SealGroup(ctx, c.onGroup(in.ID, in.Body))
	})
}

// enqueuer is the enqueuer of the configuration, or the store.
func (s *Server) enqueuer() holdfast.Enqueuer {
	if s.cfg.Enqueue != nil {
		return s.cfg.Enqueue
	}
	return s.cfg.Store
}

// enqueue enqueues drafts and reports the new jobs to the watcher.
func (s *Server) enqueue(ctx context.Context, c Caller, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	if err := c.mayEnqueue(drafts); err != nil {
		return nil, err
	}
	receipts, err := s.enqueuer().Enqueue(ctx, drafts)
	if err != nil {
		return nil, reused(err)
	}
	if s.cfg.Watch != nil {
		fresh := make([]holdfast.Draft, 0, len(drafts))
		for i := range receipts {
			if !receipts[i].Existing {
				fresh = append(fresh, drafts[i])
			}
		}
		s.cfg.Watch.ObserveEnqueue(fresh)
	}
	return receipts, nil
}

// prepareDrafts checks and completes the drafts that a worker enqueues with the completion of a job.
func (s *Server) prepareDrafts(c Caller, drafts []holdfast.Draft) error {
	if err := c.mayEnqueue(drafts); err != nil || s.cfg.Prepare == nil {
		return err
	}
	for i := range drafts {
		if err := s.cfg.Prepare(&drafts[i]); err != nil {
			return fmt.Errorf("job %d of %d to enqueue: %w", i+1, len(drafts), err)
		}
	}
	return nil
}

// reused turns the conflict about an idempotency key into ErrReused, which has an HTTP status of its own. The store has no separate error for it, so it is
// recognised by its text.
func reused(err error) error {
	herr := (*holdfast.Error)(nil)
	if errors.Is(err, holdfast.ErrConflict) && errors.As(err, &herr) && strings.Contains(herr.Message, "was used for another draft") {
		return &holdfast.Error{Err: api.ErrReused, Message: herr.Message, Job: herr.Job, Cause: err}
	}
	return err
}

// bulk enqueues an array, all or none.
func (s *Server) bulk(w http.ResponseWriter, r *http.Request, c Caller, in *api.BulkIn) error {
	body, free, err := s.bodyOf(w, r, api.WorkLimit)
	defer free()
	if err != nil {
		return err
	}
	receipts, err := s.enqueueArray(r.Context(), c, in, body)
	if err != nil {
		return err
	}
	out := api.BulkOut{Receipts: make([]api.Receipt, len(receipts))}
	for i := range receipts {
		out.Receipts[i] = api.Receipt(receipts[i])
	}
	s.answer(w, r, http.StatusOK, out)
	return nil
}

// enqueueArray decodes and enqueues an array within the limit of running requests. A request that is refused for overload has cost no decoding.
func (s *Server) enqueueArray(ctx context.Context, c Caller, in *api.BulkIn, body []byte) ([]holdfast.Receipt, error) {
	if err := s.admission.enter(ctx, false); err != nil {
		return nil, err
	}
	defer s.admission.leave(false)
	if err := api.Unmarshal(body, &in.Body); err != nil {
		return nil, err
	}
	if len(in.Body) > api.MostDrafts {
		return nil, invalid("%d drafts in one array: send at most %d, or send a stream as application/x-ndjson", len(in.Body), api.MostDrafts)
	}
	for i := range in.Body {
		if err := in.Finish(&in.Body[i]); err != nil {
			return nil, fmt.Errorf("draft %d: %w", i+1, err)
		}
	}
	return s.enqueueOwned(ctx, c, in.Body)
}

// enqueueRunning enqueues drafts of a stream within the limit of running requests.
func (s *Server) enqueueRunning(ctx context.Context, c Caller, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	if err := s.admission.enter(ctx, false); err != nil {
		return nil, err
	}
	defer s.admission.leave(false)
	return s.enqueueOwned(ctx, c, drafts)
}

// enqueueOwned enqueues drafts of a caller. For a key that is bound to an owner, their groups must belong to the owner.
func (s *Server) enqueueOwned(ctx context.Context, c Caller, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	if c.Owner != "" {
		var last holdfast.ID
		for i := range drafts {
			if g := drafts[i].Group; !g.IsZero() && g != last {
				if err := s.checkGroupOwner(ctx, c, g); err != nil {
					return nil, err
				}
				last = g
			}
		}
	}
	return s.enqueue(ctx, c, drafts)
}
