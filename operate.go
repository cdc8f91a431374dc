package holdfast

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// An Intervention names the job that a person changes, the person and the reason.
type Intervention struct {
	Job    ID
	Owner  string // when set, a job of another owner is ErrNotFound
	Actor  string // the person or program; required
	Reason string // free text; required by Discard
	// Request is the id of the HTTP request, if there is one. It is recorded with the change.
	Request string
	Group   ID // with RetryGroup and CancelGroup, instead of Job
	// StuckAfter lets Retry take a job from a worker that has run it for longer than this. 0: only after its lease has expired.
	StuckAfter time.Duration
}

// Check validates the intervention. The error wraps ErrInvalid and names every problem. Stores call it first.
func (i *Intervention) Check() error {
	var p problems
	i.check(&p)
	return errors.Join(p...)
}

func (i *Intervention) check(p *problems) {
	p.actor(i.Actor, i.Reason)
	p.text("owner", i.Owner)
	p.text("request", i.Request)
	if i.StuckAfter < 0 {
		p.add("stuck after %v: give a duration that is not negative", i.StuckAfter)
	}
}

// An Edit changes a queued job: its arguments, and when and where it waits. Nil fields stay as they are. Id, counters and story
// stay too. On a failed job an edit may change arguments, priority and attempts; the job stays failed until it is retried.
type Edit struct {
	Intervention
	Seen string // Digest of the job as the editor saw it: ErrConflict if it has changed since. Empty: do not compare

	Patch       json.RawMessage // a JSON merge patch (RFC 7396) of the arguments
	Args        json.RawMessage // new arguments, instead of Patch
	Restore     time.Time       // restore the values that the edit or redrive at this time replaced, instead of the other fields. Package ops looks them up; a store refuses it
	Queue       *string
	Priority    *int16
	Tags        *[]string
	MaxAttempts *int           // 0 leaves it to the policy
	Delay       *time.Duration // start at the earliest after this time; 0: now, even before the time of a retry
}

// Check validates the edit. The error wraps ErrInvalid and names every problem. Stores call it first.
func (e *Edit) Check() error {
	var p problems
	e.Intervention.check(&p)
	if e.Patch == nil && e.Args == nil && e.Queue == nil && e.Priority == nil && e.Tags == nil && e.MaxAttempts == nil && e.Delay == nil {
		p.add("an edit that changes nothing: give a patch, queue, priority, tags, max attempts or delay")
	}
	if e.Patch != nil && !(json.Valid(e.Patch) && utf8.Valid(e.Patch) && len(e.Patch) <= MaxArgs) {
		p.add("a patch of the arguments that is not valid JSON of at most %d bytes", MaxArgs)
	}
	if !e.Restore.IsZero() {
		p.add("an edit that restores former values: use package ops, which looks them up")
	}
	if e.Patch != nil && e.Args != nil {
		p.add("both a patch and new arguments: give one of them")
	}
	if e.Args != nil && !(json.Valid(e.Args) && utf8.Valid(e.Args) && len(e.Args) <= MaxArgs) {
		p.add("arguments that are not valid JSON of at most %d bytes", MaxArgs)
	}
	as := Draft{Kind: "any"} // the limits of a draft apply to an edit
	if e.Queue != nil {
		p.name("queue", *e.Queue)
		if err := (&Draft{Queue: *e.Queue}).Reserved(); err != nil {
			p = append(p, err)
		}
	}
	if e.Tags != nil {
		as.Tags = *e.Tags
	}
	if e.MaxAttempts != nil {
		as.MaxAttempts = *e.MaxAttempts
	}
	if e.Delay != nil {
		as.Delay = *e.Delay
	}
	if err := as.Prepare(); err != nil {
		p = append(p, err)
	}
	return errors.Join(p...)
}

// A Presence describes a worker process, as it last reported itself.
type Presence struct {
	Worker string   `json:"worker"`
	Queues []string `json:"queues"`
	Kinds  []string `json:"kinds"`
	// Depends gives the dependency of each kind. The store keeps it: holds on a dependency apply to jobs of these kinds
	// that name no dependency themselves.
	Depends   map[string]string `json:"depends,omitempty"`
	Version   string            `json:"version,omitempty"` // of the application
	Slots     int               `json:"slots"`
	Codes     string            `json:"codes,omitempty"`  // name of the record in room "code" that holds the worker's own failure codes; empty: it has none
	Policy    int               `json:"policy,omitempty"` // version of the applied policy that it uses; 0: none
	Misses    string            `json:"misses,omitempty"` // parts of the applied policy that it does not apply, and why; empty: it applies all of it
	StartedAt time.Time         `json:"started_at"`       // set by the store at the first report
	SeenAt    time.Time         `json:"seen_at"`          // set by the store
	Until     time.Time         `json:"until"`            // set by the store: considered gone after this time
	For       time.Duration     `json:"-"`                // how long the report is valid; 0: the worker is stopping
}

// Check validates the report. The error wraps ErrInvalid and names every problem. Stores call it first.
func (r *Presence) Check() error {
	var p problems
	if r.Worker == "" {
		p.add("a worker report without a worker: give the worker's name")
	}
	p.text("worker", r.Worker)
	if r.For < 0 || r.For > MaxDelay {
		p.add("a worker report valid for %v: give a duration between 0 and 100 years", r.For)
	}
	if r.Slots < 0 || r.Slots > math.MaxInt32 {
		p.add("%d slots: give a number between 0 and %d", r.Slots, math.MaxInt32)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Depends)) {
		p.name("kind", kind)
		p.name("dependency", r.Depends[kind])
	}
	return errors.Join(p...)
}

// A Filter selects jobs. Zero fields match everything.
type Filter struct {
	State       State
	Kind        string
	Queue       string
	Owner       string
	Tag         string
	Code        string // of the last failure
	Fingerprint string // of the last failure
	Dependency  string
	Generation  int // 0: any
	Redrive     ID  // retried or discarded by this redrive
	Group       ID  // member of this group
	OlderThan   time.Duration
	YoungerThan time.Duration
	DeadLetters bool   // failed, not discarded and not benign
	Benign      *bool  // true: failed with a benign failure; false: failed with another
	Retrying    bool   // queued, and has failed before in this generation
	Worker      string // leased to this worker
	// Look limits how many jobs the store examines when no index leads to the matches. A page may then be short or empty, and its
	// cursor continues where the search stopped. 0: no limit.
	Look   int
	Limit  int    // page size: at most 200; 50 when zero
	Cursor string // from the previous page
}

// History is everything a store has recorded about one job, oldest first. Package ops builds the story from it.
type History struct {
	Job      Job       `json:"job"`
	Attempts []Attempt `json:"attempts"` // attempts that ended other than by completing, and late ones
	Events   []Event   `json:"events"`
}

// A Count is the number of jobs of one queue and kind in one state.
type Count struct {
	Queue  string    `json:"queue"`
	Kind   string    `json:"kind"`
	State  State     `json:"state"`
	Due    bool      `json:"due"` // queued and due; a hold may still keep it from being claimed
	Jobs   int       `json:"jobs"`
	Oldest time.Time `json:"oldest,omitzero"` // creation time of the oldest job
}

// A Finding is one violated invariant that the integrity check found.
type Finding struct {
	Rule   string `json:"rule"` // name of the invariant
	Job    string `json:"job"`  // the row: a job's id, or another name
	Detail string `json:"detail"`
}
