package holdfasttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/engine"
	"github.com/holdfastdev/holdfast/store"
)

// oneJob is what an engine sees instead of a store while Work runs a handler: one lease, which it hands out once, and records of what is written about it. It
// answers every question about anything else as an empty store does.
type oneJob struct {
	end     error // Setup.End
	before  []store.Upstream
	started chan struct{} // closed when the handler begins
	settled chan struct{}
	ended   chan struct{} // closed when Setup.EndAfter has passed

	mu         sync.Mutex
	lease      *store.Lease // until it is claimed
	id         holdfast.ID
	settlement *store.Settlement
	checkpoint []byte
	progress   []holdfast.Progress

	completion  *store.Settlement // of Job.CompleteIn
	completedIn any               // the transaction
}

func newOneJob(lease store.Lease, s Setup) *oneJob {
	return &oneJob{end: s.End, before: s.Upstreams, started: make(chan struct{}), settled: make(chan struct{}), ended: make(chan struct{}), lease: &lease, id: lease.ID}
}

// run runs the engine until the attempt is settled.
func (o *oneJob) run(ctx context.Context, worker *engine.Engine, s Setup) error {
	ran := make(chan error, 1)
	go func() { ran <- worker.Run(ctx) }()
	var end <-chan time.Time
	var started <-chan struct{} // nil: the handler's context does not end
	if s.End != nil {
		started = o.started
	}
	for {
		select {
		case <-started:
			started = nil
			timer := time.NewTimer(s.EndAfter)
			defer timer.Stop()
			end = timer.C
		case err := <-ran: // a refused registration, the end of the test, or a stop (Setup.End)
			select {
			case <-o.settled:
				return err
			default:
				return errors.Join(err, context.Cause(ctx), errors.New("the engine ended before the attempt was settled"))
			}
		case <-o.settled:
			err := worker.Stop(context.Background())
			return errors.Join(err, <-ran)
		case <-end:
			close(o.ended)
			if errors.Is(o.end, engine.ErrStopping) {
				now, cancel := context.WithCancel(ctx)
				cancel()
				go func() { _ = worker.Stop(now) }() // without a grace period
			}
		}
	}
}

// attempt returns what was recorded.
func (o *oneJob) attempt() *Attempt {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.settlement
	a := &Attempt{
		State: s.To, Failure: s.Failure, Charge: s.Charge, Delay: s.Delay, Why: s.Why, Took: s.Took, Result: s.Result, Enqueued: s.Enqueue,
		Checkpoint: o.checkpoint, Progress: o.progress, CompletedIn: o.completedIn,
	}
	switch {
	case !o.hasEnded():
	case errors.Is(o.end, engine.ErrCancelled): // a store applies a pending cancellation whatever the settlement says
		a.State, a.Charge, a.Delay, a.Result = holdfast.Cancelled, store.ChargeNone, 0, nil
	case errors.Is(o.end, holdfast.ErrLeaseLost):
		a.State, a.Charge, a.Delay, a.Result = holdfast.Processing, store.ChargeNone, 0, nil
	}
	return a
}

// hasEnded reports whether the context of the handler was ended (Setup.EndAfter).
func (o *oneJob) hasEnded() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

// The methods that an engine calls about its leases.

func (o *oneJob) Claim(_ context.Context, c store.Claim) ([]store.Lease, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lease == nil || !slices.Contains(c.Kinds, o.lease.Kind) {
		return nil, nil
	}
	lease := *o.lease
	lease.Worker, lease.LeaseUntil = c.Worker, lease.AsOf.Add(c.Lease)
	o.lease = nil
	return []store.Lease{lease}, nil
}

func (o *oneJob) Renew(context.Context, []store.Renewal, time.Duration) (store.RenewResult, error) {
	switch {
	case o.hasEnded() && errors.Is(o.end, engine.ErrCancelled):
		return store.RenewResult{Cancelling: []holdfast.ID{o.id}}, nil
	case o.hasEnded() && errors.Is(o.end, holdfast.ErrLeaseLost):
		return store.RenewResult{Lost: []holdfast.ID{o.id}}, nil
	}
	return store.RenewResult{}, nil
}

func (o *oneJob) Settle(_ context.Context, settlements []store.Settlement) ([]error, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	answers := make([]error, len(settlements))
	for i := range settlements {
		if answers[i] = settlements[i].Check(); answers[i] != nil || o.settlement != nil {
			continue
		}
		o.settlement = &settlements[i]
		switch {
		case settlements[i].Confirm && o.completion != nil:
			o.settlement = o.completion // with its result
		case settlements[i].Confirm: // Job.CompleteIn returned an error
			o.settlement, answers[i] = nil, &holdfast.Error{Err: holdfast.ErrConflict, Message: "the job was not completed in a transaction"}
			continue
		}
		close(o.settled)
	}
	return answers, nil
}

