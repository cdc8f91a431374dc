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

// An Intervention is a person's word on one job.
type Intervention struct {
	Job    ID
	Owner  string // when set, the job must be this owner's; anybody else's is ErrNotFound
	Actor  string // who: required
	Reason string // why
	// Request is the id of the request in which it was asked for; it is kept with what was done.
	Request string
	Group   ID // with RetryGroup and CancelGroup, instead of Job
	// StuckAfter lets Retry take a job from a worker that has been at it for longer than this. 0: only past its lease.
	StuckAfter time.Duration
}

// Check refuses an intervention that does not say whose it is or cannot be shown to others, naming every problem at once. Stores call it first.
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

// An Edit changes a job that is queued: what it is about, and when and where it waits. Nil leaves a thing as it is. Its id, counts and
// story stay. Of a failed job it changes the arguments, the priority and the attempts: it stays failed until it is retried.
type Edit struct {
	Intervention
	Seen string // the Digest of the job as the editor saw it; ErrConflict when it has changed since. Empty: whatever it is now

	Patch       json.RawMessage // a JSON merge patch (RFC 7396) of the arguments
	Args        json.RawMessage // the arguments whole, instead of Patch
	Restore     time.Time       // put back what the edit or redrive at this time replaced, instead of the others. Package ops looks it up; a store refuses it
	Queue       *string
	Priority    *int16
	Tags        *[]string
	MaxAttempts *int           // 0 leaves it to the policy
	Delay       *time.Duration // start no sooner than this from now; 0: at once, also before a retry's time
}

// Check refuses an edit that makes no sense, naming every problem at once. Stores call it first.
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
		p.add("an edit that restores former values: make it with package ops, which looks them up")
	}
	if e.Patch != nil && e.Args != nil {
		p.add("a patch and whole arguments: give one of them")
	}
	if e.Args != nil && !(json.Valid(e.Args) && utf8.Valid(e.Args) && len(e.Args) <= MaxArgs) {
		p.add("arguments that are not valid JSON of at most %d bytes", MaxArgs)
	}
	as := Draft{Kind: "any"} // what may stand in a draft may stand in an edit
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

// Presence is a worker process as it last reported.
type Presence struct {
	Worker string   `json:"worker"`
	Queues []string `json:"queues"`
	Kinds  []string `json:"kinds"`
	// Depends says for kinds what they call. The store remembers it: holds on a dependency act on jobs of these kinds that do
	// not name another.
	Depends   map[string]string `json:"depends,omitempty"`
	Version   string            `json:"version,omitempty"` // of the application
	Slots     int               `json:"slots"`
	Codes     string            `json:"codes,omitempty"`  // names the record of room "code" with its own failure codes; empty: it has none
	Policy    int               `json:"policy,omitempty"` // version of the applied policy that it follows; 0: none
	Misses    string            `json:"misses,omitempty"` // what of the applied policy it does not follow or know, and why; empty: it follows all of it
	StartedAt time.Time         `json:"started_at"`       // set by the store at the first report
	SeenAt    time.Time         `json:"seen_at"`          // set by the store
	Until     time.Time         `json:"until"`            // set by the store: believed gone after this
	For       time.Duration     `json:"-"`                // how long to believe this report; 0: it is leaving
}

// Check refuses a report that makes no sense, naming every problem at once. Stores call it first.
func (r *Presence) Check() error {
	var p problems
	if r.Worker == "" {
		p.add("a report without a worker: give the name of the process")
	}
	p.text("worker", r.Worker)
	if r.For < 0 || r.For > MaxDelay {
		p.add("a report for %v: give a duration between 0 and 100 years", r.For)
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

// A Filter narrows a list. Empty fields do not narrow.
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
	Redrive     ID  // taken by this redrive
	Group       ID  // member of this group
	OlderThan   time.Duration
	YoungerThan time.Duration
	DeadLetters bool   // failed, not discarded and not benign
	Benign      *bool  // true: failed as was to be expected; false: failed otherwise
	Retrying    bool   // queued, and failed before in this generation
	Worker      string // in this worker's hands
	// Look bounds what is looked at where no index leads to what is wanted: a page may be short then, or empty, and its cursor goes on from
	// where looking stopped. 0: as long as it takes.
	Look   int
	Limit  int    // at most 200; 50 when zero
	Cursor string // from the page before
}

// History is everything a store can prove about one job, oldest first. Package ops folds it into the story.
type History struct {
	Job      Job       `json:"job"`
	Attempts []Attempt `json:"attempts"` // every attempt that ended other than by completing, and late ones
	Events   []Event   `json:"events"`
}

// A Count is how many jobs of one queue and kind stand in one state.
type Count struct {
	Queue  string    `json:"queue"`
	Kind   string    `json:"kind"`
	State  State     `json:"state"`
	Due    bool      `json:"due"` // queued and claimable, but for holds
	Jobs   int       `json:"jobs"`
	Oldest time.Time `json:"oldest,omitzero"` // creation time of the oldest
}

// A Finding is one broken promise.
type Finding struct {
	Rule   string `json:"rule"` // which promise
	Job    string `json:"job"`  // which row: a job's id, or what else names it
	Detail string `json:"detail"`
}
