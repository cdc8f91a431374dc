package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// usualLease is the lease duration when the request has none.
const usualLease = 30 * time.Second

func (s *Server) mountClaims() {
	db := s.cfg.Store
	mount(s, api.ClaimJobs, s.claim)
	mount(s, api.RenewJobs, s.renew)
	mount(s, api.SettleJobs, s.settle)
	mount(s, api.NoteJobs, s.note)
	mount(s, api.Upstreams, s.upstreams)
	mount(s, api.PutWorker, func(ctx context.Context, c Caller, in *api.ReportWorkerIn) (nothing, error) {
		p := in.Body
		if err := c.mayWorkOn(p.Queues, slices.AppendSeq(slices.Clone(p.Kinds), maps.Keys(p.Depends))); err != nil {
			return nothing{}, err
		}
		return nothing{}, db.ReportWorker(ctx, store.WorkerInfo{Worker: in.Name, Queues: p.Queues, Kinds: p.Kinds, Depends: p.Depends, Version: p.Version, Slots: p.Slots, Codes: p.Codes, Policy: p.Policy, Misses: p.Misses, For: p.For})
	})
	mount(s, api.AwaitWork, func(ctx context.Context, c Caller, in *api.WakeIn) (api.Wake, error) {
		queues := in.Body.Queues
		if len(queues) == 0 {
			queues = c.Queues
		}
		if err := c.mayWorkOn(queues, nil); err != nil {
			return api.Wake{}, err
		}
		ctx, over := s.untilClose(ctx)
		defer over()
		wake, err := db.Await(ctx, queues, max(0, min(in.Body.Patience, api.MostWait)))
		if err != nil && s.closing.Err() != nil {
			wake, err = store.Wake{}, nil // the server stops: the worker sends its next request to another server
		}
		return api.Wake(wake), err
	})
	mount(s, api.JobOutcome, s.report)
}

func orElse[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

// tooMany refuses more than MostLeases entries in one call.
func tooMany(what string, n int) error {
	if n <= api.MostLeases {
		return nil
	}
	return &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("%d %s in one call: send at most %d", n, what, api.MostLeases)}
}

// claim claims jobs for a worker. The leases of workers that report outcomes, and of bound keys, are remembered, so that their outcomes and settlements
// need no read from the store.
func (s *Server) claim(ctx context.Context, who Caller, in *api.ClaimIn) (out api.ClaimOut, err error) {
	c := store.Claim{Worker: in.Body.Worker, Queues: in.Body.Queues, Kinds: in.Body.Kinds, Limit: orElse(in.Body.Limit, 1), Lease: orElse(in.Body.Lease, usualLease),
		Bytes: in.Body.Bytes, OwnerSlots: in.Body.OwnerSlots, Busy: in.Body.Busy}
	c.Start = orElse(in.Body.Start, c.Limit)
	if c, err = who.restrict(c); err != nil {
		return out, err
	}
	if c.Queues == nil && len(c.Kinds) == 0 {
		c.Queues = []string{holdfast.DefaultQueue}
	}
	if c.Worker == "" || len(c.Worker) > check.MaxKey {
		return out, &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf("no worker name, or one of more than %d bytes: give a name that is unique to this process and this start of it", check.MaxKey)}
	}
	if err := tooMany("jobs", c.Limit); err != nil {
		return out, err
	}
	if !s.hasAnswerMemory(who) {
		return out, busy()
	}
	leases, err := s.sizer.claim(ctx, s.cfg.Store.Claim, c)
	if err != nil {
		return out, err
	}
	if s.cfg.Settler != nil && !in.Letter { // Go programs apply retry budgets themselves
		leases = s.cfg.Settler.ReserveRetries(ctx, leases)
	}
	if s.cfg.Settler != nil && !in.Letter || who.bound() { // Go programs settle themselves; what bound keys settle is compared with what they claimed
		s.leaseCache.add(leases, time.Now())
	}
	out.Leases = make([]api.Lease, len(leases))
	for i := range leases {
		out.Leases[i] = api.LeaseOf(leases[i])
		if in.Letter {
			l := &out.Leases[i]
			l.Args, l.Checkpoint = api.Mark(l.Args), api.Mark(l.Checkpoint)
		}
	}
	return out, nil
}

