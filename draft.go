package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of a draft. Draft.Prepare checks them before anything is written.
const (
	MaxArgs  = 1 << 20 // bytes of the arguments, and of a result
	MaxName  = 128     // bytes of a kind, queue or dependency name
	MaxKey   = 255     // bytes of an owner, a tag, a unique key or an idempotency key
	MaxTags  = 32
	MaxAfter = 1000 // jobs in Draft.After
	MaxDelay = 100 * 365 * 24 * time.Hour

	MaxReason     = 1000     // bytes of the reason of an intervention
	MaxCheckpoint = 64 << 10 // bytes of a checkpoint

	DefaultQueue = "default"
)

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

	// IdempotencyKey makes Enqueue safe to repeat. Enqueueing the same draft with the same key returns the same job, even
	// after it has ended. A different draft with the same key is refused with ErrConflict. Keys are scoped to the owner.
	IdempotencyKey string `json:"idempotency_key,omitempty"`

	// Trace is the W3C traceparent of the caller; spans of attempts are linked to it. Empty: none.
	Trace string `json:"trace,omitempty"`

	fromNewDraft json.RawMessage // the arguments as NewDraft marshalled them; see marshalled
}

// A Receipt acknowledges a draft. The job that it names is durable.
type Receipt struct {
	ID       ID   // of the new job, or of the existing one
	Existing bool // a job with the same unique or idempotency key existed; nothing was added
}

// NewDraft returns a draft with the kind and the marshalled arguments. The caller sets the other fields. An error wraps
// ErrInvalid: the arguments cannot be marshalled to JSON.
func NewDraft(args Args) (Draft, error) {
	body, err := json.Marshal(args)
	if err != nil {
		return Draft{}, &Error{Kind: ErrInvalid, Message: fmt.Sprintf("the arguments of %q cannot be marshalled to JSON: %v", args.Kind(), err), Cause: err}
	}
	return Draft{Kind: args.Kind(), Args: body, fromNewDraft: body}, nil
}

// Enqueue stores one job. It returns after the job is durable. With store.In(tx) as the destination the job becomes part of
// the caller's transaction and exists if and when that commits:
// Enqueue(ctx, store.In(tx), args). Options change the draft before it is validated. Errors are those of Enqueuer.Enqueue.
func Enqueue(ctx context.Context, to Enqueuer, args Args, options ...func(*Draft)) (Receipt, error) {
	draft, err := NewDraft(args)
	if err != nil {
		return Receipt{}, err
	}
	for _, option := range options {
		option(&draft)
	}
	receipts, err := to.Enqueue(ctx, []Draft{draft})
	if err != nil {
		return Receipt{}, err
	}
	return receipts[0], nil
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
	var p problems
	p.name("kind", d.Kind)
	p.name("queue", d.Queue)
	d.checkArgs(&p)
	if d.Delay != 0 || d.ExpireIn != 0 || !d.RunAt.IsZero() || !d.ExpireAt.IsZero() {
		d.checkTimes(&p)
	}
	if len(d.Tags) > MaxTags {
		p.add("%d tags: the limit is %d", len(d.Tags), MaxTags)
	}
	for _, tag := range d.Tags {
		p.text("tag", tag)
		if tag == "" {
			p.add("empty tag: remove it")
		}
	}
	if d.Dependency != "" {
		p.name("dependency", d.Dependency)
	}
	p.text("owner", d.Owner)
	p.text("unique key", d.UniqueKey)
	p.text("idempotency key", d.IdempotencyKey)
	p.text("trace", d.Trace)
	if d.MaxAttempts < 0 || d.MaxAttempts > math.MaxInt32 {
		p.add("max attempts %d: give a positive number, or 0 to leave it to the policy", d.MaxAttempts)
	}
	d.checkAfter(&p)
	if d.RetryWithin < 0 || d.RetryWithin > MaxDelay {
		p.add("retry within %v: give a duration between 0 and 100 years", d.RetryWithin)
	}
	return errors.Join(p...)
}

