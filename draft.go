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

// Limits on what a draft may carry. They are checked before anything is written.
const (
	MaxArgs  = 1 << 20 // bytes of arguments, and of a result
	MaxName  = 128     // bytes of a kind or queue name
	MaxKey   = 255     // bytes of an owner, a tag, a unique or idempotency key
	MaxTags  = 32
	MaxAfter = 1000 // members that one waits for
	MaxDelay = 100 * 365 * 24 * time.Hour

	MaxReason     = 1000     // bytes of the reason of an intervention
	MaxCheckpoint = 64 << 10 // bytes of a checkpoint

	DefaultQueue = "default"
)

// Args are the typed arguments of one kind of job: a value that marshals to JSON and knows its kind's name.
type Args interface{ Kind() string }

// A Draft is a job somebody wants done, before a store has acknowledged it. Only Kind is required.
type Draft struct {
	ID       ID              `json:"id,omitzero"`        // names the job; made by Prepare when zero
	Kind     string          `json:"kind"`               // which handler runs it
	Queue    string          `json:"queue,omitempty"`    // where it waits; DefaultQueue when empty
	Args     json.RawMessage `json:"args,omitempty"`     // any JSON value, kept to the letter; null when empty
	Priority int16           `json:"priority,omitempty"` // a lower number is claimed first; 0 is ordinary
	Owner    string          `json:"owner,omitempty"`    // whose job it is; keys below are scoped to the owner
	Tags     []string        `json:"tags,omitempty"`

	// Group makes the job a member of a group that has not been sealed.
	Group ID `json:"group,omitzero"`
	// After names members of the same group that must have ended before this one starts: jobs that exist, or earlier drafts of the
	// same call. When one of them fails or is cancelled, this job is cancelled too, unless AfterAll: then it starts once all have
	// ended, however they did. Retrying the group sends round what failed and all that was cancelled because of it.
	After    []ID `json:"after,omitempty"`
	AfterAll bool `json:"after_all,omitempty"`

	// Dependency names what the job calls, when its kind alone does not say it: a host, a printer, a bucket. Breakers, limits and
	// other holds on a dependency act on it. Empty: what the kind's worker declared.
	Dependency string `json:"dependency,omitempty"`

	Delay    time.Duration `json:"delay,omitempty"`     // start no sooner than this from now, by the store's clock
	RunAt    time.Time     `json:"run_at,omitzero"`     // or no sooner than this instant; at most one of the two
	ExpireIn time.Duration `json:"expire_in,omitempty"` // an attempt that could not start within this time is not started: the job fails as expired
	ExpireAt time.Time     `json:"expire_at,omitzero"`  // or by this instant; at most one of the two

	// RetryWithin is a promise to the job's owner: after a failed attempt the next one starts within this time. Breaking it
	// fails nothing; it is recorded in the job's story. 0 leaves it to the policy.
	RetryWithin time.Duration `json:"retry_within,omitempty"`

	// MaxAttempts overrides the policy's count of failures after which the job has failed for good; 0 leaves it to the policy.
	MaxAttempts int `json:"max_attempts,omitempty"`

	// UniqueKey admits one job per (owner, kind, key). The key is held from enqueue until the job ends, through every
	// retry, release and reclaim, so none of those can conflict. A second draft is answered with the job that holds the
	// key (Receipt.Existing). The key is freed in the same transaction in which the job completes, fails or is cancelled.
	// A manual retry takes it again, and is refused with ErrConflict naming the holder when somebody else has it.
	UniqueKey string `json:"unique_key,omitempty"`
	// UniqueDone keeps the key after success too: a complete twin is returned instead of a new job.
	UniqueDone bool `json:"unique_done,omitempty"`

	// IdempotencyKey makes Enqueue safe to repeat: the same key with the same draft is answered with the same job, however
	// it has ended since; with another draft it is refused with ErrConflict. Scoped to the owner.
	IdempotencyKey string `json:"idempotency_key,omitempty"`

	// Trace is the W3C traceparent of whoever enqueues: attempts are linked to it. Empty: none.
	Trace string `json:"trace,omitempty"`

	proven json.RawMessage // the arguments as NewDraft wrote them
}

// A Receipt acknowledges a draft: the job is durable, here or as its twin.
type Receipt struct {
	ID       ID   // the job
	Existing bool // the draft met a twin (unique or idempotency key): nothing was added
}

// NewDraft makes the draft of typed arguments. What else the job needs is set on the draft.
func NewDraft(args Args) (Draft, error) {
	body, err := json.Marshal(args)
	if err != nil {
		return Draft{}, &Error{Kind: ErrInvalid, Message: fmt.Sprintf("the arguments of %q cannot be written as JSON: %v", args.Kind(), err), Cause: err}
	}
	return Draft{Kind: args.Kind(), Args: body, proven: body}, nil
}

// Enqueue hands one typed job to a store, or to the caller's own transaction: Enqueue(ctx, store.In(tx), args). It returns
// after the job is durable (with a transaction: once that commits). Options change the draft before it is checked.
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

// Prepare fills in what was left to default and refuses what cannot be stored, naming every problem at once. Stores call
// it on each draft before they write the first. Names that are Holdfast's own (Draft.Reserved) are refused.
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
			p.add("an empty tag: leave it out")
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
		p.add("max attempts %d: give a positive number, or 0 for the policy's", d.MaxAttempts)
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
		p.add("%d jobs to wait for: the limit is %d; let them be a group of their own, and wait for what continues it", len(d.After), MaxAfter)
	}
	for i, id := range d.After {
		if id == d.ID || id.IsZero() || slices.Contains(d.After[:i], id) {
			p.add("waiting for %v: name each of the others once", id)
		}
	}
}

// marshalled reports whether the arguments are still the ones that NewDraft wrote: then they are JSON without a second look.
func (d *Draft) marshalled() bool {
	return len(d.Args) > 0 && len(d.Args) == len(d.proven) && &d.Args[0] == &d.proven[0]
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

// problems gathers what is wrong. What is in order costs nothing, because drafts and settlements come by the thousand.
type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, &Error{Kind: ErrInvalid, Message: fmt.Sprintf(format, args...)})
}

// name admits names that are safe in a URL, a metric label, a file name and a terminal.
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

// actor admits who intervenes and why: a name that is there, and a line of text.
func (p *problems) actor(actor, reason string) {
	if actor == "" {
		p.add("no actor is named: say who intervenes")
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

// plainText reports whether a text is short enough and plain.
func plainText(text string, limit int) bool { return len(text) <= limit && PlainText(text) }

// PlainText reports whether a text is UTF-8 without characters that act instead of being shown: control characters (C0, C1), the ends of lines and paragraphs, and
// those that turn the order of letters round. Owners, tags, keys and names that people read in terminals and on pages must be so.
func PlainText(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' || c == 0x7f {
			return false
		} else if c >= utf8.RuneSelf {
			return utf8.ValidString(text) && !strings.ContainsFunc(text[i:], acts)
		}
	}
	return true
}

func acts(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
