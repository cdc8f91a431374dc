package store

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

// Forever, as RetentionRule.For, keeps jobs without a time limit.
const Forever time.Duration = -1

// A RetentionRule says how long ended jobs are kept. Empty fields match every job.
type RetentionRule struct {
	Name  string              `json:"name"` // of the rule; recorded in tombstones and counts
	State holdfast.State      `json:"state,omitempty"`
	Kind  string              `json:"kind,omitempty"`
	Owner string              `json:"owner,omitempty"`
	Code  string              `json:"code,omitempty"`  // of the failure that ended the job
	Group holdfast.GroupState `json:"group,omitempty"` // outcome of the group that the job belongs to
	For   time.Duration       `json:"for"`             // how long to keep the job after it ended; Forever (-1): without limit; 0: purge at once
}

// Matches reports whether the rule applies to an ended job.
func (r *RetentionRule) Matches(t Tombstone) bool {
	return (r.State == "" || r.State == t.State) && (r.Kind == "" || r.Kind == t.Kind) && (r.Owner == "" || r.Owner == t.Owner) &&
		(r.Code == "" || r.Code == t.Code) && (r.Group == "" || r.Group == t.GroupState)
}

// A Purge is one step of retention: it examines up to Scan ended jobs in the order of their ids and deletes those whose retention
// time has passed.
type Purge struct {
	Rules []RetentionRule // the first rule that matches a job applies; a job that no rule matches is kept
	After holdfast.ID     // where the last step ended; zero: start from the beginning
	Scan  int
	// SpareDeadLetters keeps dead letters and counts them.
	SpareDeadLetters bool
}

// Decide returns the rule that applies to an ended job and whether the job is to be purged at this time. The store calls it
// only for jobs that may be purged: not for members of a group that has not settled, nor for jobs with artifacts that have
// not expired.
func (p *Purge) Decide(t Tombstone, now time.Time) (rule string, purge bool) {
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.Matches(t) {
			return r.Name, r.For >= 0 && !t.FinishedAt.Add(r.For).After(now)
		}
	}
	return "", false
}

// Check validates the rules. The error wraps ErrInvalid and names every problem. Stores call it first.
func (p *Purge) Check() error {
	var bad check.Problems
	for i := range p.Rules {
		r := &p.Rules[i]
		bad.Name("rule", r.Name)
		if r.For < 0 && r.For != Forever || r.For > check.MaxDelay {
			bad.Add("rule %.60q keeps for %v: give a duration between 0 and 100 years, or -1 for ever", r.Name, r.For)
		}
		if r.State != "" && !r.State.Terminal() {
			bad.Add("rule %.60q matches %q jobs: only ended jobs are purged; use complete, failed or cancelled", r.Name, r.State)
		}
		if r.Group != "" && !r.Group.Settled() {
			bad.Add("rule %.60q matches jobs of %q groups: use ready, partial, failed, cancelled or expired", r.Name, r.Group)
		}
	}
	if p.Scan < 1 || p.Scan > 100_000 {
		bad.Add("a scan of %d jobs: give 1 to 100000", p.Scan)
	}
	return bad.Err(invalid)
}

// Purged is the result of one step of retention.
type PurgeResult struct {
	Next   holdfast.ID    `json:"next"` // continue after this id; zero: the scan is complete
	Jobs   int            `json:"jobs"`
	Rules  map[string]int `json:"rules,omitempty"`  // number of purged jobs by rule
	Spared map[string]int `json:"spared,omitempty"` // number of dead letters that were kept, by the rule that would purge them
}

// A Tombstone is what remains of a purged job.
type Tombstone struct {
	Job        holdfast.ID         `json:"job"`
	Kind       string              `json:"kind"`
	Queue      string              `json:"queue"`
	Owner      string              `json:"owner,omitempty"`
	Group      holdfast.ID         `json:"group,omitzero"`
	GroupState holdfast.GroupState `json:"group_state,omitempty"`
	State      holdfast.State      `json:"state"`
	Code       string              `json:"code,omitempty"`
	FinishedAt time.Time           `json:"finished_at"`
	PurgedAt   time.Time           `json:"purged_at"`
	Rule       string              `json:"rule"`
}

// A TombstoneFilter selects tombstones. Zero fields match everything.
type TombstoneFilter struct {
	Job    holdfast.ID
	Kind   string
	Limit  int    // page size: at most 200; 50 when zero
	Cursor string // from the previous page
}

// A PurgeCount is the number of jobs that a rule has purged in total. Counts are kept longer than tombstones.
type PurgeCount struct {
	Rule  string         `json:"rule"`
	Kind  string         `json:"kind"`
	State holdfast.State `json:"state"`
	Code  string         `json:"code,omitempty"`
	Jobs  int            `json:"jobs"`
	Last  time.Time      `json:"last"`
}

// What Archiver.DeleteHistory deletes by age.
const (
	HistoryFeed       = "feed"       // events of the feed, oldest first
	HistoryStories    = "story"      // the audit log and the events of groups, breakers and other subjects, oldest first, so that the hash chain can be verified from there on
	HistoryCounts     = "counts"     // counts of error groups by time and place, and counts behind trends
	HistoryTombstones = "tombstones" // tombstones; the purge counts stay

	// MinKeepStories is how long entries of HistoryStories are kept at least, because they are the audit log. DeleteHistory refuses to delete
	// younger ones.
	MinKeepStories = 24 * time.Hour
)

// An Artifact is a file or object that a job needs or has made and that is stored elsewhere. It has an expiry of its own.
type Artifact struct {
	Job       holdfast.ID   `json:"job"`
	Name      string        `json:"name"` // unique for the job: source, result, ...
	Ref       string        `json:"ref"`  // location, for the program that deletes it; never a secret
	Size      int64         `json:"size,omitempty"`
	ExpireIn  time.Duration `json:"-"` // when saved: lifetime; 0: it does not expire, and its job is kept as long as it exists
	CreatedAt time.Time     `json:"created_at"`
	ExpireAt  time.Time     `json:"expire_at,omitzero"`
	ExpiredAt time.Time     `json:"expired_at,omitzero"` // when it was removed
	Expired   bool          `json:"-"`                   // when saved: it has been removed
}

// An ArtifactFilter selects the artifacts of a job, or, with Due, those that have expired and are not removed yet.
type ArtifactFilter struct {
	Job   holdfast.ID
	Due   bool
	Limit int // page size: at most 1000; 200 when zero
}
