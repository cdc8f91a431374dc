package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// A Fault makes one call of a [Faulty] store fail, or every call from one on.
type Fault struct {
	Verb   string // which calls are counted: "Claim", "Settle", ...; empty counts every method but Await, whose number of calls is not deterministic
	N      int    // the n-th of them fails, counted from 1; 0 means 1
	After  bool   // fail after the store has done the work: the caller cannot know the outcome
	Always bool   // from the n-th call on, not only once
	Err    error  // the error that the caller gets; nil is a holdfast.ErrUnavailable
}

// A Boundary is the moment before or after one call: the moments at which a crash of the process has a different outcome.
type Boundary struct {
	Verb  string
	N     int  // number of the call, from 1, of any method but Await
	After bool // the store has answered, and the caller does not know yet
}

// Faulty is a store that fails on demand. Reads (the Inspector, the Analyst, Group and the lists) never fail, so that a test can see the effect of
// its faults; reads that others act upon (Records, Feed, Artifacts) do. It is safe for concurrent use.
type Faulty struct {
	store.Store
	// Crash, when set, is called at every boundary before any fault is considered. It may end the process or the goroutine.
	// Set it before the store is used.
	Crash func(Boundary)

	mu     sync.Mutex
	faults []Fault
	calls  int
	counts map[string]int
	fired  int
}

// NewFaulty wraps a store. Without faults it behaves like the store.
func NewFaulty(db store.Store, faults ...Fault) *Faulty {
	f := &Faulty{Store: db, counts: map[string]int{}}
	f.Plan(faults...)
	return f
}

// Plan replaces the faults and resets the counters. Plan() removes all faults.
func (f *Faulty) Plan(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults, f.calls, f.fired = faults, 0, 0
	clear(f.counts)
}

// Calls returns how many calls of a method were made since the plan; an empty name counts all but Await.
func (f *Faulty) Calls(verb string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if verb == "" {
		return f.calls
	}
	return f.counts[verb]
}

// Fired returns how many calls were failed since the plan. A test that increases n step by step is complete when it reads 0.
func (f *Faulty) Fired() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

// count numbers a call, and returns the fault that applies to it.
func (f *Faulty) count(verb string) (n int, strike *Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[verb]++
	if verb != "Await" {
		f.calls++
	}
	for _, fault := range f.faults {
		number := f.counts[verb]
		if fault.Verb == "" && verb != "Await" {
			number = f.calls
		} else if fault.Verb != verb {
			continue
		}
		if first := max(fault.N, 1); number == first || fault.Always && number > first {
			f.fired++
			return f.calls, &fault
		}
	}
	return f.calls, nil
}

func (f *Faulty) cross(verb string, n int, after bool) {
	if f.Crash != nil {
		f.Crash(Boundary{Verb: verb, N: n, After: after})
	}
}

// do makes one call between its two boundaries.
func (f *Faulty) do(verb string, call func() error) error {
	n, strike := f.count(verb)
	f.cross(verb, n, false)
	if strike != nil && !strike.After {
		return strike.error(verb)
	}
	err := call()
	f.cross(verb, n, true)
	if strike != nil {
		return strike.error(verb)
	}
	return err
}

func (f *Fault) error(verb string) error {
	if f.Err != nil {
		return f.Err
	}
	side := "before"
	if f.After {
		side = "after"
	}
	return &holdfast.Error{Err: holdfast.ErrUnavailable, Message: "the store was made to fail " + side + " " + verb}
}

// ask makes one call that returns a value. A failed call returns the zero value, as with a lost connection.
func ask[T any](f *Faulty, verb string, call func() (T, error)) (T, error) {
	var answer, none T
	err := f.do(verb, func() (err error) {
		answer, err = call()
		return err
	})
	if err != nil {
		return none, err
	}
	return answer, nil
}

// The methods of the store, each between its boundaries.

func (f *Faulty) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	return ask(f, "Enqueue", func() ([]holdfast.Receipt, error) { return f.Store.Enqueue(ctx, drafts) })
}

