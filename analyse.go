package holdfast

import (
	"errors"
	"time"
)

// A Status is what people have made of an error group.
type Status string

const (
	Open         Status = "open"
	Acknowledged Status = "acknowledged" // somebody looks after it
	Ignored      Status = "ignored"      // until a time or a count; then it is open again
	Resolved     Status = "resolved"     // it should not happen any more
	Regressed    Status = "regressed"    // it was resolved, and happened again
)

// An ErrorGroup is one and the same trouble: all failures of one fingerprint. It is written in the transaction that settles
// a failed attempt, so it is never behind and nothing is ever scanned for it.
type ErrorGroup struct {
	Fingerprint string    `json:"fingerprint"`
	Code        string    `json:"code"`
	Category    string    `json:"category,omitempty"`
	Message     string    `json:"message,omitempty"` // of the first failure
	Detail      string    `json:"detail,omitempty"`  // of the first failure
	Failures    int       `json:"failures"`          // failed attempts ever
	FirstSeen   time.Time `json:"first_seen"`
	LastSeen    time.Time `json:"last_seen"`

	Kinds        []string `json:"kinds"` // where it was seen in the last week, sorted
	Queues       []string `json:"queues"`
	Dependencies []string `json:"dependencies,omitempty"`
	Versions     []string `json:"versions,omitempty"`
	LastHour     int      `json:"last_hour"` // failed attempts, counted in steps of five minutes
	Last3Hours   int      `json:"last_3_hours"`
	LastDay      int      `json:"last_day"`
	LastWeek     int      `json:"last_week"`

	Status     Status    `json:"status"`
	Until      time.Time `json:"until,omitzero"`        // ignored until then
	UntilCount int       `json:"until_count,omitempty"` // ignored until so many failures ever
	ResolvedIn string    `json:"resolved_in,omitempty"` // a failure of another version does not reopen it
	Actor      string    `json:"actor,omitempty"`       // who said so
	Reason     string    `json:"reason,omitempty"`
}

// A Triage is a person's word on an error group. It is kept in the group's story. With an empty Status it is a note.
type Triage struct {
	Fingerprint string
	Status      Status        // Open, Acknowledged, Ignored, Resolved, or empty
	For         time.Duration // Ignored: for so long
	Count       int           // Ignored: until so many failures more
	Version     string        // Resolved: in this version of the application; failures of others do not count against it
	Actor       string
	Reason      string
}

// Check refuses a triage that makes no sense, naming every problem at once. Stores call it first.
func (t *Triage) Check() error {
	var p problems
	switch t.Status {
	case "", Open, Acknowledged, Ignored, Resolved:
	default:
		p.add("status %.40q: use open, acknowledged, ignored or resolved", t.Status)
	}
	if t.Fingerprint == "" {
		p.add("no fingerprint: say which error group")
	}
	if t.For < 0 || t.For > MaxDelay || t.Count < 0 || (t.For > 0 || t.Count > 0) && t.Status != Ignored {
		p.add("for %v or %d failures more: give it with ignored, not negative", t.For, t.Count)
	}
	if t.Version != "" && t.Status != Resolved {
		p.add("version %.40q: give it with resolved", t.Version)
	}
	if t.Status == "" && t.Reason == "" {
		p.add("neither a status nor a note: say something")
	}
	p.actor(t.Actor, t.Reason)
	p.text("version", t.Version)
	return errors.Join(p...)
}

// An ErrorFilter narrows a list of error groups. Empty fields do not narrow.
type ErrorFilter struct {
	Fingerprint string
	Status      Status
	Code        string
	Kind        string
	Limit       int    // at most 200; 50 when zero
	Cursor      string // from the page before
}

// Experience is what became of the failed attempts of one kind with one code and number: did it help to try again? Number 0
// with no code counts first attempts.
type Experience struct {
	Kind     string        `json:"kind"`
	Code     string        `json:"code,omitempty"`
	Number   int           `json:"number"`   // the attempt that failed, 1 the first
	Attempts int           `json:"attempts"` // so many failed so; with number 0, so many jobs made a first attempt
	Complete int           `json:"complete"` // the next attempt completed; with number 0, the first one did
	Again    int           `json:"again"`    // the next attempt failed too
	GaveUp   int           `json:"gave_up"`  // there was none: the job had failed for good
	Took     time.Duration `json:"took"`     // by these failed attempts together
	Wasted   time.Duration `json:"wasted"`   // of that, by jobs that failed for good in the end
}