func (d *Draft) checkArgs(p *problems) {
	switch {
	case len(d.Args) > MaxArgs:
		p.add("arguments of %d bytes: the limit is %d; store the data elsewhere and pass a reference", len(d.Args), MaxArgs)
	case !d.marshalled() && !json.Valid(d.Args):
		p.add("arguments are not valid JSON")
	case !utf8.Valid(d.Args):
		p.add("arguments are not valid UTF-8")
	}
}

func (d *Draft) checkAfter(p *problems) {
	if len(d.After) == 0 {
		return
	}
	if d.Group.IsZero() {
		p.add("a job that waits for others without a group: name the group they all belong to")
	}
	if len(d.After) > MaxAfter {
		p.add("%d jobs to wait for: the limit is %d; put them into a group of their own and make this job its continuation", len(d.After), MaxAfter)
	}
	for i, id := range d.After {
		if id == d.ID || id.IsZero() || slices.Contains(d.After[:i], id) {
			p.add("waiting for %v: name each other member once", id)
		}
	}
}

// marshalled reports whether Args is still the slice that NewDraft marshalled. Such arguments are valid JSON and need no
// second check.
func (d *Draft) marshalled() bool {
	return len(d.Args) > 0 && len(d.Args) == len(d.fromNewDraft) && &d.Args[0] == &d.fromNewDraft[0]
}

func (d *Draft) checkTimes(p *problems) {
	now := time.Now()
	if d.Delay != 0 && !d.RunAt.IsZero() {
		p.add("both a delay and a run time: give one")
	}
	if d.ExpireIn != 0 && !d.ExpireAt.IsZero() {
		p.add("both an expiry delay and an expiry time: give one")
	}
	if d.Delay < 0 || d.Delay > MaxDelay {
		p.add("delay %v: give a duration between 0 and 100 years", d.Delay)
	}
	if d.ExpireIn < 0 || d.ExpireIn > MaxDelay {
		p.add("expiry %v: give a duration between 0 and 100 years", d.ExpireIn)
	}
	if !d.RunAt.IsZero() && d.RunAt.Sub(now).Abs() > MaxDelay {
		p.add("run time %v: give an instant within 100 years", d.RunAt)
	}
	if !d.ExpireAt.IsZero() && d.ExpireAt.Sub(now).Abs() > MaxDelay {
		p.add("expiry time %v: give an instant within 100 years", d.ExpireAt)
	}
}

// problems collects validation errors. A valid value allocates nothing, because drafts and settlements are checked by the
// thousand.
type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, &Error{Kind: ErrInvalid, Message: fmt.Sprintf(format, args...)})
}

// name accepts names that are safe in a URL, a metric label, a file name and a terminal.
func (p *problems) name(what, name string) {
	ok := name != "" && len(name) <= MaxName
	for i := 0; i < len(name) && ok; i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' || c == ':' || c == '/'
	}
	if !ok {
		p.add("%s %.140q: use 1 to %d letters, digits and _ - . : /", what, name, MaxName)
	}
}

const noActor = "no actor: name the person or program that makes the change"

// actor checks the actor and the reason of an intervention. The actor is required.
func (p *problems) actor(actor, reason string) {
	if actor == "" {
		p.add(noActor)
	}
	p.text("actor", actor)
	if !plainText(reason, MaxReason) {
		p.add("reason %.60q: use at most %d bytes of UTF-8 without control characters", reason, MaxReason)
	}
}

func (p *problems) text(what, text string) {
	if !plainText(text, MaxKey) {
		p.add("%s %.60q: use at most %d bytes of UTF-8 without control characters", what, text, MaxKey)
	}
}

// plainText reports whether text has at most limit bytes and is PlainText.
func plainText(text string, limit int) bool { return len(text) <= limit && PlainText(text) }

// PlainText reports whether text is valid UTF-8 without characters that control output instead of being shown: control characters
// (C0, C1), line and paragraph separators, and bidirectional controls. Owners, tags, keys and names must be plain text, because
// people read them in terminals and on pages.
func PlainText(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c == 0x7f {
			return false
		} else if c >= utf8.RuneSelf {
			return utf8.ValidString(text) && !strings.ContainsFunc(text[i:], controlsOutput)
		}
	}
	return true
}

func controlsOutput(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
