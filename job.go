package holdfast

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// A State is where a job stands. A job that waits for its time, for a retry or behind a hold is queued: nothing runs.
type State string

const (
	Queued     State = "queued"     // waits: for a worker, its time, a retry, or the end of a hold
	Processing State = "processing" // a worker holds it under a lease
	Complete   State = "complete"   // ended well
	Failed     State = "failed"     // ended badly, for good unless a person intervenes: a dead letter
	Cancelled  State = "cancelled"  // ended by a person
)

// Terminal reports whether the job has ended in its present generation.
func (s State) Terminal() bool { return s == Complete || s == Failed || s == Cancelled }

// A Job is what a store knows of one piece of work. Its facts never change after enqueue; its standing does.
type Job struct {
	// Facts.
	ID             ID              `json:"id"`
	Kind           string          `json:"kind"`
	Queue          string          `json:"queue"`
	Args           json.RawMessage `json:"args"`
	Priority       int16           `json:"priority"`
	Owner          string          `json:"owner,omitempty"`
	Tags           []string        `json:"tags,omitempty"`
	Dependency     string          `json:"dependency,omitempty"` // what it calls: its own word, or else what its kind's worker declared
	Group          ID              `json:"group,omitzero"`
	After          []ID            `json:"after,omitempty"` // members of its group that end before it starts; said by Job and History, not by lists and leases
	RetryWithin    time.Duration   `json:"retry_within,omitempty"`
	MaxAttempts    int             `json:"max_attempts,omitempty"`
	UniqueKey      string          `json:"unique_key,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
	Trace          string          `json:"trace,omitempty"` // the traceparent of whoever enqueued it
	CreatedAt      time.Time       `json:"created_at"`
	RunAt          time.Time       `json:"run_at,omitzero"`    // when it was scheduled for, if it was
	ExpireAt       time.Time       `json:"expire_at,omitzero"` // no attempt starts after this

	// Standing.
	State   State     `json:"state"`
	Waiting bool      `json:"waiting,omitempty"` // while queued: for members of its group that have not ended
	DueAt   time.Time `json:"due_at,omitzero"`   // while queued: no attempt starts before this
	// Token grows by one at every claim and is never lowered: it is the fence.
	Token int `json:"token"`
	// Failures counts failed attempts of this generation; it is what MaxAttempts limits.
	Failures int `json:"failures"`
	// Crashes counts workers lost while they ran the job in this generation; it has a cap of its own.
	Crashes int `json:"crashes"`
	// Interrupts counts attempts that were handed back through no fault of the job: shutdown, snooze, hold. Free.
	Interrupts int `json:"interrupts"`
	// Generation starts at 1 and grows with each manual retry, which also starts the counts above (not Token) afresh.
	Generation int `json:"generation"`

	// While processing.
	Worker      string    `json:"worker,omitempty"`       // who holds it; on an ended job, who ended it
	LeaseUntil  time.Time `json:"lease_until,omitzero"`   // when it may be reclaimed unless renewed
	StartedAt   time.Time `json:"started_at,omitzero"`    // of the attempt that runs, or of the last one that ran
	Cancelling  bool      `json:"cancelling,omitempty"`   // a person asked it to stop, and its worker has not answered yet
	Progress    *Progress `json:"progress,omitempty"`     // what the handler said last
	LastFailure *Failure  `json:"last_failure,omitempty"` // of this generation; nil once complete

	// When ended.
	FinishedAt time.Time       `json:"finished_at,omitzero"`
	Result     json.RawMessage `json:"result,omitempty"`    // only when complete
	Discarded  bool            `json:"discarded,omitempty"` // failed, and no dead letter: discarded by a person, or benign
	Upstream   ID              `json:"upstream,omitzero"`   // when cancelled because this member, for which it waited, did not complete

	AsOf time.Time `json:"as_of"` // the store's clock when it said all this
}

// Digest tells whether a job is still as somebody saw it: it changes with its facts and with its standing. What moves by itself while
// a worker is at it (lease, progress) does not count.
func (j Job) Digest() string {
	j.AsOf, j.LeaseUntil, j.Progress, j.After = time.Time{}, time.Time{}, nil, nil
	for _, at := range []*time.Time{&j.CreatedAt, &j.RunAt, &j.ExpireAt, &j.DueAt, &j.StartedAt, &j.FinishedAt} {
		*at = at.UTC()
	}
	text, err := json.Marshal(j)
	if err != nil { // arguments that are no JSON: such a job is damaged, and like no other
		text = fmt.Appendf(nil, "%v %v %q", j.ID, j.Token, j.Args)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// Progress is what a handler says about an attempt under way.
type Progress struct {
	Percent float64   `json:"percent"` // 0 to 100
	Note    string    `json:"note,omitempty"`
	At      time.Time `json:"at"`
}

// A Failure is the record of one failed attempt: one code, one story. Message is for people; Detail is for engineers. Both
// are scrubbed of secrets and paths and capped before they get here.
type Failure struct {
	Code        string            `json:"code"`
	Category    string            `json:"category"`
	Message     string            `json:"message"`
	Detail      string            `json:"detail,omitempty"`
	Context     map[string]string `json:"context,omitempty"` // http_status, exit_code, proxy, worker, ...
	Dependency  string            `json:"dependency,omitempty"`
	Fingerprint string            `json:"fingerprint,omitempty"` // equal for failures that are one and the same trouble
	Benign      bool              `json:"benign,omitempty"`      // expected: recorded and no more. A job that it ends is no dead letter
}

// Attempt is the number of the attempt that runs, or of the last one that ran, counting from 1 in each generation; 0 before the first. It is
// not Token, which also grows when a lost worker's job is taken over.
func (j *Job) Attempt() int {
	n := j.Failures + j.Crashes + j.Interrupts
	if j.State == Processing || j.State == Complete {
		n++
	}
	return n
}

// A Charge says which count an attempt that did not complete adds to.
type Charge string

const (
	ChargeNothing   Charge = ""          // completion, cancellation, expiry
	ChargeFailure   Charge = "failure"   // the attempt failed
	ChargeCrash     Charge = "crash"     // its worker was lost
	ChargeInterrupt Charge = "interrupt" // handed back, free
)

// An Attempt is one finished span in a worker's hands, as the story tells it. A completed attempt is proven by its job's
// row; every other one has a row of its own.
type Attempt struct {
	Job        ID        `json:"job"`
	Token      int       `json:"token"`
	Generation int       `json:"generation"`
	Worker     string    `json:"worker"`
	StartedAt  time.Time `json:"started_at"`
	EndedAt    time.Time `json:"ended_at"`
	To         State     `json:"to"` // what the job became
	Charge     Charge    `json:"charge,omitempty"`
	DueAt      time.Time `json:"due_at,omitzero"` // when queued again: the next start
	Failure    *Failure  `json:"failure,omitempty"`
	Why        string    `json:"why,omitempty"`   // which rule classified it, which policy chose the delay
	Said       State     `json:"said,omitempty"`  // what its settlement said, when a request to cancel overruled it
	Late       bool      `json:"late,omitempty"`  // arrived after the lease was lost: evidence, never applied
	Limit      int       `json:"limit,omitempty"` // the cap the charge was counted against
	Count      int       `json:"count,omitempty"` // the count after this attempt: failures or crashes

	// Repeats is how many released attempts right before this one it stands for: of a job that is released over and over the store keeps the first
	// hundred attempts of a generation one by one, and of each run of releases after that the last. Since is when the first of them ended.
	Repeats int       `json:"repeats,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}
