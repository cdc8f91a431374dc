package store

import (
	"encoding/json"
	"math"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

// A Claim asks for due jobs. The jobs of one claim form a batch: their leases are renewed together and settled one by one.
type Claim struct {
	Worker string        // name of the worker, unique for this process and start
	Queues []string      // queues to claim from; empty with Kinds: all queues. Reclaim and Expire ignore it
	Kinds  []string      // kinds to claim; empty: all kinds. Reclaim and Expire ignore it
	Limit  int           // maximum number of jobs
	Start  int           // how many of them start at once, in order; the others count as unstarted until a Renewal lists them as running
	Lease  time.Duration // lease duration: a job may be reclaimed unless the lease is renewed within this time

	// Bytes limits the size of the answer: a claim stops after about this many bytes of arguments and checkpoints, and
	// takes at least one job. 0: no limit. Reclaim and Expire ignore it.
	Bytes int

	// OwnerSlots limits how many jobs of one owner the caller runs at once: the claim takes at most OwnerSlots -
	// Busy[owner] of each owner. Jobs without an owner count as one owner. 0: no limit.
	OwnerSlots int
	Busy       map[string]int // with OwnerSlots: number of jobs of each owner that the caller already runs
}

// Check validates the claim. The error wraps ErrInvalid and names every problem. Stores call it first in Claim, Reclaim and
// Expire. Check does not require queues or kinds, because Reclaim and Expire need none; Claim checks that itself.
func (c *Claim) Check() error {
	var p check.Problems
	if c.Worker == "" {
		p.Add("a claim without a worker: give the worker's name")
	}
	p.Text("worker", c.Worker)
	if c.Limit <= 0 {
		p.Add("a claim of %d jobs: ask for at least one", c.Limit)
	}
	if c.Lease < time.Microsecond || c.Lease > check.MaxDelay {
		p.Add("a lease of %v: give a duration between a microsecond and %v", c.Lease, check.MaxDelay)
	}
	if c.Bytes < 0 {
		p.Add("a claim of %d bytes: give a positive number, or 0 for no limit", c.Bytes)
	}
	if c.OwnerSlots < 0 {
		p.Add("%d slots per owner: give a positive number, or 0 for no limit", c.OwnerSlots)
	}
	return p.Err(invalid)
}

// A Lease is a worker's right to run one job. Job.Token is the fencing token of this claim; no other claim has the same.
type Lease struct {
	holdfast.Job
	Batch      holdfast.ID     // the batch to renew
	Since      time.Time       // when this generation began: at enqueue or at the last manual retry
	Checkpoint json.RawMessage // saved by an earlier attempt, if any
	Lost       string          // set by Reclaim: the worker that stopped renewing while it ran the job
	Corrupt    string          // set when the stored row is damaged: what is wrong with it. Such a job must be settled and not run
}

// A Renewal extends the leases of a batch and says which of its jobs run by now.
type Renewal struct {
	Batch   holdfast.ID
	Running []holdfast.ID // jobs that have started since the claim
	Waiting []holdfast.ID // jobs that have not started
}

// Renewed is the answer to renewals. It lists only jobs that need action.
type RenewResult struct {
	Lost       []holdfast.ID // jobs whose lease is lost: stop them, their results will not be applied
	Cancelling []holdfast.ID // jobs that a person asked to cancel
}

// A Settlement reports the result of an attempt and ends its lease. A lease that is not settled ends only when the job is
// reclaimed after the lease has expired, or when a person retries the job because it is stuck. A settlement whose (Batch,
// Job, Token) is no longer held changes nothing.
type Settlement struct {
	Batch holdfast.ID
	Job   holdfast.ID
	Token int

	To     holdfast.State // Complete, Failed, Cancelled, or Queued for another attempt
	Delay  time.Duration  // with Queued: the next attempt starts at the earliest after this time, by the store's clock
	Charge Charge
	Limit  int // the limit that Charge was compared with; kept for the integrity check

	// StartWithin, with Queued, asks for the next attempt to start within this time. Maintainer.MissedDeadlines finds late starts. 0: no such time.
	StartWithin time.Duration
	// Version of the application that ran the attempt. Error groups use it to distinguish versions.
	Version string
	// Queue of the job, as in its lease. Trends count attempts by it. Empty: counted without a queue.
	Queue string

	// Confirm, with Complete, asks whether a caller's transaction has applied this settlement (Tx.Complete). The settlement is not
	// applied now: while the lease is held, the answer is ErrConflict. If that transaction has not ended, the answer waits for it.
	Confirm bool

	// Enqueue, with Complete, lists jobs to enqueue in the transaction that completes the job: they exist if and only if this
	// settlement is applied, and once. They may be members of the job's own group, even if that is sealed, since it cannot have
	// settled while the job runs. If a pending cancellation overrules the settlement, they are not enqueued. If one of them is
	// refused, the settlement is refused with ErrInvalid. At most 1000, with at most 8 MiB of arguments.
	Enqueue []holdfast.Draft

	Took    time.Duration     // run time of the attempt; 0 when it never started
	Result  json.RawMessage   // only with Complete
	Failure *holdfast.Failure // required with Failed; allowed with Queued and Cancelled
	Why     string
}

// A Note reports progress or saves a checkpoint while a handler runs. Like a settlement it applies only while the lease is held.
type Note struct {
	Batch holdfast.ID
	Job   holdfast.ID
	Token int

	Progress   *holdfast.Progress // At is set by the store
	Checkpoint json.RawMessage    // state for the next attempt to continue from; nil keeps the last one
}

// An UpstreamFilter selects members for which a leased job waited (Claimer.Upstreams).
type UpstreamFilter struct {
	Batch holdfast.ID `json:"batch"`
	Job   holdfast.ID `json:"job"`
	Token int         `json:"token"`

	Step   string `json:"step,omitempty"` // only the member with this step name; all when empty
	Cursor string `json:"cursor,omitempty"`
}

// An Upstream is a member of a group for which another member waited.
type Upstream struct {
	Job     holdfast.ID     `json:"job"`
	Kind    string          `json:"kind"`
	Step    string          `json:"step,omitempty"`
	State   holdfast.State  `json:"state,omitempty"`   // complete, failed or cancelled; empty: it was retried since, and has not ended again
	Skipped bool            `json:"skipped,omitempty"` // cancelled because it was not needed
	Code    string          `json:"code,omitempty"`    // why it failed
	Result  json.RawMessage `json:"result,omitempty"`  // of a complete job, if it has one
}

// A Wake says why Await returned before its timeout. Both fields are hints and may be wrong.
type Wake struct {
	Work   bool // there may be jobs to claim
	Cancel bool // a person may have asked to cancel a job
}

// Check validates the note. The error wraps ErrInvalid and names every problem. Stores call it before they check the lease.
func (n *Note) Check() error {
	var p check.Problems
	if len(n.Checkpoint) > check.MaxCheckpoint {
		p.Add("a checkpoint of %d bytes: the limit is %d; store the data elsewhere and keep a reference", len(n.Checkpoint), check.MaxCheckpoint)
	}
	if n.Checkpoint != nil && !(check.ValidJSON(n.Checkpoint) && utf8.Valid(n.Checkpoint)) {
		p.Add("the checkpoint is not valid JSON")
	}
	if n.Progress != nil && (math.IsNaN(n.Progress.Percent) || math.IsInf(n.Progress.Percent, 0)) {
		p.Add("progress that is not a number: give a percentage from 0 to 100")
	}
	return p.Err(invalid)
}

// Check validates the settlement. The error wraps ErrInvalid and names every problem. Stores call it on each settlement
// before they check the lease. A valid settlement causes no allocation, because every job passes through here.
func (s *Settlement) Check() error {
	var p check.Problems
	if s.To != holdfast.Complete && s.To != holdfast.Failed && s.To != holdfast.Cancelled && s.To != holdfast.Queued {
		p.Add("a settlement to %q: use complete, failed, cancelled or queued", s.To)
	}
	if s.To != holdfast.Complete && len(s.Result) > 0 {
		p.Add("a result with %q: only a complete job has one", s.To)
	}
	if s.To != holdfast.Complete && s.Confirm {
		p.Add("a settlement to %q that asks for a confirmation: only completing a job in a transaction can be confirmed", s.To)
	}
	if len(s.Enqueue) > 0 {
		s.checkEnqueue(&p)
	}
	if s.To == holdfast.Complete && s.Failure != nil {
		p.Add("a failure with a complete job: settle it as failed or queued")
	}
	if s.To == holdfast.Failed && s.Failure == nil {
		p.Add("a failed job without a failure record: add the failure")
	}
	if s.Failure != nil && s.Failure.Code == "" {
		p.Add("a failure record without a code: add the code")
	}
	switch s.Charge {
	case ChargeNone, ChargeFailure, ChargeCrash, ChargeRelease:
	default:
		p.Add("a charge of %.40q: use failure, crash, release, or none", string(s.Charge))
	}
	if s.Limit < 0 || s.Limit > math.MaxInt32 {
		p.Add("a charge against a limit of %d: give a number between 0 and %d", s.Limit, math.MaxInt32)
	}
	if s.To == holdfast.Complete && s.Charge != ChargeNone {
		p.Add("a complete attempt charged as %s: a completed attempt has no charge", s.Charge)
	}
	if s.To == holdfast.Queued && s.Charge == ChargeNone {
		p.Add("an attempt that returns its job to the queue must be charged: use failure, crash or release")
	}
	if s.Delay < 0 || s.Delay > check.MaxDelay {
		p.Add("delay %v: give a duration between 0 and 100 years", s.Delay)
	}
	if s.StartWithin < 0 || s.StartWithin > check.MaxDelay || s.StartWithin > 0 && s.To != holdfast.Queued {
		p.Add("a next attempt within %v: only with queued, and between 0 and 100 years", s.StartWithin)
	}
	if len(s.Version) > check.MaxKey {
		p.Add("a version of %d bytes: the limit is %d", len(s.Version), check.MaxKey)
	}
	if s.Took < 0 || s.Took > check.MaxDelay {
		p.Add("an attempt that took %v: give a duration between 0 and 100 years", s.Took)
	}
	if len(s.Result) > check.MaxArgs {
		p.Add("a result of %d bytes: the limit is %d; store the data elsewhere and return a reference", len(s.Result), check.MaxArgs)
	}
	if len(s.Result) > 0 && !(check.ValidJSON(s.Result) && utf8.Valid(s.Result)) {
		p.Add("the result is not valid JSON")
	}
	return p.Err(invalid)
}

// checkEnqueue checks the drafts of a settlement, without changing them.
func (s *Settlement) checkEnqueue(p *check.Problems) {
	if s.To != holdfast.Complete {
		p.Add("jobs to enqueue with %q: only a complete job enqueues others", s.To)
	}
	if s.Confirm {
		p.Add("jobs to enqueue with a settlement that asks for a confirmation: leave them out")
	}
	if len(s.Enqueue) > check.MaxThen {
		p.Add("%d jobs to enqueue: the limit is %d; enqueue one job that enqueues the others", len(s.Enqueue), check.MaxThen)
		return
	}
	bytes := 0
	for i := range s.Enqueue {
		draft := s.Enqueue[i]
		bytes += len(draft.Args)
		if err := draft.Prepare(); err != nil {
			p.Add("job %d of %d to enqueue: %v", i+1, len(s.Enqueue), err)
		}
	}
	if bytes > check.MaxThenBytes {
		p.Add("jobs to enqueue with %d bytes of arguments: the limit is %d; store the data elsewhere and pass references", bytes, check.MaxThenBytes)
	}
}
