package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
)

// A worker's key may be bound to queues, to kinds, or to both. It then claims, enqueues and sees only jobs of these. A job elsewhere is answered like an
// unknown job, and a call that names another queue or kind is forbidden.

// isWorker reports whether the caller has the scope worker, and so may only do what workers and engines do.
func (c Caller) isWorker() bool { return c.Scope == apikey.Worker }

// bound reports whether the caller's key is bound to queues or kinds.
func (c Caller) bound() bool { return len(c.Queues)+len(c.Kinds) > 0 }

// worksOn reports whether the caller's key allows jobs of this queue and kind.
func (c Caller) worksOn(queue, kind string) bool {
	if queue == "" {
		queue = holdfast.DefaultQueue
	}
	return (len(c.Queues) == 0 || slices.Contains(c.Queues, queue)) && (len(c.Kinds) == 0 || slices.Contains(c.Kinds, kind))
}

// binding describes what the key is bound to, for error messages.
func (c Caller) binding() string {
	var parts []string
	if len(c.Queues) > 0 {
		parts = append(parts, "the queues "+strings.Join(c.Queues, ", "))
	}
	if len(c.Kinds) > 0 {
		parts = append(parts, "the kinds "+strings.Join(c.Kinds, ", "))
	}
	return strings.Join(parts, " and ")
}

// outsideBinding is the error for a call outside the binding of the caller's key.
func (c Caller) outsideBinding(reason string) error {
	return forbidden("this key is bound to " + c.binding() + ": " + reason)
}

func forbidden(message string) error {
	return &holdfast.Error{Err: api.ErrForbidden, Message: message}
}

// mayWorkOn refuses queues and kinds that the caller's key is not bound to.
func (c Caller) mayWorkOn(queues, kinds []string) error {
	if slices.ContainsFunc(queues, func(queue string) bool { return len(c.Queues) > 0 && !slices.Contains(c.Queues, queue) }) {
		return c.outsideBinding("it cannot be used for other queues")
	}
	if slices.ContainsFunc(kinds, func(kind string) bool { return len(c.Kinds) > 0 && !slices.Contains(c.Kinds, kind) }) {
		return c.outsideBinding("it cannot be used for other kinds")
	}
	return nil
}

// mayEnqueue refuses drafts of queues and kinds that the caller's key is not bound to.
func (c Caller) mayEnqueue(drafts []holdfast.Draft) error {
	if c.bound() && slices.ContainsFunc(drafts, func(d holdfast.Draft) bool { return !c.worksOn(d.Queue, d.Kind) }) {
		return c.outsideBinding("it cannot enqueue jobs of other queues or kinds")
	}
	return nil
}

// mayEnqueueThen is mayEnqueue for the jobs that a group enqueues when it ends.
func (c Caller) mayEnqueueThen(then []holdfast.Then) error {
	drafts := make([]holdfast.Draft, len(then))
	for i := range then {
		drafts[i] = then[i].Draft
	}
	return c.mayEnqueue(drafts)
}

// restrict restricts a claim to the binding of the caller's key: queues and kinds that the claim leaves out become those of the key.
func (c Caller) restrict(claim store.Claim) (store.Claim, error) {
	if len(claim.Queues) == 0 && len(c.Queues) > 0 {
		claim.Queues = c.Queues
	}
	if len(claim.Kinds) == 0 && len(c.Kinds) > 0 {
		claim.Kinds = c.Kinds
	}
	return claim, c.mayWorkOn(claim.Queues, claim.Kinds)
}

// mayTouch refuses a job outside the binding of the caller's key with the error of an unknown job. For a lease that this server has handed out, the cache
// of leases has the answer; for other jobs the store is asked. Token 0 means the job itself.
func (s *Server) mayTouch(ctx context.Context, c Caller, id holdfast.ID, token int) error {
	if !c.bound() {
		return nil
	}
	if l, known := s.leaseCache.get(id, token); known && c.worksOn(l.lease.Queue, l.lease.Kind) {
		return nil
	}
	job, err := s.cfg.Store.Job(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) || err == nil && !c.worksOn(job.Queue, job.Kind) {
		return noSuchJob(id)
	}
	return err
}

// A boundCaller is a caller with a bound key and the server whose jobs it names.
type boundCaller struct {
	s *Server
	c Caller
}