func (s *Server) settle(ctx context.Context, c Caller, in *api.SettleIn) (out api.Answers, err error) {
	if err := tooMany("settlements", len(in.Body.Settlements)); err != nil {
		return out, err
	}
	settlements := make([]store.Settlement, len(in.Body.Settlements))
	for i := range settlements {
		settlements[i] = store.Settlement(in.Body.Settlements[i])
		if in.Letter {
			settlements[i].Result = api.Unmark(settlements[i].Result)
			for n := range settlements[i].Enqueue {
				settlements[i].Enqueue[n].Args = api.Unmark(settlements[i].Enqueue[n].Args)
			}
		}
	}
	answers, err := s.settleAllowed(ctx, c, settlements)
	return api.Answers{Answers: api.Problems(answers)}, err
}

// settleAllowed settles. A settlement whose drafts the caller may not enqueue is refused, and the others are applied.
func (s *Server) settleAllowed(ctx context.Context, c Caller, settlements []store.Settlement) ([]error, error) {
	answers := make([]error, len(settlements))
	rest, places := make([]store.Settlement, 0, len(settlements)), make([]int, 0, len(settlements))
	for i := range settlements {
		if answers[i] = s.prepareDrafts(c, settlements[i].Enqueue); answers[i] == nil {
			rest, places = append(rest, settlements[i]), append(places, i)
		}
	}
	if len(rest) == 0 {
		return answers, nil
	}
	done, err := onlyAllowed(ctx, boundCaller{s, c}, rest, func(one *store.Settlement) (holdfast.ID, int) { return one.Job, one.Token }, s.cfg.Store.Settle)
	for n, i := range places {
		if n < len(done) {
			answers[i] = done[n]
		}
	}
	return answers, err
}

func (s *Server) note(ctx context.Context, c Caller, in *api.NoteIn) (out api.Answers, err error) {
	if err := tooMany("notes", len(in.Body.Notes)); err != nil {
		return out, err
	}
	notes := make([]store.Note, len(in.Body.Notes))
	for i, n := range in.Body.Notes {
		notes[i] = store.Note{Batch: n.Batch, Job: n.Job, Token: n.Token, Checkpoint: n.Checkpoint}
		if in.Letter {
			notes[i].Checkpoint = api.Unmark(n.Checkpoint)
		}
		if n.Progress != nil {
			notes[i].Progress = &holdfast.Progress{Percent: n.Progress.Percent, Note: n.Progress.Note}
		}
	}
	answers, err := onlyAllowed(ctx, boundCaller{s, c}, notes, func(one *store.Note) (holdfast.ID, int) { return one.Job, one.Token }, s.cfg.Store.Note)
	return api.Answers{Answers: api.Problems(answers)}, err
}

// upstreams returns the members for which a leased job waited. The lease gives access to their results, also to a key that is bound to other queues or kinds.
func (s *Server) upstreams(ctx context.Context, c Caller, in *api.UpstreamsIn) (out api.UpstreamsOut, err error) {
	if err := s.mayTouch(ctx, c, in.Body.Job, in.Body.Token); err != nil {
		return out, err
	}
	if !s.hasAnswerMemory(c) {
		return out, busy()
	}
	out.Upstreams, out.Cursor, err = s.cfg.Store.Upstreams(ctx, store.UpstreamFilter(in.Body))
	for i := range out.Upstreams {
		if in.Letter {
			out.Upstreams[i].Result = api.Mark(out.Upstreams[i].Result)
		}
	}
	return out, err
}

// actual is an intervention as it is stored: a caller with a key is its actor.
func (c Caller) actual(d api.Deed) store.Intervention {
	i := store.Intervention(d)
	if c.Key != "" {
		i.Actor, i.Request = c.actor(i.Actor), c.Request
	}
	i.Owner = cmp.Or(c.Owner, i.Owner)
	return i
}