// In accepts every transaction.
func (o *oneJob) In(tx any) store.Tx { return oneTx{o: o, tx: tx} }

// A oneTx is what an engine sees of a handler's transaction. It calls only Complete.
type oneTx struct {
	store.Tx
	o  *oneJob
	tx any
}

func (x oneTx) Complete(_ context.Context, settlements []store.Settlement) ([]error, error) {
	o := x.o
	o.mu.Lock()
	defer o.mu.Unlock()
	answers := make([]error, len(settlements))
	for i := range settlements {
		switch answers[i] = settlements[i].Check(); {
		case answers[i] != nil:
		case x.tx == nil:
			answers[i] = &holdfast.Error{Err: holdfast.ErrInvalid, Message: "Job.CompleteIn without a transaction: pass the one in which the handler writes"}
		case o.hasEnded() && errors.Is(o.end, holdfast.ErrLeaseLost):
			answers[i] = &holdfast.Error{Err: holdfast.ErrLeaseLost, Message: "the lease was lost (Setup.End)"}
		default:
			o.completion, o.completedIn = &settlements[i], x.tx
		}
	}
	return answers, nil
}

func (o *oneJob) Note(_ context.Context, notes []store.Note) ([]error, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	answers := make([]error, len(notes))
	for i, n := range notes {
		answers[i] = n.Check()
		switch {
		case answers[i] != nil:
		case o.hasEnded() && errors.Is(o.end, holdfast.ErrLeaseLost):
			answers[i] = &holdfast.Error{Err: holdfast.ErrLeaseLost, Message: "the lease was lost (Setup.End)"}
		case n.Progress != nil:
			p := *n.Progress
			p.At = time.Now().UTC()
			o.progress = append(o.progress, p)
		case n.Checkpoint != nil:
			o.checkpoint = slices.Clone(n.Checkpoint)
		}
	}
	return answers, nil
}

func (o *oneJob) Upstreams(_ context.Context, f store.UpstreamFilter) (found []store.Upstream, cursor string, err error) {
	for _, one := range o.before {
		if f.Step == "" || f.Step == one.Step {
			found = append(found, one)
		}
	}
	if f.Step != "" && len(found) == 0 {
		err = &holdfast.Error{Err: holdfast.ErrNotFound, Message: fmt.Sprintf("the job did not wait for a step %q (Setup.Upstreams)", f.Step)}
	}
	return found, "", err
}

// Await returns when the context of the handler is to end, so that the engine renews and learns the cause.
func (o *oneJob) Await(ctx context.Context, _ []string, patience time.Duration) (store.Wake, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	ended := o.ended
	if o.hasEnded() {
		ended = nil
	}
	select {
	case <-ended:
		return store.Wake{Cancel: true}, nil
	case <-timer.C:
		return store.Wake{}, nil
	case <-ctx.Done():
		return store.Wake{}, ctx.Err()
	}
}

// The methods of an empty store.

func (o *oneJob) ReportWorker(context.Context, store.WorkerInfo) error        { return nil }
func (o *oneJob) Promote(context.Context, int) (int, error)                   { return 0, nil }
func (o *oneJob) Reclaim(context.Context, store.Claim) ([]store.Lease, error) { return nil, nil }
func (o *oneJob) Expire(context.Context, store.Claim) ([]store.Lease, error)  { return nil, nil }
func (o *oneJob) MissedDeadlines(context.Context, int) ([]holdfast.ID, error) { return nil, nil }
func (o *oneJob) Records(context.Context, string) ([]store.Record, error)     { return nil, nil }
func (o *oneJob) Apply(context.Context, store.Change) error                   { return nil }
func (o *oneJob) Holds(context.Context) ([]store.Hold, error)                 { return nil, nil }
func (o *oneJob) Workers(context.Context) ([]store.WorkerInfo, error)         { return nil, nil }
func (o *oneJob) AdvanceGroups(context.Context, int) (int, error)             { return 0, nil }
func (o *oneJob) Sequence(context.Context, int) (int, error)                  { return 0, nil }
func (o *oneJob) Redrive(_ context.Context, r store.Redrive) ([]error, error) {
	return make([]error, len(r.Jobs)), nil
}
func (o *oneJob) Redriven(context.Context, holdfast.ID) (c store.RedriveCounts, err error) {
	return c, nil
}
func (o *oneJob) Purge(context.Context, store.Purge) (r store.PurgeResult, err error) { return r, nil }

func (o *oneJob) Jobs(context.Context, store.Filter) ([]holdfast.Job, string, error) {
	return nil, "", nil
}

func (o *oneJob) RetryStats(context.Context, time.Duration) ([]store.RetryStats, error) {
	return nil, nil
}

func (o *oneJob) DeleteHistory(context.Context, string, time.Duration, int) (int, error) {
	return 0, nil
}

func (o *oneJob) Artifacts(context.Context, store.ArtifactFilter) ([]store.Artifact, error) {
	return nil, nil
}
