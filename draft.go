package holdfast

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast/internal/check"
)

// DefaultQueue is the queue of a draft that names none.
const DefaultQueue = "default"

// Args are the typed arguments of a job: a value that marshals to JSON and names its kind.
type Args interface{ Kind() string }

// A Draft describes a job before it is stored. Only Kind is required.
type Draft struct {
	ID       ID              `json:"id,omitzero"`        // id of the job; Prepare makes one when zero
	Kind     string          `json:"kind"`               // selects the handler
	Queue    string          `json:"queue,omitempty"`    // DefaultQueue when empty
	Args     json.RawMessage `json:"args,omitempty"`     // any JSON value, stored byte for byte; null when empty
	Priority int16           `json:"priority,omitempty"` // lower numbers are claimed first; 0 is normal
	Owner    string          `json:"owner,omitempty"`    // whom the job belongs to; unique and idempotency keys are scoped to it
	Tags     []string        `json:"tags,omitempty"`

	// Group makes the job a member of this group, which must not be sealed.
	Group ID `json:"group,omitzero"`
	// After lists members of the same group that must end before this job starts: existing jobs, or earlier drafts of the same
	// call. When one of them fails or is cancelled, this job is cancelled too, unless AfterAll is set: then it starts after all
	// of them have ended, with any outcome. A retry of the group retries the failed members and those that were cancelled because
	// of them.
	After    []ID `json:"after,omitempty"`
	AfterAll bool `json:"after_all,omitempty"`
	// When lists members that must end before this job starts, each with the outcome that it must have. They are waited for in
	// addition to those of After. When one of the outcomes cannot come any more, this job never runs; see Condition.
	When []Condition `json:"when,omitempty"`
	// Step names the job within its group, so that members that wait for it can ask for its result by this name. Each name is used
	// once in a group. Optional.
	Step string `json:"step,omitempty"`

	// Dependency names what the job calls, if that differs from what the worker declared for its kind: a host, a printer, a
	// bucket. Breakers, limits and other holds on this dependency apply to the job. When empty, the kind's dependency applies.
	Dependency string `json:"dependency,omitempty"`

	Delay    time.Duration `json:"delay,omitempty"`     // start at the earliest after this time, by the store's clock
	RunAt    time.Time     `json:"run_at,omitzero"`     // start at the earliest at this time; not together with Delay
	ExpireIn time.Duration `json:"expire_in,omitempty"` // no attempt starts after this time: the job fails with JOB_EXPIRED instead
	ExpireAt time.Time     `json:"expire_at,omitzero"`  // the same as a point in time; not together with ExpireIn

	// RetryWithin asks for the next attempt to start within this time after a failed one. The backoff is shortened to meet it.
	// A late start does not fail the job; it is recorded in the job's story. 0 leaves it to the policy.
	RetryWithin time.Duration `json:"retry_within,omitempty"`

	// MaxAttempts is the number of failed attempts after which the job has failed for good. 0 leaves it to the policy.
	MaxAttempts int `json:"max_attempts,omitempty"`

	// UniqueKey admits one unfinished job for each (owner, kind, key). The job has the key from enqueue until it ends,
	// through every retry, release and reclaim, so none of these can conflict. Enqueueing a second draft with the key
	// returns the job that has it (Receipt.Existing). The key is freed in the transaction in which the job completes, fails
	// or is cancelled. A manual retry takes the key again; it fails with ErrConflict, naming the other job, if another job
	// has it by then.
	UniqueKey string `json:"unique_key,omitempty"`
	// UniqueDone keeps the key after the job completes: enqueueing returns the complete job instead of adding a new one.
	UniqueDone bool `json:"unique_done,omitempty"`
	// Replace lets the draft replace the content of the job that has its unique key, until that job is claimed. Nil: the job stays as it is.
	Replace *Replace `json:"replace,omitempty"`

	// Order lets jobs of one owner with the same order key run one at a time, in the order in which they were enqueued, whatever their kinds and queues. The others
	// wait while the first one runs or waits for its time or a retry. When it has completed or was cancelled, the next one starts. A manual retry or redrive of a
	// dead letter puts it at the end of the line, unless it holds the line. Not together with Group.
	Order string `json:"order,omitempty"`
	// OrderHold lets this job hold the line if it fails for good: the jobs behind it wait until the dead letter is retried and completes, or is discarded or
	// purged. Without it they continue.
	OrderHold bool `json:"order_hold,omitempty"`

	// IdempotencyKey makes Enqueue safe to repeat. Enqueueing the same draft with the same key returns the same job, even
	// after it has ended. A different draft with the same key is refused with ErrConflict. Keys are scoped to the owner.
	IdempotencyKey string `json:"idempotency_key,omitempty"`

	// Trace is the W3C traceparent of the caller; spans of attempts are linked to it. Empty: none.
	Trace string `json:"trace,omitempty"`

	fromNewDraft json.RawMessage // the arguments as NewDraft marshalled them; see marshalled
}

