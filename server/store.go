package server

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
)

// mountVerb mounts a store route.
func mountVerb[In, Out any](s *Server, r api.Route[api.Asks[In], api.Exact[Out]], do func(ctx context.Context, c Caller, in In) (Out, error)) {
	mount(s, r, func(ctx context.Context, c Caller, in *api.Asks[In]) (out api.Exact[Out], err error) {
		out.Value, err = do(ctx, c, in.Body.Value)
		return out, err
	})
}

// mountAction mounts a store route without an answer.
func mountAction[In any](s *Server, r api.Route[api.Asks[In], nothing], do func(ctx context.Context, c Caller, in In) error) {
	mount(s, r, func(ctx context.Context, c Caller, in *api.Asks[In]) (nothing, error) {
		return nothing{}, do(ctx, c, in.Body.Value)
	})
}

func (s *Server) mountStore() {
	s.mountKeeper()
	s.mountOperator()
	s.mountInspector()
	s.mountAnalyst()
}

// mountKeeper mounts the store routes of engines.
func (s *Server) mountKeeper() {
	store := s.cfg.Store
	mountVerb(s, api.StoreGather, func(ctx context.Context, c Caller, in api.NewGroup) (holdfast.Group, error) {
		if err := c.mayEnqueueThen(in.Group().Then); err != nil {
			return holdfast.Group{}, err
		}
		return store.Gather(ctx, in.Group())
	})
	mountAction(s, api.StoreSeal, func(ctx context.Context, _ Caller, in api.Which) error { return store.Seal(ctx, in.ID) })
	mountVerb(s, api.StorePromote, counting(store.Promote))
	mountVerb(s, api.StoreReclaim, s.leasing(store.Reclaim))
	mountVerb(s, api.StoreExpire, s.leasing(store.Expire))
	mountVerb(s, api.StoreBreach, func(ctx context.Context, c Caller, in api.Few) ([]holdfast.ID, error) {
		if c.bound() { // it lists jobs of every queue: engines with unbound keys do this
			return nil, nil
		}
		return store.Breach(ctx, in.Limit)
	})
	mountVerb(s, api.StoreRecords, func(ctx context.Context, c Caller, in api.ARoom) ([]holdfast.Record, error) {
		some, err := c.mayReadRoom(in.Room)
		if err != nil || !some {
			return nil, err
		}
		return store.Records(ctx, in.Room)
	})
	mountAction(s, api.StoreKeep, func(ctx context.Context, c Caller, in api.Change) error {
		change := in.Change()
		if err := s.mayKeep(ctx, c, &change); err != nil {
			return err
		}
		return store.Keep(ctx, change)
	})
	mountVerb(s, api.StoreRedrive, func(ctx context.Context, c Caller, in api.Step) (api.Answers, error) {
		step, err := s.redriveStep(ctx, c, holdfast.Redrive(in))
		if err != nil {
			return api.Answers{}, err
		}
		answers, err := store.Redrive(ctx, step)
		return api.Answers{Answers: api.Problems(answers)}, err
	})
	mountVerb(s, api.StoreRedriven, func(ctx context.Context, _ Caller, in api.Which) (holdfast.Tally, error) {
		return store.Redriven(ctx, in.ID)
	})
	mountVerb(s, api.StoreConclude, counting(store.Conclude))
	mountVerb(s, api.StoreSequence, counting(store.Sequence))
	mountVerb(s, api.StorePurge, func(ctx context.Context, c Caller, in api.Sweep) (holdfast.Purged, error) {
		return s.purge(ctx, c, holdfast.Purge(in))
	})
	mountVerb(s, api.StoreForget, func(ctx context.Context, c Caller, in api.Aged) (out api.Counted, err error) {
		out.Count, err = s.forget(ctx, c, in.Shelf, in.Older, in.Limit)
		return out, err
	})
}

// counting adapts a store method that processes up to a number of entries and returns how many.
func counting(do func(ctx context.Context, limit int) (int, error)) func(context.Context, Caller, api.Few) (api.Counted, error) {
	return func(ctx context.Context, _ Caller, in api.Few) (out api.Counted, err error) {
		out.Count, err = do(ctx, in.Limit)
		return out, err
	}
}

// leasing adapts a store method that leases jobs.
func (s *Server) leasing(do func(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error)) func(context.Context, Caller, api.Take) (api.ClaimOut, error) {
	return func(ctx context.Context, who Caller, in api.Take) (out api.ClaimOut, err error) {
		if who.bound() { // it leases jobs of every queue: engines with unbound keys do this
			return api.ClaimOut{Leases: []api.Lease{}}, nil
		}
		if !s.hasAnswerMemory(who) {
			return out, busy()
		}
		leases, err := s.sizer.claimInParts(ctx, do, holdfast.Claim(in))
		out.Leases = make([]api.Lease, len(leases))
		for i := range leases {
			out.Leases[i] = api.LeaseOf(leases[i])
		}
		return out, err
	}
}

// mountOperator mounts the store routes by which people act.
func (s *Server) mountOperator() {
	store := s.cfg.Store
	mountVerb(s, api.StoreRetry, func(ctx context.Context, c Caller, in api.Deed) (out api.Counted, err error) {
		out.Count, err = store.Retry(ctx, c.actual(in))
		return out, err
	})
	mountVerb(s, api.StoreCancel, func(ctx context.Context, c Caller, in api.Deed) (holdfast.State, error) {
		return store.Cancel(ctx, c.actual(in))
	})
	mountAction(s, api.StoreDiscard, func(ctx context.Context, c Caller, in api.Deed) error { return store.Discard(ctx, c.actual(in)) })
	mountVerb(s, api.StoreEdit, func(ctx context.Context, c Caller, in api.Alteration) (holdfast.Job, error) {
		e := in.Edit()
		e.Intervention = c.actual(in.Deed)
		return store.Edit(ctx, e)
	})
	mountAction(s, api.StorePause, func(ctx context.Context, c Caller, in api.Placed) error { return store.Pause(ctx, c.placed(in)) })
	mountAction(s, api.StoreResume, func(ctx context.Context, c Caller, in api.Placed) error { return store.Resume(ctx, c.placed(in)) })
	mountAction(s, api.StoreTriage, func(ctx context.Context, c Caller, in api.Judgement) error {
		if c.Key != "" {
			in.Actor = c.actor(in.Actor)
		}
		return store.Triage(ctx, holdfast.Triage(in))
	})
	mountVerb(s, api.StoreRetryGroup, func(ctx context.Context, c Caller, in api.Deed) (out api.Counted, err error) {
		out.Count, err = store.RetryGroup(ctx, c.actual(in))
		return out, err
	})
	mountAction(s, api.StoreCancelGroup, func(ctx context.Context, c Caller, in api.Deed) error {
		return store.CancelGroup(ctx, c.actual(in))
	})
}

// placed is a hold as it is stored: a caller with a key is its actor.
func (c Caller) placed(p api.Placed) holdfast.Hold {
	h := p.Placement()
	if c.Key != "" {
		h.Actor = c.actor(h.Actor)
	}
	return h
}