func (f *Faulty) Claim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	return ask(f, "Claim", func() ([]store.Lease, error) { return f.Store.Claim(ctx, c) })
}

func (f *Faulty) Renew(ctx context.Context, renewals []store.Renewal, lease time.Duration) (store.RenewResult, error) {
	return ask(f, "Renew", func() (store.RenewResult, error) { return f.Store.Renew(ctx, renewals, lease) })
}

func (f *Faulty) Settle(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	return ask(f, "Settle", func() ([]error, error) { return f.Store.Settle(ctx, settlements) })
}

func (f *Faulty) Note(ctx context.Context, notes []store.Note) ([]error, error) {
	return ask(f, "Note", func() ([]error, error) { return f.Store.Note(ctx, notes) })
}

func (f *Faulty) Upstreams(ctx context.Context, of store.UpstreamFilter) (found []store.Upstream, cursor string, err error) {
	err = f.do("Upstreams", func() error { found, cursor, err = f.Store.Upstreams(ctx, of); return err })
	return found, cursor, err
}

func (f *Faulty) ReportWorker(ctx context.Context, p store.WorkerInfo) error {
	return f.do("ReportWorker", func() error { return f.Store.ReportWorker(ctx, p) })
}

func (f *Faulty) Await(ctx context.Context, queues []string, patience time.Duration) (store.Wake, error) {
	return ask(f, "Await", func() (store.Wake, error) { return f.Store.Await(ctx, queues, patience) })
}

func (f *Faulty) Promote(ctx context.Context, limit int) (int, error) {
	return ask(f, "Promote", func() (int, error) { return f.Store.Promote(ctx, limit) })
}

func (f *Faulty) Reclaim(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	return ask(f, "Reclaim", func() ([]store.Lease, error) { return f.Store.Reclaim(ctx, c) })
}

func (f *Faulty) Expire(ctx context.Context, c store.Claim) ([]store.Lease, error) {
	return ask(f, "Expire", func() ([]store.Lease, error) { return f.Store.Expire(ctx, c) })
}

func (f *Faulty) Retry(ctx context.Context, i store.Intervention) (int, error) {
	return ask(f, "Retry", func() (int, error) { return f.Store.Retry(ctx, i) })
}

func (f *Faulty) Cancel(ctx context.Context, i store.Intervention) (holdfast.State, error) {
	return ask(f, "Cancel", func() (holdfast.State, error) { return f.Store.Cancel(ctx, i) })
}

func (f *Faulty) Edit(ctx context.Context, e store.Edit) (job holdfast.Job, err error) {
	err = f.do("Edit", func() error { job, err = f.Store.Edit(ctx, e); return err })
	return job, err
}

func (f *Faulty) Discard(ctx context.Context, i store.Intervention) error {
	return f.do("Discard", func() error { return f.Store.Discard(ctx, i) })
}

func (f *Faulty) Pause(ctx context.Context, h store.Hold) error {
	return f.do("Pause", func() error { return f.Store.Pause(ctx, h) })
}

func (f *Faulty) Resume(ctx context.Context, h store.Hold) error {
	return f.do("Resume", func() error { return f.Store.Resume(ctx, h) })
}

func (f *Faulty) Triage(ctx context.Context, t store.Triage) error {
	return f.do("Triage", func() error { return f.Store.Triage(ctx, t) })
}

func (f *Faulty) MissedDeadlines(ctx context.Context, limit int) ([]holdfast.ID, error) {
	return ask(f, "MissedDeadlines", func() ([]holdfast.ID, error) { return f.Store.MissedDeadlines(ctx, limit) })
}

func (f *Faulty) Records(ctx context.Context, namespace string) ([]store.Record, error) {
	return ask(f, "Records", func() ([]store.Record, error) { return f.Store.Records(ctx, namespace) })
}

func (f *Faulty) Apply(ctx context.Context, c store.Change) error {
	return f.do("Apply", func() error { return f.Store.Apply(ctx, c) })
}