// filterAllowed separates the entries whose jobs a bound key may access from the others. answers has an error at the place of each refused entry; rest are the
// allowed entries, and places are their positions in all. Any error but ErrNotFound ends the call.
func filterAllowed[T any](ctx context.Context, by boundCaller, all []T, which func(*T) (holdfast.ID, int)) (rest []T, places []int, answers []error, err error) {
	answers = make([]error, len(all))
	for i := range all {
		id, token := which(&all[i])
		refused := by.s.mayTouch(ctx, by.c, id, token)
		if refused != nil && !errors.Is(refused, holdfast.ErrNotFound) {
			return nil, nil, nil, refused
		}
		if answers[i] = refused; refused == nil {
			rest, places = append(rest, all[i]), append(places, i)
		}
	}
	return rest, places, answers, nil
}

// onlyAllowed calls do with the entries that the caller may access, and answers the others like unknown jobs. The answers have the order of all.
func onlyAllowed[T any](ctx context.Context, by boundCaller, all []T, which func(*T) (holdfast.ID, int), do func(context.Context, []T) ([]error, error)) ([]error, error) {
	if !by.c.bound() {
		return do(ctx, all)
	}
	rest, places, answers, err := filterAllowed(ctx, by, all, which)
	if err != nil || len(rest) == 0 {
		return answers, err
	}
	done, err := do(ctx, rest)
	for n, i := range places {
		if n < len(done) {
			answers[i] = done[n]
		}
	}
	return answers, err
}

// renew extends leases. Jobs outside the binding of the caller's key are answered as lost.
func (s *Server) renew(ctx context.Context, c Caller, in *api.RenewIn) (api.RenewOut, error) {
	renewals := make([]store.Renewal, len(in.Body.Renewals))
	var lost []holdfast.ID
	for i, r := range in.Body.Renewals {
		renewals[i] = store.Renewal(r)
		for _, list := range []*[]holdfast.ID{&renewals[i].Running, &renewals[i].Waiting} {
			rest, _, answers, err := filterAllowed(ctx, boundCaller{s, c}, *list, func(id *holdfast.ID) (holdfast.ID, int) { return *id, 0 })
			if err != nil {
				return api.RenewOut{}, err
			}
			for n := range answers {
				if answers[n] != nil {
					lost = append(lost, (*list)[n])
				}
			}
			*list = rest
		}
	}
	renewed, err := s.cfg.Store.Renew(ctx, renewals, orElse(in.Body.Lease, usualLease))
	renewed.Lost = append(renewed.Lost, lost...)
	return api.RenewOut(renewed), err
}

// visibleHolds are the holds that a worker may see: without the names and reasons of operators, and for a bound key without holds on other queues and kinds.
func (c Caller) visibleHolds(holds []store.Hold) []store.Hold {
	if !c.isWorker() {
		return holds
	}
	seen := make([]store.Hold, 0, len(holds))
	for _, h := range holds {
		scope, _ := h.Scope()
		if scope == "queue" && len(c.Queues) > 0 && !slices.ContainsFunc(c.Queues, h.Covers) || scope == "kind" && len(c.Kinds) > 0 && !slices.ContainsFunc(c.Kinds, h.Covers) {
			continue
		}
		if h.Source == "" || h.Source == store.SourceOperator {
			h.Actor, h.Reason = "", ""
		}
		seen = append(seen, h)
	}
	return seen
}

// visibleWorkers are the workers that a bound key may see: of workers that share none of its queues or kinds, only the failure codes and the policy version.
func (c Caller) visibleWorkers(all []store.WorkerInfo) []store.WorkerInfo {
	if !c.bound() {
		return all
	}
	shares := func(of, with []string) bool {
		return len(of) == 0 || slices.ContainsFunc(with, func(name string) bool { return slices.Contains(of, name) })
	}
	seen := slices.Clone(all)
	for i, p := range seen {
		if !shares(c.Queues, p.Queues) || !shares(c.Kinds, p.Kinds) {
			seen[i] = store.WorkerInfo{Version: p.Version, Codes: p.Codes, Policy: p.Policy, StartedAt: p.StartedAt, SeenAt: p.SeenAt, Until: p.Until}
		}
	}
	return seen
}

// outlines are dead letters with the fields that a redrive needs, and without their contents.
func (c Caller) outlines(jobs []holdfast.Job) []holdfast.Job {
	all := make([]holdfast.Job, 0, len(jobs))
	for i := range jobs {
		if j := &jobs[i]; c.worksOn(j.Queue, j.Kind) {
			all = append(all, holdfast.Job{ID: j.ID, Kind: j.Kind, Queue: j.Queue, State: j.State, Generation: j.Generation, Token: j.Token, AsOf: j.AsOf})
		}
	}
	return all
}
