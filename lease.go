package holdfast

import (
	"encoding/json"
	"errors"
	"math"
	"time"
	"unicode/utf8"
)

// A Claim asks for due jobs. Every claim makes one batch; its leases are renewed together and settled one by one.
type Claim struct {
	Worker string        // who will hold the leases: unique to this process and start
	Queues []string      // from which queues; empty with Kinds: from all of them. Reclaim and Expire ignore it
	Kinds  []string      // of which kinds; empty: of all. Reclaim and Expire ignore it
	Limit  int           // at most so many jobs
	Start  int           // so many of them start at once, in order; the rest count as unstarted until a Renewal says otherwise
	Lease  time.Duration // how long until they may be reclaimed unless renewed

	// Bytes bounds how much memory the answer takes: a claim hands out no more jobs than have about so many bytes of arguments and checkpoints together,
	// and at least one. 0: no bound. Reclaim and Expire ignore it.
	Bytes int

	// OwnerSlots bounds how many jobs of one owner the caller runs at once: the claim takes at most OwnerSlots - Busy[owner] of each. Jobs without
	// an owner count as one owner. 0: no bound.
	OwnerSlots int
	Busy       map[string]int // with OwnerSlots: how many jobs of each owner the caller runs already
}

// Check refuses a claim that makes no sense, naming every problem at once. Stores call it first in Claim, Reclaim and Expire. That a claim names queues
// or kinds is checked where they count: by Claim alone.
func (c *Claim) Check() error {
	var p problems
	if c.Worker == "" {
		p.add("a claim without a worker: say who will hold the leases")
	}
	p.text("worker", c.Worker)
	if c.Limit <= 0 {
		p.add("a claim of %d jobs: ask for at least one", c.Limit)
	}
	if c.Lease < time.Microsecond || c.Lease > MaxDelay {
		p.add("a lease of %v: give a duration between a microsecond and %v", c.Lease, MaxDelay)
	}
	if c.Bytes < 0 {
		p.add("a claim of %d bytes: give a positive number, or 0 for no bound", c.Bytes)
	}
	if c.OwnerSlots < 0 {
		p.add("%d slots per owner: give a positive number, or 0 for no bound", c.OwnerSlots)
	}
	return errors.Join(p...)
}

// A Lease is a job in a worker's hands. Job.Token is the fence: it is this claim's alone.
type Lease struct {
	Job
	Batch      ID              // what is renewed
	Since      time.Time       // when this generation began: enqueued, or manually retried
	Checkpoint json.RawMessage // what an earlier attempt saved, if any
	Lost       string          // set by Reclaim: the worker that went silent while it ran the job
	Corrupt    string          // set when the row cannot be trusted: what is wrong with it. Such a job is settled, never run
}

// A Renewal extends a batch and says what has become of its jobs since.
type Renewal struct {
	Batch   ID
	Running []ID // started by now, if they were not before
	Waiting []ID // still unstarted
}

// Renewed answers renewals. Only bad news is told.
type Renewed struct {
	Lost       []ID // jobs the caller no longer holds: stop them, what they do is void
	Cancelling []ID // jobs a person asked to stop
}

// A Settlement writes down what became of an attempt. It is the only way a lease ends, and it names the lease it ends: a
// settlement whose (Batch, Job, Token) is no longer held changes nothing.
type Settlement struct {
	Batch ID
	Job   ID
	Token int

	To     State         // Complete, Failed, Cancelled, or Queued for another attempt
	Delay  time.Duration // with Queued: not before this has passed, by the store's clock
	Charge Charge
	Limit  int // the cap that Charge was judged by; kept for the audit

	// Within is a promise: with Queued, the next attempt starts within this time. Keeper.Breach finds the broken ones. 0: none.
	Within time.Duration
	// Version is of the application that ran the attempt; error groups tell versions apart by it.
	Version string
	// Queue is the job's, as its lease says: trends are told by it. Empty: of no queue in particular.
	Queue string

	Took    time.Duration   // how long the attempt ran; 0 when it never started
	Result  json.RawMessage // only with Complete
	Failure *Failure        // required with Failed; allowed with Queued and Cancelled
	Why     string
}

