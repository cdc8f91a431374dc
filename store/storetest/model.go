package storetest

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// Where a job is.
type place uint8

const (
	ready place = iota
	later
	waiting // for other members of its group
	leased
	finished
)

// A record is everything that the model knows of one job. Facts and counters are in the job itself; view computes the rest.
type record struct {
	holdfast.Job
	uniqueDone bool
	place      place
	aside      bool      // it is ready, but a claim may have set it aside behind a held tag; promotion brings it back
	due        time.Time // zero if it was claimable from the beginning
	batch      holdfast.ID
	started    bool
	callerTx   bool                 // enqueued by a caller's transaction: a claim may not know of it for a moment
	expiry     bool                 // has ExpireAt, and Expire has not seen it ended
	waits      []holdfast.Condition // for which members, and how they must end
	seq        int                  // place in the line of its order key
	inLine     bool

	state      holdfast.State // if finished
	startedAt  time.Time
	finishedAt time.Time
	endedBy    string
	result     []byte
	discarded  bool

	cancel     bool
	since      time.Time
	checkpoint []byte
	progress   *holdfast.Progress

	attempts []store.Attempt
	late     []store.Attempt
	events   []store.Event
}

// A batchLease is the lease of one batch.
type batchLease struct {
	worker, lost       string
	claimedAt, expires time.Time
}

func (s *batchLease) attemptWorker() string { return cmp.Or(s.lost, s.worker) }

type uniqueKey struct{ owner, kind, key string }

type onceKey struct{ owner, key string }

type once struct {
	draft holdfast.Draft
	job   holdfast.ID
}

// A model implements the contract of a store in memory, without concurrency. It adopts ids and choices of the store where the contract leaves them
// open.
type model struct {
	now    time.Time
	jobs   map[holdfast.ID]*record
	leases map[holdfast.ID]*batchLease
	unique map[uniqueKey]holdfast.ID
	once   map[onceKey]once

	lastSeq       int               // the last place that a line has given out
	kinds         map[string]string // declared dependencies of kinds
	holds         map[holdName]*held
	records       map[recordName]store.Record
	redriven      map[redriveOf]*redriven
	groups        map[holdfast.ID]*groupRecord
	completing    holdfast.ID                         // the group of the member that is being completed and enqueues jobs
	storeStates   map[holdfast.ID]holdfast.GroupState // the states that the store returned
	storeCauses   map[holdfast.ID]holdfast.ID         // because of which member the store ended one that waited
	continuations []holdfast.Draft                    // continuations of settled groups; the store chooses their ids
	errors        map[string]*errorGroup
	trends        map[trendOf]*store.Trend
	deadlines     map[deadline]int // start deadlines, with the token at that time
	stories       map[string][]store.Event
	ambiguous     map[string]bool // subjects for which several stories are correct
}

func newModel(now time.Time) *model {
	return &model{
		now: now, jobs: map[holdfast.ID]*record{}, leases: map[holdfast.ID]*batchLease{},
		unique: map[uniqueKey]holdfast.ID{}, once: map[onceKey]once{}, kinds: map[string]string{}, holds: map[holdName]*held{},
		records: map[recordName]store.Record{}, redriven: map[redriveOf]*redriven{}, groups: map[holdfast.ID]*groupRecord{}, errors: map[string]*errorGroup{}, trends: map[trendOf]*store.Trend{},
		deadlines: map[deadline]int{}, stories: map[string][]store.Event{}, ambiguous: map[string]bool{},
	}
}

// enqueue adds the drafts, all or none. Each draft has its id.
func (m *model) enqueue(drafts []holdfast.Draft) ([]holdfast.Receipt, error) {
	undo := *m
	m.jobs, m.unique, m.once = maps.Clone(m.jobs), maps.Clone(m.unique), maps.Clone(m.once)
	receipts := make([]holdfast.Receipt, 0, len(drafts))
	for _, d := range drafts {
		receipt, err := m.admit(d)
		if err != nil {
			*m = undo
			return nil, err
		}
		receipts = append(receipts, receipt)
	}
	return receipts, nil
}

func (m *model) admit(d holdfast.Draft) (holdfast.Receipt, error) {
	if err := d.Prepare(); err != nil {
		return holdfast.Receipt{}, holdfast.ErrInvalid
	}
	id, key := d.ID, onceKey{d.Owner, d.IdempotencyKey}
	facts := d
	facts.ID = holdfast.ID{}
	if seen, ok := m.once[key]; ok && key.key != "" {
		if !sameDraft(seen.draft, facts) {
			return holdfast.Receipt{}, refuse(holdfast.ErrConflict, seen.job, textKeyUsed, key.key, seen.job)
		}
		return holdfast.Receipt{ID: seen.job, Existing: true}, nil
	}
	holder, taken := m.unique[uniqueKey{d.Owner, d.Kind, d.UniqueKey}]
	receipt := holdfast.Receipt{ID: id}
	if taken && d.UniqueKey != "" && !m.follows(d, holder) {
		receipt = holdfast.Receipt{ID: holder, Existing: true, Replaced: m.replace(d, holder)}
	} else if _, used := m.jobs[id]; used {
		return holdfast.Receipt{}, refuseJob(id, textExists)
	} else if err := m.join(d); err != nil {
		return holdfast.Receipt{}, err
	} else {
		if taken && d.UniqueKey != "" {
			m.passKey(holder, id)
		}
		m.insert(d)
	}
	if key.key != "" {
		m.once[key] = once{facts, receipt.ID}
	}
	return receipt, nil
}

