package api

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Store plays every role of a store at a server, so that an engine runs far from its store unchanged. It keeps a store's promises: what it
// acknowledges is durable there. While the server is away it asks again what may be asked again, for as long as Config.Patience.
//
// Claim, Reclaim and Expire are asked once: when their answer is lost, nobody works on what they took until its leases end, and a second
// call would take more. Keep is asked once too; who does not hear its answer reads what is kept, and decides anew.
type Store struct {
	c      *Client
	closed atomic.Bool
}

var _ holdfast.Store = (*Store)(nil)

// Store opens the store at the server.
func (c *Client) Store() *Store { return &Store{c: c} }

// Close lets go of idle connections. A closed store refuses whatever it is asked.
func (s *Store) Close() error {
	s.closed.Store(true)
	return s.c.Close()
}

// In refuses: nobody's transaction reaches through a server.
func (s *Store) In(tx any) holdfast.Enqueuer { return unbound{fmt.Sprintf("%T", tx)} }

// An unbound enqueuer refuses what it is asked.
type unbound struct{ tx string }

func (u unbound) refusal() error {
	return invalid("a transaction of type %s cannot be joined through a server: open the store itself for that, or enqueue with an idempotency key after the transaction", u.tx)
}

func (u unbound) Enqueue(context.Context, []holdfast.Draft) ([]holdfast.Receipt, error) {
	return nil, u.refusal()
}

func (u unbound) Gather(context.Context, holdfast.Group) (holdfast.Group, error) {
	return holdfast.Group{}, u.refusal()
}

func (u unbound) Seal(context.Context, holdfast.ID) error { return u.refusal() }

const (
	once  = false
	again = true
)

// ask asks a verb of the store.
func ask[In, Out any](ctx context.Context, s *Store, r Route[Asks[In], Exact[Out]], in In, repeat bool) (Out, error) {
	out, err := tell(ctx, s, r, Asks[In]{Exact[In]{in}}, repeat)
	return out.Value, err
}

// order asks for something to be done that has no answer.
func order[In any](ctx context.Context, s *Store, r Route[Asks[In], Nothing], in In, repeat bool) error {
	_, err := tell(ctx, s, r, Asks[In]{Exact[In]{in}}, repeat)
	return err
}

// tell asks by any route, unless the store is closed.
func tell[In, Out any](ctx context.Context, s *Store, r Route[In, Out], in In, repeat bool) (out Out, err error) {
	if err := s.open(ctx); err != nil {
		return out, err
	}
	return call(ctx, s.c, r, in, repeat)
}

// open refuses when the store is closed, or nobody waits for an answer.
func (s *Store) open(ctx context.Context) error {
	if s.closed.Load() {
		return &holdfast.Error{Kind: holdfast.ErrUnavailable, Message: "this store is closed: open it again"}
	}
	return ctx.Err()
}

// Claim takes due jobs on.
func (s *Store) Claim(ctx context.Context, c holdfast.Claim) ([]holdfast.Lease, error) {
	in := ClaimIn{Letter: true, Body: Claim{Worker: c.Worker, Queues: c.Queues, Kinds: c.Kinds, Limit: &c.Limit, Start: &c.Start, Lease: &c.Lease, Bytes: c.Bytes, OwnerSlots: c.OwnerSlots, Busy: c.Busy}}
	out, err := tell(ctx, s, ClaimJobs, in, once)
	return leases(out, err, Unmark)
}

// Renew extends batches, all in one go.
func (s *Store) Renew(ctx context.Context, renewals []holdfast.Renewal, lease time.Duration) (holdfast.Renewed, error) {
	var in RenewIn
	in.Body.Lease = &lease
	in.Body.Renewals = each(renewals, func(r holdfast.Renewal) Renewal { return Renewal(r) })
	out, err := tell(ctx, s, RenewJobs, in, again)
	return holdfast.Renewed{Lost: out.Lost, Cancelling: out.Cancelling}, err
}

// Settle ends leases. More than fits into one call goes in several; each settlement is answered for itself anyway.
func (s *Store) Settle(ctx context.Context, settlements []holdfast.Settlement) ([]error, error) {
	weight := func(one holdfast.Settlement) int {
		heavy := 600 + len(one.Result) + len(one.Result)/4
		if one.Failure != nil {
			heavy += 2 * len(one.Failure.Detail)
		}
		return heavy
	}
	return portions(settlements, weight, func(few []holdfast.Settlement) (Answers, error) {
		in := SettleIn{Letter: true}
		in.Body.Settlements = make([]Settlement, len(few))
		for i, one := range few {
			in.Body.Settlements[i] = Settlement(one)
			in.Body.Settlements[i].Result = Mark(one.Result)
		}
		return tell(ctx, s, SettleJobs, in, again)
	})
}

// Note keeps progress and checkpoints.
func (s *Store) Note(ctx context.Context, notes []holdfast.Note) ([]error, error) {
	weight := func(one holdfast.Note) int { return 600 + len(one.Checkpoint) + len(one.Checkpoint)/4 }
	return portions(notes, weight, func(few []holdfast.Note) (Answers, error) {
		in := NoteIn{Letter: true}
		for _, one := range few {
			note := Note{Batch: one.Batch, Job: one.Job, Token: one.Token, Checkpoint: Mark(one.Checkpoint)}
			if one.Progress != nil {
				note.Progress = &Progress{one.Progress.Percent, one.Progress.Note}
			}
			in.Body.Notes = append(in.Body.Notes, note)
		}
		return tell(ctx, s, NoteJobs, in, again)
	})
}

// portions sends many things in calls that are not too large, and puts the answers together.
func portions[T any](all []T, weight func(T) int, send func([]T) (Answers, error)) ([]error, error) {
	answers := make([]error, 0, len(all))
	for len(all) > 0 {
		n, heavy := 0, 0
		for n < len(all) && n < MostLeases && (n == 0 || heavy+weight(all[n]) < WorkLimit/2) {
			heavy += weight(all[n])
			n++
		}
		out, err := send(all[:n])
		if err != nil {
			return nil, err
		}
		answers, all = append(answers, Errs(out.Answers)...), all[n:]
	}
	return answers, nil
}

// Present says that a worker process is alive.
func (s *Store) Present(ctx context.Context, p holdfast.Presence) error {
	_, err := tell(ctx, s, PutWorker, PresentIn{p.Worker, Present{p.Queues, p.Kinds, p.Depends, p.Version, p.Slots, p.Codes, p.Policy, p.Misses, p.For}}, again)
	return err
}

// Await returns when there may be something to do, or when patience runs out.
func (s *Store) Await(ctx context.Context, queues []string, patience time.Duration) (holdfast.Wake, error) {
	for end := time.Now().Add(patience); ; {
		var in WakeIn
		in.Body.Queues, in.Body.Patience = queues, max(0, min(time.Until(end), MostWait))
		out, err := tell(ctx, s, AwaitWork, in, once)
		if err != nil || out.Work || out.Cancel || !time.Now().Before(end) {
			return holdfast.Wake(out), err
		}
	}
}

// leases are the leases of an answer.
func leases(out ClaimOut, err error, raw func(rawJSON) rawJSON) ([]holdfast.Lease, error) {
	if err != nil {
		return nil, err
	}
	all := make([]holdfast.Lease, len(out.Leases))
	for i := range out.Leases {
		all[i] = out.Leases[i].lease()
		if raw != nil {
			all[i].Args, all[i].Checkpoint = raw(all[i].Args), raw(all[i].Checkpoint)
		}
	}
	return all, nil
}
