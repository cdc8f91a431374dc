package store

import (
	"time"

	"github.com/holdfastdev/holdfast/internal/check"
)

// A Status is the triage status of an error group.
type Status string

const (
	StatusOpen         Status = "open"         // has failures that need attention; the status of a new group
	StatusAcknowledged Status = "acknowledged" // a person is working on it
	StatusIgnored      Status = "ignored"      // until a time or a number of failures; then it is open again
	StatusResolved     Status = "resolved"     // a person declared it fixed
	StatusRegressed    Status = "regressed"    // a new failure arrived after it was resolved
)

// An ErrorGroup is all failures with the same fingerprint. The store updates it in the transaction that settles a failed
// attempt, so it is always current and no query scans attempts to build it.
type ErrorGroup struct {
	Fingerprint string    `json:"fingerprint"`
	Code        string    `json:"code"`
	Category    string    `json:"category,omitempty"`
	Message     string    `json:"message,omitempty"` // of the first failure
	Detail      string    `json:"detail,omitempty"`  // of the first failure
	Failures    int       `json:"failures"`          // failed attempts since the group exists
	FirstSeen   time.Time `json:"first_seen"`
	LastSeen    time.Time `json:"last_seen"`

	Kinds        []string `json:"kinds"` // seen in the last week, sorted, as the next three
	Queues       []string `json:"queues"`
	Dependencies []string `json:"dependencies,omitempty"`
	Versions     []string `json:"versions,omitempty"`
	LastHour     int      `json:"last_hour"` // failed attempts, counted in steps of five minutes
	Last3Hours   int      `json:"last_3_hours"`
	LastDay      int      `json:"last_day"`
	LastWeek     int      `json:"last_week"`

	Status     Status    `json:"status"`
	Until      time.Time `json:"until,omitzero"`        // with Ignored: until this time
	UntilCount int       `json:"until_count,omitempty"` // with Ignored: until the group has this many failures in total
	ResolvedIn string    `json:"resolved_in,omitempty"` // failures of other versions do not reopen the group
	Actor      string    `json:"actor,omitempty"`       // who last changed the status
	Reason     string    `json:"reason,omitempty"`
}

// A Triage changes the status of an error group, or adds a note when Status is empty. The store records it among the
// group's events.
type Triage struct {
	Fingerprint string
	Status      Status        // Open, Acknowledged, Ignored, Resolved, or empty
	For         time.Duration // with Ignored: ignore for this time
	Count       int           // with Ignored: ignore until this many more failures
	Version     string        // with Resolved: the application version that fixes it; failures of other versions do not reopen the group
	Actor       string
	Reason      string
}

// Check returns an error that wraps ErrInvalid and names every problem, or nil. Stores call it first.
func (t *Triage) Check() error {
	var p check.Problems
	switch t.Status {
	case "", StatusOpen, StatusAcknowledged, StatusIgnored, StatusResolved:
	default:
		p.Add("status %.40q: use open, acknowledged, ignored or resolved", t.Status)
	}
	if t.Fingerprint == "" {
		p.Add("no fingerprint: name the error group")
	}
	if t.For < 0 || t.For > check.MaxDelay || t.Count < 0 || (t.For > 0 || t.Count > 0) && t.Status != StatusIgnored {
		p.Add("ignore for %v or for %d more failures: only with status ignored, and not negative", t.For, t.Count)
	}
	if t.Version != "" && t.Status != StatusResolved {
		p.Add("version %.40q: only with status resolved", t.Version)
	}
	if t.Status == "" && t.Reason == "" {
		p.Add("neither a status nor a note: give one of them")
	}
	p.Actor(t.Actor, t.Reason)
	p.Text("version", t.Version)
	return p.Err(invalid)
}

// An ErrorFilter selects error groups. Zero fields match everything.
type ErrorFilter struct {
	Fingerprint string
	Status      Status
	Code        string
	Kind        string
	Limit       int    // page size: at most 200; 50 when zero
	Cursor      string // from the previous page
}