func (m *model) insert(d holdfast.Draft) {
	r := &record{uniqueDone: d.UniqueDone, Job: holdfast.Job{
		ID: d.ID, Kind: d.Kind, Queue: d.Queue, Args: d.Args, Priority: d.Priority, Owner: d.Owner, Tags: d.Tags,
		MaxAttempts: d.MaxAttempts, UniqueKey: d.UniqueKey, IdempotencyKey: d.IdempotencyKey, Order: d.Order, OrderHold: d.OrderHold, CreatedAt: m.now,
		ExpireAt: d.ExpireAt, Generation: 1, Dependency: d.Dependency, RetryWithin: d.RetryWithin, Group: d.Group, Trace: d.Trace,
	}, waits: waitsOf(d)}
	due := d.RunAt
	if d.Delay > 0 {
		due = m.now.Add(d.Delay)
	}
	if due.After(m.now) {
		r.place, r.due, r.RunAt = later, due, due
	}
	if len(r.waits) > 0 {
		r.place = waiting
	}
	if d.ExpireIn > 0 {
		r.ExpireAt = m.now.Add(d.ExpireIn)
	}
	r.expiry = !r.ExpireAt.IsZero()
	if d.UniqueKey != "" {
		m.unique[uniqueKey{d.Owner, d.Kind, d.UniqueKey}] = d.ID
	}
	m.jobs[d.ID] = r
	if d.Order != "" {
		r.place = waiting
		m.joinLine(r)
	}
}

func sameDraft(a, b holdfast.Draft) bool {
	return a.Kind == b.Kind && a.Queue == b.Queue && string(a.Args) == string(b.Args) && a.Priority == b.Priority &&
		slices.Equal(a.Tags, b.Tags) && a.Delay == b.Delay && a.RunAt.Equal(b.RunAt) && a.ExpireIn == b.ExpireIn &&
		a.ExpireAt.Equal(b.ExpireAt) && a.MaxAttempts == b.MaxAttempts && a.UniqueKey == b.UniqueKey && a.UniqueDone == b.UniqueDone &&
		a.Dependency == b.Dependency && a.RetryWithin == b.RetryWithin && a.Group == b.Group && slices.Equal(a.After, b.After) && a.AfterAll == b.AfterAll && slices.Equal(a.When, b.When) &&
		reflect.DeepEqual(a.Replace, b.Replace) && a.Order == b.Order && a.OrderHold == b.OrderHold
}

// where returns the jobs in a place that satisfy a condition, in claim order.
func (m *model) where(p place, ok func(*record) bool) []*record {
	var found []*record
	for _, r := range m.jobs {
		if r.place == p && ok(r) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, inOrder)
	return found
}

// inOrder is the claim order: priority, then age.
func inOrder(a, b *record) int {
	return cmp.Or(cmp.Compare(a.Priority, b.Priority), slices.Compare(a.ID[:], b.ID[:]))
}

// expirable returns the jobs that Expire must take, and clears the expiry of ended jobs.
func (m *model) expirable() []*record {
	var found []*record
	for _, r := range m.jobs {
		if !r.expiry || r.ExpireAt.After(m.now) || r.place == leased {
			continue
		}
		if r.place == finished {
			r.expiry = false
			continue
		}
		found = append(found, r)
	}
	return found
}

// take puts jobs into a new batch. A start below zero starts none, whatever their counters.
func (m *model) take(c store.Claim, jobs []*record, batch holdfast.ID) {
	if len(jobs) == 0 {
		return
	}
	m.leases[batch] = &batchLease{worker: c.Worker, claimedAt: m.now, expires: m.now.Add(c.Lease)}
	for i, r := range jobs {
		r.started = c.Start >= 0 && (i < c.Start || r.Releases > 0 || r.Crashes > 0)
		r.place, r.batch, r.aside = leased, batch, false
		r.Token++
	}
}

// leave removes a job from its batch, which ends with its last member.
func (m *model) leave(r *record) {
	batch := r.batch
	r.batch, r.started = holdfast.ID{}, false
	for _, other := range m.jobs {
		if other.batch == batch {
			return
		}
	}
	delete(m.leases, batch)
}

// lease is what a claim returns for one job.
func (m *model) lease(r *record) store.Lease {
	since := r.CreatedAt
	if !r.since.IsZero() {
		since = r.since
	}
	job := m.view(r)
	job.Dependency, job.Order, job.OrderHold = r.Dependency, "", false
	return store.Lease{Job: job, Batch: r.batch, Since: since, Checkpoint: r.checkpoint, Lost: m.leases[r.batch].lost}
}

// view is the job as the store shows it.
func (m *model) view(r *record) holdfast.Job {
	j := r.Job
	j.AsOf, j.Progress, j.Dependency = m.now, r.progress, m.dependency(r)
	switch r.place {
	case ready, later, waiting:
		j.State, j.DueAt, j.Waiting = holdfast.Queued, r.due, r.place == waiting
		if r.due.IsZero() {
			j.DueAt = r.CreatedAt
		}
	case leased:
		s := m.leases[r.batch]
		j.State, j.Worker, j.LeaseUntil, j.Cancelling = holdfast.Processing, s.worker, s.expires, r.cancel
		if r.started {
			j.StartedAt = s.claimedAt
		}
	case finished:
		j.State, j.Worker, j.StartedAt, j.FinishedAt = r.state, r.endedBy, r.startedAt, r.finishedAt
		j.Result, j.Discarded = r.result, r.discarded
	}
	if j.State != holdfast.Complete {
		j.LastFailure = r.lastFailure()
	}
	return j
}

func (r *record) lastFailure() *holdfast.Failure {
	for _, a := range slices.Backward(r.attempts) {
		if a.Generation == r.Generation && a.Failure != nil {
			return a.Failure
		}
	}
	return nil
}
