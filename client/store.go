package client

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/api"
	"github.com/holdfastdev/holdfast/store"
)

// A Store implements store.Store on a server, so that an engine runs far from its store unchanged. What it acknowledges is durable on the server.
// While the server cannot be reached or is overloaded, it repeats calls that are safe to repeat, for as long as Config.AbandonAfter.
//
// Claim, Reclaim and Expire are sent once. If their answer is lost, no worker runs the jobs they took until the leases expire, and a repeated call would
// take more jobs. Keep is sent once too: a caller that gets no answer must read the records again and decide again, because the change may have been
// made. A Store is safe for concurrent use.
type Store struct {
	c      *Client
	closed atomic.Bool
}

// Store returns the store of the server.
func (c *Client) Store() *Store { return &Store{c: c} }

// Close closes idle connections. Every later call of the store is ErrUnavailable.
func (s *Store) Close() error {
	s.closed.Store(true)
	return s.c.Close()
}

// In returns a store that refuses every call: a transaction of the caller's database cannot reach through a server.
func (s *Store) In(tx any) store.Tx { return refusingTx{fmt.Sprintf("%T", tx)} }

// A refusingTx refuses every call.
type refusingTx struct{ tx string }

func (u refusingTx) refusal() error {
	return api.Invalid("a transaction of type %s cannot be used through a server: open the store directly, or enqueue with an idempotency key after the transaction", u.tx)
}

func (u refusingTx) Enqueue(context.Context, []holdfast.Draft) ([]holdfast.Receipt, error) {
	return nil, u.refusal()
}

func (u refusingTx) CreateGroup(context.Context, holdfast.Group) (holdfast.Group, error) {
	return holdfast.Group{}, u.refusal()
}

func (u refusingTx) SealGroup(context.Context, holdfast.ID) error { return u.refusal() }

func (u refusingTx) Complete(context.Context, []store.Settlement) ([]error, error) {
	return nil, api.Invalid("a transaction of type %s cannot be used through a server: a job completes in a transaction of the database that has the jobs; "+
		"open the store directly, or return from the handler to complete the job", u.tx)
}

func (u refusingTx) Jobs(context.Context, store.Filter) ([]holdfast.Job, string, error) {
	return nil, "", u.refusal()
}

const (
	sendOnce  = false
	mayRepeat = true
)

// callVerb calls a store route that has an answer.
func callVerb[In, Out any](ctx context.Context, s *Store, r api.Route[api.Asks[In], api.Exact[Out]], in In, repeat bool) (Out, error) {
	out, err := callOpen(ctx, s, r, api.Asks[In]{Body: api.Exact[In]{Value: in}}, repeat)
	return out.Value, err
}

// callAction calls a store route without an answer.
func callAction[In any](ctx context.Context, s *Store, r api.Route[api.Asks[In], api.Nothing], in In, repeat bool) error {
	_, err := callOpen(ctx, s, r, api.Asks[In]{Body: api.Exact[In]{Value: in}}, repeat)
	return err
}

// callOpen calls any route, unless the store is closed.
func callOpen[In, Out any](ctx context.Context, s *Store, r api.Route[In, Out], in In, repeat bool) (out Out, err error) {
	if err := s.open(ctx); err != nil {
		return out, err
	}
	return call(ctx, s.c, r, in, repeat)
}

// open refuses when the store is closed or ctx has ended.
func (s *Store) open(ctx context.Context) error {
	if s.closed.Load() {
		return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "this store is closed: open it again"}
	}
	return ctx.Err()
}

// Claim claims due jobs. It is sent once.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	in := api.ClaimIn{Letter: true, Body: api.Claim{Worker: c.Worker, Queues: c.Queues, Kinds: c.Kinds, Limit: &c.Limit, Start: &c.Start, Lease: &c.Lease, Bytes: c.Bytes, OwnerSlots: c.OwnerSlots, Busy: c.Busy}}
	out, err := callOpen(ctx, s, api.ClaimJobs, in, sendOnce)
	return leases(out, err, api.Unmark)
}

// Renew extends the leases of batches, all in one call.
func (s *Store) Renew(ctx context.Context, renewals []store.Renewal, lease time.Duration) (store.RenewResult, error) {
	var in api.RenewIn
	in.Body.Lease = &lease
	in.Body.Renewals = api.MapSlice(renewals, func(r store.Renewal) api.Renewal { return api.Renewal(r) })
	out, err := callOpen(ctx, s, api.RenewJobs, in, mayRepeat)
	return store.RenewResult{Lost: out.Lost, Cancelling: out.Cancelling}, err
}

