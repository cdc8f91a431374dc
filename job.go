package holdfast

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// A State is the state of a job. A job that waits for a start time, a retry or the end of a hold is queued.
type State string

const (
	Queued     State = "queued"     // waits for a worker, a start time, a retry or the end of a hold
	Processing State = "processing" // a worker holds a lease on it
	Complete   State = "complete"   // ended with success
	Failed     State = "failed"     // failed for good; a dead letter unless it is discarded or benign. A manual retry starts a new generation
	Cancelled  State = "cancelled"  // cancelled by a person, with its group, or because a member that it waited for did not complete
)

// Terminal reports whether a job in this state has ended, in its current generation.
func (s State) Terminal() bool { return s == Complete || s == Failed || s == Cancelled }

// A Job is everything a store knows about one job.
type Job struct {
	// Facts. They are set at enqueue; only Edit and Redrive change them.

	ID             ID              `json:"id"`
	Kind           string          `json:"kind"`
	Queue          string          `json:"queue"`
	Args           json.RawMessage `json:"args"`
	Priority       int16           `json:"priority"`
	Owner          string          `json:"owner,omitempty"`
	Tags           []string        `json:"tags,omitempty"`
	Dependency     string          `json:"dependency,omitempty"` // what the job calls: from the draft, or else declared by a worker for the kind
	Group          ID              `json:"group,omitzero"`
	After          []ID            `json:"after,omitempty"` // jobs that must end before it starts: members of its group, or the first of its line; set by Job and History, not in lists and leases
	Step           string          `json:"step,omitempty"`  // its name within its group; not set in leases
	When           []Condition     `json:"when,omitempty"`  // how these must end, in the order of After; none if all must complete
	RetryWithin    time.Duration   `json:"retry_within,omitempty"`
	MaxAttempts    int             `json:"max_attempts,omitempty"`
	UniqueKey      string          `json:"unique_key,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
	Order          string          `json:"order,omitempty"`      // order key; not set in leases
	OrderHold      bool            `json:"order_hold,omitempty"` // as a dead letter it holds its line; not set in leases
	Trace          string          `json:"trace,omitempty"`      // traceparent of the caller that enqueued it
	CreatedAt      time.Time       `json:"created_at"`
	RunAt          time.Time       `json:"run_at,omitzero"`    // the requested start time, if there was one
	ExpireAt       time.Time       `json:"expire_at,omitzero"` // no attempt starts after this time

	// State and counters.

	State   State     `json:"state"`
	Waiting bool      `json:"waiting,omitempty"` // while queued: waits for other jobs to end: members of its group, or those before it in the line of its order key
	DueAt   time.Time `json:"due_at,omitzero"`   // while queued: no attempt starts before this time
	// Token is the fencing token. It grows by one with every claim and never falls.
	Token int `json:"token"`
	// Failures counts the failed attempts of this generation. MaxAttempts limits it.
	Failures int `json:"failures"`
	// Crashes counts the attempts of this generation whose worker was lost. It has a limit of its own.
	Crashes int `json:"crashes"`
	// Releases counts the attempts of this generation that were released at no cost: shutdown, snooze, hold.
	Releases int `json:"releases"`
	// Generation starts at 1 and grows with each manual retry, which also resets the counters above except Token.
	Generation int `json:"generation"`

	// While processing.

	Worker      string    `json:"worker,omitempty"`       // holds the lease; on an ended job: the worker that ended it
	LeaseUntil  time.Time `json:"lease_until,omitzero"`   // the lease expires then unless it is renewed, and the job may be reclaimed
	StartedAt   time.Time `json:"started_at,omitzero"`    // of the running attempt, or else of the last one
	Cancelling  bool      `json:"cancelling,omitempty"`   // a person requested cancellation and the worker has not settled the attempt yet
	Progress    *Progress `json:"progress,omitempty"`     // last reported by the handler
	LastFailure *Failure  `json:"last_failure,omitempty"` // of this generation; nil once complete

	// When ended.

	FinishedAt time.Time       `json:"finished_at,omitzero"`
	Result     json.RawMessage `json:"result,omitempty"`    // only when complete
	Discarded  bool            `json:"discarded,omitempty"` // failed, and not a dead letter: discarded by a person, or benign
	Upstream   ID              `json:"upstream,omitzero"`   // cancelled because of how this member, for which it waited, ended
	Skipped    bool            `json:"skipped,omitempty"`   // cancelled and not needed: it waited for an outcome that did not come, such as the failure of a member that is complete

	AsOf time.Time `json:"as_of"` // the store's clock when the job was read
}

// Digest returns a hash of the job's facts and state. Two reads of a job have the same digest if nothing changed in
// between. Lease, progress, After and When are left out: the first two change by themselves while a worker runs the job, and
// lists lack the others.
func (j Job) Digest() string {
	j.AsOf, j.LeaseUntil, j.Progress, j.After, j.When = time.Time{}, time.Time{}, nil, nil, nil
	for _, at := range []*time.Time{&j.CreatedAt, &j.RunAt, &j.ExpireAt, &j.DueAt, &j.StartedAt, &j.FinishedAt} {
		*at = at.UTC()
	}
	text, err := json.Marshal(j)
	if err != nil { // the arguments are not JSON: the job is damaged, and its digest must still be its own
		text = fmt.Appendf(nil, "%v %v %q", j.ID, j.Token, j.Args)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// Progress is what a handler reports about a running attempt.
type Progress struct {
	Percent float64   `json:"percent"` // 0 to 100
	Note    string    `json:"note,omitempty"`
	At      time.Time `json:"at"`
}

// A Failure is the record of one failed attempt. Message is for users, Detail for engineers. Package failure has removed
// secrets and paths from both and limited their length.
type Failure struct {
	Code        string            `json:"code"`
	Category    string            `json:"category"`
	Message     string            `json:"message"`
	Detail      string            `json:"detail,omitempty"`
	Context     map[string]string `json:"context,omitempty"` // http_status, exit_code, proxy, worker, ...
	Dependency  string            `json:"dependency,omitempty"`
	Fingerprint string            `json:"fingerprint,omitempty"` // equal for failures with the same cause; empty: belongs to no error group
	Benign      bool              `json:"benign,omitempty"`      // expected: raises no alert, and a job that it ends is not a dead letter
}

// Attempt returns the number of the running attempt, or else of the last one, counted from 1 in each generation; 0 before the
// first. It differs from Token, which also grows when a job is reclaimed and never starts again at 1.
func (j *Job) Attempt() int {
	n := j.Failures + j.Crashes + j.Releases
	if j.State == Processing || j.State == Complete {
		n++
	}
	return n
}
