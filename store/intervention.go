package store

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

// An Intervention names the job that a person changes, the person and the reason.
type Intervention struct {
	Job    holdfast.ID
	Owner  string // when set, a job of another owner is ErrNotFound
	Actor  string // the person or program; required
	Reason string // free text; required by Discard
	// Request is the id of the HTTP request, if there is one. It is recorded with the change.
	Request string
	Group   holdfast.ID // with RetryGroup and CancelGroup, instead of Job
	// StuckAfter lets Retry take a job from a worker that has run it for longer than this. 0: only after its lease has expired.
	StuckAfter time.Duration
	// Compensated lets ops.Service.RetryGroup retry members although their compensation is complete, so that what was compensated is done again.
	Compensated bool
}

// Check validates the intervention. The error wraps ErrInvalid and names every problem. Stores call it first.
func (i *Intervention) Check() error {
	var p check.Problems
	i.check(&p)
	return p.Err(invalid)
}

func (i *Intervention) check(p *check.Problems) {
	p.Actor(i.Actor, i.Reason)
	p.Text("owner", i.Owner)
	p.Text("request", i.Request)
	if i.StuckAfter < 0 {
		p.Add("stuck after %v: give a duration that is not negative", i.StuckAfter)
	}
}

// An Edit changes a queued job: its arguments, and when and where it waits. Nil fields stay as they are. Id, counters and story
// stay too. On a failed job an edit may change arguments, priority and attempts; the job stays failed until it is retried.
type Edit struct {
	Intervention
	IfDigest string // Digest of the job as the editor saw it: ErrConflict if it has changed since. Empty: do not compare

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
	var p check.Problems
	e.Intervention.check(&p)
	if e.Patch == nil && e.Args == nil && e.Queue == nil && e.Priority == nil && e.Tags == nil && e.MaxAttempts == nil && e.Delay == nil {
		p.Add("an edit that changes nothing: give a patch, queue, priority, tags, max attempts or delay")
	}
	if e.Patch != nil && !(json.Valid(e.Patch) && utf8.Valid(e.Patch) && len(e.Patch) <= check.MaxArgs) {
		p.Add("a patch of the arguments that is not valid JSON of at most %d bytes", check.MaxArgs)
	}
	if !e.Restore.IsZero() {
		p.Add("an edit that restores former values: use package ops, which looks them up")
	}
	if e.Patch != nil && e.Args != nil {
		p.Add("both a patch and new arguments: give one of them")
	}
	if e.Args != nil && !(json.Valid(e.Args) && utf8.Valid(e.Args) && len(e.Args) <= check.MaxArgs) {
		p.Add("arguments that are not valid JSON of at most %d bytes", check.MaxArgs)
	}
	as := holdfast.Draft{Kind: "any"} // the limits of a draft apply to an edit
	if e.Queue != nil {
		p.Name("queue", *e.Queue)
		if err := (&holdfast.Draft{Queue: *e.Queue}).Reserved(); err != nil {
			p.Add("%v", err)
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
		p.Add("%v", err)
	}
	return p.Err(invalid)
}