// A Note is what a handler says while it works. Like a settlement it counts only from the holder of the lease.
type Note struct {
	Batch ID
	Job   ID
	Token int

	Progress   *Progress       // At is set by the store
	Checkpoint json.RawMessage // a small cursor the next attempt receives; nil leaves the last one
}

// A Wake says why Await returned early. Both may be false alarms.
type Wake struct {
	Work   bool // there may be something to claim
	Cancel bool // somebody may have asked a job to stop
}

// Check refuses a note that cannot be kept, naming every problem at once. Stores call it on each before they look at the lease.
func (n *Note) Check() error {
	var p problems
	if len(n.Checkpoint) > MaxCheckpoint {
		p.add("a checkpoint of %d bytes: the limit is %d; store the data elsewhere and keep a reference", len(n.Checkpoint), MaxCheckpoint)
	}
	if n.Checkpoint != nil && !(json.Valid(n.Checkpoint) && utf8.Valid(n.Checkpoint)) {
		p.add("the checkpoint is not valid JSON")
	}
	if n.Progress != nil && (math.IsNaN(n.Progress.Percent) || math.IsInf(n.Progress.Percent, 0)) {
		p.add("progress that is not a number: give a percentage from 0 to 100")
	}
	return errors.Join(p...)
}

// Check refuses a settlement that makes no sense, before a store looks at the lease. Stores call it on each. What is in order
// costs nothing: it is on the path of every job.
func (s *Settlement) Check() error {
	var p problems
	if s.To != Complete && s.To != Failed && s.To != Cancelled && s.To != Queued {
		p.add("a settlement to %q: use complete, failed, cancelled or queued", s.To)
	}
	if s.To != Complete && len(s.Result) > 0 {
		p.add("a result with %q: only a complete job has one", s.To)
	}
	if s.To == Complete && s.Failure != nil {
		p.add("a failure with a complete job: settle it as failed or queued")
	}
	if s.To == Failed && s.Failure == nil {
		p.add("a failed job without a failure record: say what went wrong")
	}
	if s.Failure != nil && s.Failure.Code == "" {
		p.add("a failure record without a code")
	}
	switch s.Charge {
	case ChargeNothing, ChargeFailure, ChargeCrash, ChargeInterrupt:
	default:
		p.add("a charge of %.40q: use failure, crash, interrupt, or none", string(s.Charge))
	}
	if s.Limit < 0 || s.Limit > math.MaxInt32 {
		p.add("a charge against a limit of %d: give a number between 0 and %d", s.Limit, math.MaxInt32)
	}
	if s.To == Complete && s.Charge != ChargeNothing {
		p.add("a complete attempt charged as %s", s.Charge)
	}
	if s.To == Queued && s.Charge == ChargeNothing {
		p.add("an attempt that goes back to its queue must be charged: failure, crash or interrupt")
	}
	if s.Delay < 0 || s.Delay > MaxDelay {
		p.add("delay %v: give a duration between 0 and 100 years", s.Delay)
	}
	if s.Within < 0 || s.Within > MaxDelay || s.Within > 0 && s.To != Queued {
		p.add("a next attempt within %v: give it with queued, between 0 and 100 years", s.Within)
	}
	if len(s.Version) > MaxKey {
		p.add("a version of %d bytes: the limit is %d", len(s.Version), MaxKey)
	}
	if s.Took < 0 || s.Took > MaxDelay {
		p.add("an attempt that took %v", s.Took)
	}
	if len(s.Result) > MaxArgs {
		p.add("a result of %d bytes: the limit is %d; store the data elsewhere and return a reference", len(s.Result), MaxArgs)
	}
	if len(s.Result) > 0 && !(json.Valid(s.Result) && utf8.Valid(s.Result)) {
		p.add("the result is not valid JSON")
	}
	return errors.Join(p...)
}