func (f *Faulty) Redrive(ctx context.Context, r store.Redrive) ([]error, error) {
	return ask(f, "Redrive", func() ([]error, error) { return f.Store.Redrive(ctx, r) })
}

func (f *Faulty) Redriven(ctx context.Context, redrive holdfast.ID) (store.RedriveCounts, error) {
	return ask(f, "Redriven", func() (store.RedriveCounts, error) { return f.Store.Redriven(ctx, redrive) })
}

func (f *Faulty) CreateGroup(ctx context.Context, g holdfast.Group) (holdfast.Group, error) {
	return ask(f, "CreateGroup", func() (holdfast.Group, error) { return f.Store.CreateGroup(ctx, g) })
}

func (f *Faulty) SealGroup(ctx context.Context, group holdfast.ID) error {
	return f.do("SealGroup", func() error { return f.Store.SealGroup(ctx, group) })
}

func (f *Faulty) RetryGroup(ctx context.Context, i store.Intervention) (int, error) {
	return ask(f, "RetryGroup", func() (int, error) { return f.Store.RetryGroup(ctx, i) })
}

func (f *Faulty) CancelGroup(ctx context.Context, i store.Intervention) error {
	return f.do("CancelGroup", func() error { return f.Store.CancelGroup(ctx, i) })
}

func (f *Faulty) AdvanceGroups(ctx context.Context, limit int) (int, error) {
	return ask(f, "AdvanceGroups", func() (int, error) { return f.Store.AdvanceGroups(ctx, limit) })
}

func (f *Faulty) Sequence(ctx context.Context, limit int) (int, error) {
	return ask(f, "Sequence", func() (int, error) { return f.Store.Sequence(ctx, limit) })
}

func (f *Faulty) Feed(ctx context.Context, after int64, limit int) (store.Feed, error) {
	return ask(f, "Feed", func() (store.Feed, error) { return f.Store.Feed(ctx, after, limit) })
}

func (f *Faulty) Purge(ctx context.Context, p store.Purge) (store.PurgeResult, error) {
	return ask(f, "Purge", func() (store.PurgeResult, error) { return f.Store.Purge(ctx, p) })
}

func (f *Faulty) DeleteHistory(ctx context.Context, history string, older time.Duration, limit int) (int, error) {
	return ask(f, "DeleteHistory", func() (int, error) { return f.Store.DeleteHistory(ctx, history, older, limit) })
}

func (f *Faulty) Artifacts(ctx context.Context, a store.ArtifactFilter) ([]store.Artifact, error) {
	return ask(f, "Artifacts", func() ([]store.Artifact, error) { return f.Store.Artifacts(ctx, a) })
}

// In counts calls in a caller's transaction under the same names.
func (f *Faulty) In(tx any) store.Tx { return &faultyTx{f: f, to: f.Store.In(tx)} }

type faultyTx struct {
	f  *Faulty
	to store.Tx
}

func (e *faultyTx) Enqueue(ctx context.Context, drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	return ask(e.f, "Enqueue", func() ([]holdfast.Receipt, error) { return e.to.Enqueue(ctx, drafts) })
}

func (e *faultyTx) Complete(ctx context.Context, settlements []store.Settlement) ([]error, error) {
	return ask(e.f, "Complete", func() ([]error, error) { return e.to.Complete(ctx, settlements) })
}

func (e *faultyTx) Jobs(ctx context.Context, filter store.Filter) (jobs []holdfast.Job, cursor string, err error) {
	err = e.f.do("Jobs", func() (err error) {
		jobs, cursor, err = e.to.Jobs(ctx, filter)
		return err
	})
	return jobs, cursor, err
}

func (e *faultyTx) CreateGroup(ctx context.Context, g holdfast.Group) (holdfast.Group, error) {
	return ask(e.f, "CreateGroup", func() (holdfast.Group, error) { return e.to.CreateGroup(ctx, g) })
}

func (e *faultyTx) SealGroup(ctx context.Context, group holdfast.ID) error {
	return e.f.do("SealGroup", func() error { return e.to.SealGroup(ctx, group) })
}