// Settle ends leases. Settlements that are too many or too large for one call are sent in several; each is answered on its own in any case.
func (s *Store) Settle(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	weight := func(one store.Settlement) int {
		heavy := 600 + len(one.Result) + len(one.Result)/4
		if one.Failure != nil {
			heavy += 2 * len(one.Failure.Detail)
		}
		for i := range one.Enqueue {
			heavy += 600 + len(one.Enqueue[i].Args) + len(one.Enqueue[i].Args)/4
		}
		return heavy
	}
	return sendInChunks(settlements, weight, func(few []store.Settlement) (api.Answers, error) {
		in := api.SettleIn{Letter: true}
		in.Body.Settlements = make([]api.Settlement, len(few))
		for i, one := range few {
			in.Body.Settlements[i] = api.Settlement(one)
			in.Body.Settlements[i].Result = api.Mark(one.Result)
		}
		return callOpen(ctx, s, api.SettleJobs, in, mayRepeat)
	})
}

// Note saves progress and checkpoints.
func (s *Store) Note(ctx context.Context, notes []store.Note) ([]error, error) {
	weight := func(one store.Note) int { return 600 + len(one.Checkpoint) + len(one.Checkpoint)/4 }
	return sendInChunks(notes, weight, func(few []store.Note) (api.Answers, error) {
		in := api.NoteIn{Letter: true}
		for _, one := range few {
			note := api.Note{Batch: one.Batch, Job: one.Job, Token: one.Token, Checkpoint: api.Mark(one.Checkpoint)}
			if one.Progress != nil {
				note.Progress = &api.Progress{Percent: one.Progress.Percent, Note: one.Progress.Note}
			}
			in.Body.Notes = append(in.Body.Notes, note)
		}
		return callOpen(ctx, s, api.NoteJobs, in, mayRepeat)
	})
}

// Upstreams returns the members for which a leased job waited.
func (s *Store) Upstreams(ctx context.Context, f store.UpstreamFilter) ([]store.Upstream, string, error) {
	out, err := callOpen(ctx, s, api.Upstreams, api.UpstreamsIn{Letter: true, Body: api.UpstreamsWanted(f)}, mayRepeat)
	for i := range out.Upstreams {
		out.Upstreams[i].Result = api.Unmark(out.Upstreams[i].Result)
	}
	return out.Upstreams, out.Cursor, err
}

// sendInChunks sends many entries in calls of at most MostLeases entries and about half of WorkLimit, and joins the answers in order.
func sendInChunks[T any](all []T, weight func(T) int, send func([]T) (api.Answers, error)) ([]error, error) {
	answers := make([]error, 0, len(all))
	for len(all) > 0 {
		n, heavy := 0, 0
		for n < len(all) && n < api.MostLeases && (n == 0 || heavy+weight(all[n]) < api.WorkLimit/2) {
			heavy += weight(all[n])
			n++
		}
		out, err := send(all[:n])
		if err != nil {
			return nil, err
		}
		answers, all = append(answers, api.Errs(out.Answers)...), all[n:]
	}
	return answers, nil
}

// ReportWorker reports that a worker process is alive.
func (s *Store) ReportWorker(ctx context.Context, p store.WorkerInfo) error {
	_, err := callOpen(ctx, s, api.PutWorker, api.ReportWorkerIn{Name: p.Worker, Body: api.WorkerReport{Queues: p.Queues, Kinds: p.Kinds, Depends: p.Depends, Version: p.Version, Slots: p.Slots, Codes: p.Codes, Policy: p.Policy, Misses: p.Misses, For: p.For}}, mayRepeat)
	return err
}

// Await returns when there may be work, or when patience is over. Longer waits than MostWait take several calls.
func (s *Store) Await(ctx context.Context, queues []string, patience time.Duration) (store.Wake, error) {
	for end := time.Now().Add(patience); ; {
		var in api.WakeIn
		in.Body.Queues, in.Body.Patience = queues, max(0, min(time.Until(end), api.MostWait))
		out, err := callOpen(ctx, s, api.AwaitWork, in, sendOnce)
		if err != nil || out.Work || out.Cancel || !time.Now().Before(end) {
			return store.Wake(out), err
		}
	}
}

// leases returns the leases of an answer. raw, if not nil, decodes arguments and checkpoints.
func leases(out api.ClaimOut, err error, raw func(json.RawMessage) json.RawMessage) ([]store.Lease, error) {
	if err != nil {
		return nil, err
	}
	all := make([]store.Lease, len(out.Leases))
	for i := range out.Leases {
		all[i] = out.Leases[i].Lease()
		if raw != nil {
			all[i].Args, all[i].Checkpoint = raw(all[i].Args), raw(all[i].Checkpoint)
		}
	}
	return all, nil
}

var _ store.Store = (*Store)(nil)