// A Condition is what a member of a group waits for: the end of another member, with an outcome.
//
// When the other member has ended otherwise, the condition cannot hold, and the waiting member never runs. If it waited for a success
// (OnComplete), it is cancelled because of the other member. If it waited for a failure or a cancellation, or for a member that was
// skipped, it is skipped: it was not needed, and the outcome of the group does not depend on it. It is decided once: a later retry of
// the other member does not change it; a manual retry of the whole group decides again.
type Condition struct {
	Job  ID      `json:"job,omitzero"`   // the other member: an existing job, or an earlier draft of the same call
	Step string  `json:"step,omitempty"` // or its step name
	On   Outcome `json:"on,omitempty"`   // complete when empty
}

// An Outcome is how a member must end for a Condition.
type Outcome string

const (
	OnComplete  Outcome = "complete"
	OnFailed    Outcome = "failed"    // failed for good
	OnCancelled Outcome = "cancelled" // cancelled by a person, with its group, or because of another member; not skipped
	OnEnded     Outcome = "ended"     // any end, also skipped
)

// A Receipt acknowledges a draft. The job that it names is durable.
type Receipt struct {
	ID       ID   // of the new job, or of the existing one
	Existing bool // a job with the same unique or idempotency key existed; nothing was added
	Replaced bool // the existing job has the content of the draft now; see Draft.Replace
}

// NewDraft returns a draft with the kind and the marshalled arguments. The caller sets the other fields. An error wraps
// ErrInvalid: the arguments cannot be marshalled to JSON.
func NewDraft(args Args) (Draft, error) {
	body, err := json.Marshal(args)
	if err != nil {
		return Draft{}, &Error{Err: ErrInvalid, Message: fmt.Sprintf("the arguments of %q cannot be marshalled to JSON: %v", args.Kind(), err), Cause: err}
	}
	return Draft{Kind: args.Kind(), Args: body, fromNewDraft: body}, nil
}

// Prepare sets defaults and validates the draft. The error wraps ErrInvalid and names every problem. Stores call Prepare on each
// draft before they write the first. Names that are reserved for Holdfast are refused; see Reserved.
func (d *Draft) Prepare() error {
	if err := d.Reserved(); err != nil {
		return err
	}
	return d.prepare()
}

func (d *Draft) prepare() error {
	if d.ID.IsZero() {
		d.ID = NewID()
	}
	if d.Queue == "" {
		d.Queue = DefaultQueue
	}
	if len(d.Args) == 0 {
		d.Args = json.RawMessage("null")
	}
	var p check.Problems
	p.Name("kind", d.Kind)
	p.Name("queue", d.Queue)
	d.checkArgs(&p)
	if d.Delay != 0 || d.ExpireIn != 0 || !d.RunAt.IsZero() || !d.ExpireAt.IsZero() {
		d.checkTimes(&p)
	}
	if len(d.Tags) > check.MaxTags {
		p.Add("%d tags: the limit is %d", len(d.Tags), check.MaxTags)
	}
	for _, tag := range d.Tags {
		p.Text("tag", tag)
		if tag == "" {
			p.Add("empty tag: remove it")
		}
	}
	if d.Dependency != "" {
		p.Name("dependency", d.Dependency)
	}
	p.Text("owner", d.Owner)
	p.Text("unique key", d.UniqueKey)
	p.Text("idempotency key", d.IdempotencyKey)
	p.Text("trace", d.Trace)
	if d.MaxAttempts < 0 || d.MaxAttempts > math.MaxInt32 {
		p.Add("max attempts %d: give a positive number, or 0 to leave it to the policy", d.MaxAttempts)
	}
	d.checkAfter(&p)
	d.checkReplace(&p)
	d.checkStep(&p)
	p.Text("order key", d.Order)
	if d.Order != "" && !d.Group.IsZero() {
		p.Add("a member of a group with an order key: leave one of them out")
	}
	if d.Order == "" && d.OrderHold {
		p.Add("a job that holds its line without an order key: give the key")
	}
	if d.RetryWithin < 0 || d.RetryWithin > check.MaxDelay {
		p.Add("retry within %v: give a duration between 0 and 100 years", d.RetryWithin)
	}
	return p.Err(invalid)
}

