package holdfast

import (
	"errors"
	"time"
)

// Forever keeps what a rule is about.
const Forever time.Duration = -1

// A Retain says how long ended jobs are kept. Empty fields match everything.
type Retain struct {
	Name  string        `json:"name"` // of the rule: tombstones and counts say it
	State State         `json:"state,omitempty"`
	Kind  string        `json:"kind,omitempty"`
	Owner string        `json:"owner,omitempty"`
	Code  string        `json:"code,omitempty"`  // of the failure it ended with
	Group GroupState    `json:"group,omitempty"` // the outcome of the group it belongs to
	For   time.Duration `json:"for"`             // after its end; Forever (-1) keeps it, 0 purges it at once
}

// Matches reports whether the rule is about a job that ended so.
func (r *Retain) Matches(t Tombstone) bool {
	return (r.State == "" || r.State == t.State) && (r.Kind == "" || r.Kind == t.Kind) && (r.Owner == "" || r.Owner == t.Owner) &&
		(r.Code == "" || r.Code == t.Code) && (r.Group == "" || r.Group == t.GroupState)
}

// A Purge is one step of retention: it looks at up to Scan ended jobs, in the order of their ids, and deletes those whose time is up.
type Purge struct {
	Rules []Retain // the first that matches a job decides about it; a job that none matches is kept
	After ID       // where the last step ended; zero: from the beginning
	Scan  int
	// SpareDeadLetters leaves jobs that failed and were not discarded, and counts them.
	SpareDeadLetters bool
}

// Decide answers which rule, if any, has the job purged by now. Members of a group that has not settled, and jobs with artifacts
// that have not expired, are kept: the store does not ask about them.
func (p *Purge) Decide(t Tombstone, now time.Time) (rule string, purge bool) {
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.Matches(t) {
			return r.Name, r.For >= 0 && !t.FinishedAt.Add(r.For).After(now)
		}
	}
	return "", false
}

// Check refuses rules that make no sense, naming every problem at once. Stores call it first.
func (p *Purge) Check() error {
	var bad problems
	for i := range p.Rules {
		r := &p.Rules[i]
		bad.name("rule", r.Name)
		if r.For < 0 && r.For != Forever || r.For > MaxDelay {
			bad.add("rule %.60q keeps for %v: give a duration between 0 and 100 years, or -1 for ever", r.Name, r.For)
		}
		if r.State != "" && !r.State.Terminal() {
			bad.add("rule %.60q is about %q jobs: only ended ones are purged; use complete, failed or cancelled", r.Name, r.State)
		}
		if r.Group != "" && !r.Group.Settled() {
			bad.add("rule %.60q is about jobs of %q groups: use ready, partial, failed, cancelled or expired", r.Name, r.Group)
		}
	}
	if p.Scan < 1 || p.Scan > 100_000 {
		bad.add("a look at %d jobs: give 1 to 100000", p.Scan)
	}
	return errors.Join(bad...)
}

// Purged is what a step of retention did.
type Purged struct {
	Next   ID             `json:"next"` // go on after this; zero: it came to the end
	Jobs   int            `json:"jobs"`
	Rules  map[string]int `json:"rules,omitempty"`  // how many by which rule
	Spared map[string]int `json:"spared,omitempty"` // dead letters that were left, by the rule that would have them purged
}

// A Tombstone is what remains of a job that was purged.
type Tombstone struct {
	Job        ID         `json:"job"`
	Kind       string     `json:"kind"`
	Queue      string     `json:"queue"`
	Owner      string     `json:"owner,omitempty"`
	Group      ID         `json:"group,omitzero"`
	GroupState GroupState `json:"group_state,omitempty"`
	State      State      `json:"state"`
	Code       string     `json:"code,omitempty"`
	FinishedAt time.Time  `json:"finished_at"`
	PurgedAt   time.Time  `json:"purged_at"`
	Rule       string     `json:"rule"`
}

// A TombstoneFilter narrows a list of tombstones. Empty fields do not narrow.
type TombstoneFilter struct {
	Job    ID
	Kind   string
	Limit  int    // at most 200; 50 when zero
	Cursor string // from the page before
}

// A PurgeCount says how many jobs a rule has purged ever. Counts outlive the tombstones.
type PurgeCount struct {
	Rule  string    `json:"rule"`
	Kind  string    `json:"kind"`
	State State     `json:"state"`
	Code  string    `json:"code,omitempty"`
	Jobs  int       `json:"jobs"`
	Last  time.Time `json:"last"`
}

// Shelves hold what retention forgets by age alone (Historian.Forget).
const (
	ShelfFeed       = "feed"       // events as the feed tells them; always the oldest first
	ShelfStory      = "story"      // what people did, and what befell groups, breakers, ...; always the oldest first, so that the chain can be checked from there on
	ShelfTallies    = "tallies"    // when and where an error group was seen, and what trends are told from
	ShelfTombstones = "tombstones" // the counts remain

	// MinKeepStory is how long lines of stories are kept at least: they are the audit log. Forget refuses to delete younger ones.
	MinKeepStory = 24 * time.Hour
)

// An Artifact is something a job needs or has made that lies elsewhere: a file, an object. It expires on its own clock.
type Artifact struct {
	Job       ID            `json:"job"`
	Name      string        `json:"name"` // unique for the job: source, result, ...
	Ref       string        `json:"ref"`  // where it lies, for whoever deletes it; never a secret
	Size      int64         `json:"size,omitempty"`
	ExpireIn  time.Duration `json:"-"` // when it is kept: how long; 0: it does not expire, and its job is kept with it
	CreatedAt time.Time     `json:"created_at"`
	ExpireAt  time.Time     `json:"expire_at,omitzero"`
	ExpiredAt time.Time     `json:"expired_at,omitzero"` // it is gone
	Expired   bool          `json:"-"`                   // when it is kept: it is gone now
}

// An ArtifactFilter says which artifacts: those of a job, or those whose time is up and that are not gone yet.
type ArtifactFilter struct {
	Job   ID
	Due   bool
	Limit int // at most 1000; 200 when zero
}
