package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/api"
	"github.com/holdfastdev/holdfast/apikey"
)

// A worker's key may be bound to queues, to kinds, or to both. It then works on, enqueues and sees jobs of these alone: a job elsewhere is answered like an
// unknown one, and a call that names another queue or kind is refused.

// confined reports whether the caller is a worker, and so does only a worker's work.
func (c Caller) confined() bool { return c.Scope == apikey.Worker }

// narrow reports whether the caller's key is bound to queues or kinds.
func (c Caller) narrow() bool { return len(c.Queues)+len(c.Kinds) > 0 }

// worksOn reports whether jobs of a queue and a kind are the caller's work.
func (c Caller) worksOn(queue, kind string) bool {
	if queue == "" {
		queue = holdfast.DefaultQueue
	}
	return (len(c.Queues) == 0 || slices.Contains(c.Queues, queue)) && (len(c.Kinds) == 0 || slices.Contains(c.Kinds, kind))
}

// binding says what a key is bound to.
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

// beyond refuses what lies outside the binding of the caller's key.
func (c Caller) beyond(but string) error {
	return forbidden("this key is bound to " + c.binding() + ", and " + but)
}

func forbidden(message string) error {
	return &holdfast.Error{Kind: api.ErrForbidden, Message: message}
}

// mayWorkOn refuses queues and kinds that the caller's key is not bound to.
func (c Caller) mayWorkOn(queues, kinds []string) error {
	if slices.ContainsFunc(queues, func(queue string) bool { return len(c.Queues) > 0 && !slices.Contains(c.Queues, queue) }) {
		return c.beyond("may not work on other queues")
	}
	if slices.ContainsFunc(kinds, func(kind string) bool { return len(c.Kinds) > 0 && !slices.Contains(c.Kinds, kind) }) {
		return c.beyond("may not work on other kinds")
	}
	return nil
}

// mayEnqueue refuses drafts that are not the caller's work.
func (c Caller) mayEnqueue(drafts []holdfast.Draft) error {
	if c.narrow() && slices.ContainsFunc(drafts, func(d holdfast.Draft) bool { return !c.worksOn(d.Queue, d.Kind) }) {
		return c.beyond("may not enqueue elsewhere")
	}
	return nil
}

// mayContinue does the same for jobs that a group enqueues when it ends.
func (c Caller) mayContinue(then []holdfast.Then) error {
	drafts := make([]holdfast.Draft, len(then))
	for i := range then {
		drafts[i] = then[i].Draft
	}
	return c.mayEnqueue(drafts)
}

// narrowed is a claim that takes no more than the caller's key is bound to. What the claim leaves out is what the key is bound to.
func (c Caller) narrowed(claim holdfast.Claim) (holdfast.Claim, error) {
	if len(claim.Queues) == 0 && len(c.Queues) > 0 {
		claim.Queues = c.Queues
	}
	if len(claim.Kinds) == 0 && len(c.Kinds) > 0 {
		claim.Kinds = c.Kinds
	}
	return claim, c.mayWorkOn(claim.Queues, claim.Kinds)
}

// mayTouch refuses a job that is not the caller's work in the words in which an unknown one is refused. A lease that was handed out here is remembered;
// other jobs are looked up. Token 0 asks about the job itself.
func (s *Server) mayTouch(ctx context.Context, c Caller, id holdfast.ID, token int) error {
	if !c.narrow() {
		return nil
	}
	if l, known := s.lent.recall(id, token); known && c.worksOn(l.lease.Queue, l.lease.Kind) {
		return nil
	}
	job, err := s.cfg.Store.Job(ctx, id)
	if errors.Is(err, holdfast.ErrNotFound) || errors.Is(err, holdfast.ErrPurged) || err == nil && !c.worksOn(job.Queue, job.Kind) {
		return noSuchJob(id)
	}
	return err
}

// A touching is a caller that touches jobs of a server's store.
type touching struct {
	s *Server
	c Caller
}

// sift parts what a bound key may touch from the rest: answers has an error for each that it may not, and the rest are those to go on with, with
// their places among all.
func sift[T any](ctx context.Context, by touching, all []T, which func(*T) (holdfast.ID, int)) (rest []T, places []int, answers []error, err error) {
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

// sifted has do answer those that the caller may touch, and answers the others like unknown jobs.
func sifted[T any](ctx context.Context, by touching, all []T, which func(*T) (holdfast.ID, int), do func(context.Context, []T) ([]error, error)) ([]error, error) {
	if !by.c.narrow() {
		return do(ctx, all)
	}
	rest, places, answers, err := sift(ctx, by, all, which)
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

// renew extends leases. Jobs that a bound key does not work on are answered as lost.
func (s *Server) renew(ctx context.Context, c Caller, in *api.RenewIn) (api.RenewOut, error) {
	renewals := make([]holdfast.Renewal, len(in.Body.Renewals))
	var lost []holdfast.ID
	for i, r := range in.Body.Renewals {
		renewals[i] = holdfast.Renewal(r)
		for _, list := range []*[]holdfast.ID{&renewals[i].Running, &renewals[i].Waiting} {
			rest, _, answers, err := sift(ctx, touching{s, c}, *list, func(id *holdfast.ID) (holdfast.ID, int) { return *id, 0 })
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

// heldFrom are holds as a worker sees them: without the words of operators, and for a bound key without those on other queues and kinds.
func (c Caller) heldFrom(holds []holdfast.Hold) []holdfast.Hold {
	if !c.confined() {
		return holds
	}
	seen := make([]holdfast.Hold, 0, len(holds))
	for _, h := range holds {
		scope, _ := h.On()
		if scope == "queue" && len(c.Queues) > 0 && !slices.ContainsFunc(c.Queues, h.Covers) || scope == "kind" && len(c.Kinds) > 0 && !slices.ContainsFunc(c.Kinds, h.Covers) {
			continue
		}
		if h.Source == "" || h.Source == holdfast.SourceOperator {
			h.Actor, h.Reason = "", ""
		}
		seen = append(seen, h)
	}
	return seen
}

// presentFrom are workers as a bound key sees them: of those that share none of its work, only which codes and which policy they follow.
func (c Caller) presentFrom(all []holdfast.Presence) []holdfast.Presence {
	if !c.narrow() {
		return all
	}
	shares := func(of, with []string) bool {
		return len(of) == 0 || slices.ContainsFunc(with, func(name string) bool { return slices.Contains(of, name) })
	}
	seen := slices.Clone(all)
	for i, p := range seen {
		if !shares(c.Queues, p.Queues) || !shares(c.Kinds, p.Kinds) {
			seen[i] = holdfast.Presence{Version: p.Version, Codes: p.Codes, Policy: p.Policy, StartedAt: p.StartedAt, SeenAt: p.SeenAt, Until: p.Until}
		}
	}
	return seen
}

// outlines are dead letters as a redrive needs them: which they are, and nothing that is in them.
func (c Caller) outlines(jobs []holdfast.Job) []holdfast.Job {
	all := make([]holdfast.Job, 0, len(jobs))
	for i := range jobs {
		if j := &jobs[i]; c.worksOn(j.Queue, j.Kind) {
			all = append(all, holdfast.Job{ID: j.ID, Kind: j.Kind, Queue: j.Queue, State: j.State, Generation: j.Generation, Token: j.Token, AsOf: j.AsOf})
		}
	}
	return all
}