func (d *Draft) checkArgs(p *check.Problems) {
	switch {
	case len(d.Args) > check.MaxArgs:
		p.Add("arguments of %d bytes: the limit is %d; store the data elsewhere and pass a reference", len(d.Args), check.MaxArgs)
	case !d.marshalled() && !check.ValidJSON(d.Args):
		p.Add("arguments are not valid JSON")
	case !utf8.Valid(d.Args):
		p.Add("arguments are not valid UTF-8")
	}
}

func (d *Draft) checkAfter(p *check.Problems) {
	if len(d.After)+len(d.When) == 0 {
		return
	}
	if d.Group.IsZero() {
		p.Add("a job that waits for others without a group: name the group they all belong to")
	}
	if n := len(d.After) + len(d.When); n > check.MaxAfter {
		p.Add("%d jobs to wait for: the limit is %d; put them into a group of their own and make this job its continuation", n, check.MaxAfter)
	}
	for i, id := range d.After {
		if id == d.ID || id.IsZero() || slices.Contains(d.After[:i], id) {
			p.Add("waiting for %v: name each other member once", id)
		}
	}
	for i, c := range d.When {
		d.checkCondition(p, i, c)
	}
}

func (d *Draft) checkCondition(p *check.Problems, i int, c Condition) {
	switch c.On {
	case "", OnComplete, OnFailed, OnCancelled, OnEnded:
	default:
		p.Add("a condition on %.40q: use complete, failed, cancelled or ended, or leave it empty for complete", string(c.On))
	}
	switch {
	case c.Job.IsZero() == (c.Step == ""):
		p.Add("condition %d: name the member by its job or by its step", i+1)
	case c.Step != "":
		p.Name("step", c.Step)
	}
	again := func(other Condition) bool { return other.Job == c.Job && other.Step == c.Step }
	if !c.Job.IsZero() && (c.Job == d.ID || slices.Contains(d.After, c.Job)) || c.Step != "" && c.Step == d.Step || slices.ContainsFunc(d.When[:i], again) {
		p.Add("waiting for %v%s: name each other member once", orEmpty(c.Job), c.Step)
	}
}

// orEmpty returns an id as text, and the zero id as nothing.
func orEmpty(id ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

func (d *Draft) checkStep(p *check.Problems) {
	if d.Step == "" {
		return
	}
	p.Name("step", d.Step)
	if d.Group.IsZero() {
		p.Add("a step %.140q without a group: name the group of which the job is a member, or leave the step out", d.Step)
	}
}

// marshalled reports whether Args is still the slice that NewDraft marshalled. Such arguments are valid JSON and need no
// second check.
func (d *Draft) marshalled() bool {
	return len(d.Args) > 0 && len(d.Args) == len(d.fromNewDraft) && &d.Args[0] == &d.fromNewDraft[0]
}

func (d *Draft) checkTimes(p *check.Problems) {
	now := time.Now()
	if d.Delay != 0 && !d.RunAt.IsZero() {
		p.Add("both a delay and a run time: give one")
	}
	if d.ExpireIn != 0 && !d.ExpireAt.IsZero() {
		p.Add("both an expiry delay and an expiry time: give one")
	}
	if d.Delay < 0 || d.Delay > check.MaxDelay {
		p.Add("delay %v: give a duration between 0 and 100 years", d.Delay)
	}
	if d.ExpireIn < 0 || d.ExpireIn > check.MaxDelay {
		p.Add("expiry %v: give a duration between 0 and 100 years", d.ExpireIn)
	}
	if !d.RunAt.IsZero() && d.RunAt.Sub(now).Abs() > check.MaxDelay {
		p.Add("run time %v: give an instant within 100 years", d.RunAt)
	}
	if !d.ExpireAt.IsZero() && d.ExpireAt.Sub(now).Abs() > check.MaxDelay {
		p.Add("expiry time %v: give an instant within 100 years", d.ExpireAt)
	}
}
