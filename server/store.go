package server

import (
	"context"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
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
	s.mountOperatorRole()
	s.mountInspector()
	s.mountAnalyst()
}

// mountKeeper mounts the store routes of engines.
func (s *Server) mountKeeper() {
	db := s.cfg.Store
	mountVerb(s, api.StoreCreateGroup, func(ctx context.Context, c Caller, in api.NewGroup) (holdfast.Group, error) {
		if err := c.mayEnqueueThen(in.Group().Then); err != nil {
			return holdfast.Group{}, err
		}
		return db.CreateGroup(ctx, in.Group())
	})
	mountAction(s, api.StoreSealGroup, func(ctx context.Context, _ Caller, in api.Which) error { return db.SealGroup(ctx, in.ID) })
	mountVerb(s, api.StorePromote, counting(db.Promote))
	mountVerb(s, api.StoreReclaim, s.leasing(db.Reclaim))
	mountVerb(s, api.StoreExpire, s.leasing(db.Expire))
	mountVerb(s, api.StoreMissedDeadlines, func(ctx context.Context, c Caller, in api.Few) ([]holdfast.ID, error) {
		if c.bound() { // it lists jobs of every queue: engines with unbound keys do this
			return nil, nil
		}
		return db.MissedDeadlines(ctx, in.Limit)
	})
	mountVerb(s, api.StoreRecords, func(ctx context.Context, c Caller, in api.InNamespace) ([]store.Record, error) {
		some, err := c.mayReadNamespace(in.Namespace)
		if err != nil || !some {
			return nil, err
		}
		return db.Records(ctx, in.Namespace)
	})
	mountAction(s, api.StoreApply, func(ctx context.Context, c Caller, in api.Change) error {
		change := in.Change()
		if err := s.mayKeep(ctx, c, &change); err != nil {
			return err
		}
		return db.Apply(ctx, change)
	})
	mountVerb(s, api.StoreRedrive, func(ctx context.Context, c Caller, in api.Step) (api.Answers, error) {
		step, err := s.redriveStep(ctx, c, store.Redrive(in))
		if err != nil {
			return api.Answers{}, err
		}
		answers, err := db.Redrive(ctx, step)
		return api.Answers{Answers: api.Problems(answers)}, err
	})
	mountVerb(s, api.StoreRedriven, func(ctx context.Context, _ Caller, in api.Which) (store.RedriveCounts, error) {
		return db.Redriven(ctx, in.ID)
	})
	mountVerb(s, api.StoreAdvanceGroups, counting(db.AdvanceGroups))
	mountVerb(s, api.StoreSequence, counting(db.Sequence))
	mountVerb(s, api.StorePurge, func(ctx context.Context, c Caller, in api.Sweep) (store.PurgeResult, error) {
		return s.purge(ctx, c, store.Purge(in))
	})
	mountVerb(s, api.StoreDeleteHistory, func(ctx context.Context, c Caller, in api.Aged) (out api.Counted, err error) {
		out.Count, err = s.deleteHistory(ctx, c, in.History, in.Older, in.Limit)
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
func (s *Server) leasing(do func(ctx context.Context, c store.Claim) ([]store.Lease, error)) func(context.Context, Caller, api.Take) (api.ClaimOut, error) {
	return func(ctx context.Context, who Caller, in api.Take) (out api.ClaimOut, err error) {
		if who.bound() { // it leases jobs of every queue: engines with unbound keys do this
			return api.ClaimOut{Leases: []api.Lease{}}, nil
		}
		if !s.hasAnswerMemory(who) {
			return out, busy()
		}
		leases, err := s.sizer.claimInParts(ctx, do, store.Claim(in))
		out.Leases = make([]api.Lease, len(leases))
		for i := range leases {
			out.Leases[i] = api.LeaseOf(leases[i])
		}
		return out, err
	}
}

// mountOperatorRole mounts the store routes by which people act.
func (s *Server) mountOperatorRole() {
	db := s.cfg.Store
	mountVerb(s, api.StoreRetry, func(ctx context.Context, c Caller, in api.Deed) (out api.Counted, err error) {
		out.Count, err = db.Retry(ctx, c.actual(in))
		return out, err
	})
	mountVerb(s, api.StoreCancel, func(ctx context.Context, c Caller, in api.Deed) (holdfast.State, error) {
		return db.Cancel(ctx, c.actual(in))
	})
	mountAction(s, api.StoreDiscard, func(ctx context.Context, c Caller, in api.Deed) error { return db.Discard(ctx, c.actual(in)) })
	mountVerb(s, api.StoreEdit, func(ctx context.Context, c Caller, in api.Alteration) (holdfast.Job, error) {
		e := in.Edit()
		e.Intervention = c.actual(in.Deed)
		return db.Edit(ctx, e)
	})
	mountAction(s, api.StorePause, func(ctx context.Context, c Caller, in api.Placed) error { return db.Pause(ctx, c.placed(in)) })
	mountAction(s, api.StoreResume, func(ctx context.Context, c Caller, in api.Placed) error { return db.Resume(ctx, c.placed(in)) })
	mountAction(s, api.StoreTriage, func(ctx context.Context, c Caller, in api.Judgement) error {
		if c.Key != "" {
			in.Actor = c.actor(in.Actor)
		}
		return db.Triage(ctx, store.Triage(in))
	})
	mountVerb(s, api.StoreRetryGroup, func(ctx context.Context, c Caller, in api.Deed) (out api.Counted, err error) {
		out.Count, err = db.RetryGroup(ctx, c.actual(in))
		return out, err
	})
	mountAction(s, api.StoreCancelGroup, func(ctx context.Context, c Caller, in api.Deed) error {
		return db.CancelGroup(ctx, c.actual(in))
	})
}

// placed is a hold as it is stored: a caller with a key is its actor.
func (c Caller) placed(p api.Placed) store.Hold {
	h := p.Placement()
	if c.Key != "" {
		h.Actor = c.actor(h.Actor)
	}
	return h
}
