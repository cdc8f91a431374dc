package store

import (
	"time"

	"github.com/holdfastdev/holdfast"
)

// A Filter selects jobs. Zero fields match everything.
type Filter struct {
	State       holdfast.State
	Kind        string
	Queue       string
	Owner       string
	Tag         string
	Code        string // of the last failure
	Fingerprint string // of the last failure
	Dependency  string
	Generation  int         // 0: any
	Redrive     holdfast.ID // retried or discarded by this redrive
	Group       holdfast.ID // member of this group
	OlderThan   time.Duration
	NewerThan   time.Duration
	DeadLetters bool   // failed, not discarded and not benign
	Benign      *bool  // true: failed with a benign failure; false: failed with another
	Retrying    bool   // queued, and has failed before in this generation
	Worker      string // leased to this worker
	// MaxScan limits how many jobs the store examines when no index leads to the matches. A page may then be short or empty, and its
	// cursor continues where the search stopped. 0: no limit.
	MaxScan int
	Limit   int    // page size: at most 200; 50 when zero
	Cursor  string // from the previous page
}

// History is everything a store has recorded about one job, oldest first. Package ops builds the story from it.
type History struct {
	Job      holdfast.Job `json:"job"`
	Attempts []Attempt    `json:"attempts"` // attempts that ended other than by completing, and late ones
	Events   []Event      `json:"events"`
}

// A Count is the number of jobs of one queue and kind in one state.
type Count struct {
	Queue  string         `json:"queue"`
	Kind   string         `json:"kind"`
	State  holdfast.State `json:"state"`
	Due    bool           `json:"due"` // queued and due; a hold may still keep it from being claimed
	Jobs   int            `json:"jobs"`
	Oldest time.Time      `json:"oldest,omitzero"` // creation time of the oldest job
}

// A Finding is one violated invariant that the integrity check found.
type Finding struct {
	Rule   string `json:"rule"` // name of the invariant
	Job    string `json:"job"`  // the row: a job's id, or another name
	Detail string `json:"detail"`
}

// A GroupFilter selects groups. Zero fields match everything.
type GroupFilter struct {
	State  holdfast.GroupState
	Owner  string
	Name   string
	Parent holdfast.ID
	Limit  int    // page size: at most 200; 50 when zero
	Cursor string // from the previous page
}
