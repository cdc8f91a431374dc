// Package redrive governs how dead letters are sent round again: a few first, then the rest at a steady pace, and no further
// when too many of them fail again.
//
// It is pure. Progress is all the state there is; it is kept as a record, and whoever reads it goes on from there. A step is
//
//	if p.Pending is not empty: take those, p = p.Stepped(refused)
//	take, p, why := redrive.Next(p, tally, now)    how many now
//	p = p.Plan(jobs, cursor, last)                 at most so many, found by p.Filter(now)
//	keep p by compare-and-set                      who loses reads again
//	take the jobs, p = p.Stepped(refused)          and keep it with the next step
//
// What is planned is kept before it is done and a store takes each job at most once per redrive, so a process may be killed
// anywhere in between.
package redrive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfastdev/holdfast"
)

// What is meant where an order says nothing.
const (
	DefaultPerSecond = 10
	DefaultInFlight  = 100
	DefaultStopAbove = 0.5
	DefaultStopAfter = 10

	MaxPerSecond = 1000
	MaxStep      = 1000 // jobs in one step
	MaxRefused   = 100  // refusals that are kept word for word; the others are counted
)

// An Order says which dead letters to take and how carefully. Actor and Filter are required.
type Order struct {
	// Filter selects among the dead letters. Its times count from the moment the order is given.
	Filter holdfast.Filter `json:"filter"`
	// All admits a filter that selects every dead letter there is.
	All bool `json:"all,omitempty"`

	Canary    int     `json:"canary,omitempty"`     // so many first; the others only once these have ended well enough; 0: none
	PerSecond float64 `json:"per_second,omitempty"` // 10 when zero
	InFlight  int     `json:"in_flight,omitempty"`  // so many under way at once; 100 when zero
	StopAbove float64 `json:"stop_above,omitempty"` // stop when more than this share fails again; 0.5 when zero, never at 1
	StopAfter int     `json:"stop_after,omitempty"` // judge when so many have ended; 10 when zero
	Limit     int     `json:"limit,omitempty"`      // so many in all; 0: all that are selected

	Patch   json.RawMessage `json:"patch,omitempty"` // a JSON merge patch of each job's arguments
	Queue   string          `json:"queue,omitempty"` // where they go; their own when empty
	Discard bool            `json:"discard,omitempty"`

	Actor   string `json:"actor"`
	Reason  string `json:"reason,omitempty"`
	Request string `json:"request,omitempty"`
	// Token identifies the order when it is given again. A server sets it, from the idempotency key and the order; what a caller gives is ignored.
	Token string `json:"token,omitempty"`
}

// Check refuses an order that makes no sense, naming every problem at once.
func (o Order) Check() error {
	var p problems
	o.checkFilter(&p)
	p.refuse(o.Canary < 0, "a canary of %d: give a positive number, or 0 for none", o.Canary)
	p.refuse(!(o.PerSecond >= 0 && o.PerSecond <= MaxPerSecond), "%v a second: give a rate up to %d, or 0 for %d", o.PerSecond, MaxPerSecond, DefaultPerSecond)
	p.refuse(o.InFlight < 0, "at most %d in flight: give a positive number, or 0 for %d", o.InFlight, DefaultInFlight)
	p.refuse(!(o.StopAbove >= 0 && o.StopAbove <= 1), "stop above %v: give a share between 0 and 1, such as 0.2", o.StopAbove)
	p.refuse(o.StopAfter < 0, "judge after %d have ended: give a positive number, or 0 for %d", o.StopAfter, DefaultStopAfter)
	p.refuse(o.Limit < 0, "a limit of %d: give a positive number, or 0 for no limit", o.Limit)
	o.checkChange(&p)
	p.refuse(strings.TrimSpace(o.Actor) == "" || len(o.Actor) > holdfast.MaxKey, "nobody is named as the actor: say who redrives, in at most %d bytes", holdfast.MaxKey)
	p.refuse(len(o.Reason) > 900, "a reason of %d bytes: the limit is 900", len(o.Reason))
	return errors.Join(p...)
}

func (o Order) checkFilter(p *problems) {
	f := o.Filter
	p.refuse(f.State != "" && f.State != holdfast.Failed, "a filter for %s jobs: only dead letters can be redriven", f.State)
	p.refuse(f.Cursor != "" || f.Limit != 0, "a page of a list: give the filter without cursor and limit; use the order's limit")
	p.refuse(f.OlderThan < 0 || f.YoungerThan < 0, "a filter with a negative age")
	f.State, f.DeadLetters, f.Cursor, f.Limit, f.Look = "", false, "", 0, 0
	p.refuse(f == holdfast.Filter{} && !o.All, "a redrive of everything: name a code, kind, queue, owner or error group, or say all")
	p.refuse(f != holdfast.Filter{} && o.All, "all and a filter: give one of them")
}

func (o Order) checkChange(p *problems) {
	patch := bytes.TrimSpace(o.Patch)
	p.refuse(len(patch) > 0 && (patch[0] != '{' || !json.Valid(patch)), "the patch is no JSON object: give one such as {\"size\": \"small\"}")
	p.refuse(len(patch) > holdfast.MaxArgs, "a patch of %d bytes: the limit is %d", len(patch), holdfast.MaxArgs)
	if o.Queue != "" {
		to := holdfast.Hold{Queue: o.Queue, Actor: "x"}
		p.refuse(to.Check() != nil || strings.HasSuffix(o.Queue, "*"), "queue %.140q: use 1 to %d letters, digits and _ - . : /", o.Queue, holdfast.MaxName)
	}
	p.refuse(o.Discard && (len(patch) > 0 || o.Queue != ""), "a patch or a queue for jobs that are discarded: leave it out")
	p.refuse(o.Discard && o.Canary > 0, "a canary of jobs that are discarded: they do not run, leave it out")
	p.refuse(o.Discard && strings.TrimSpace(o.Reason) == "", "no reason: say why the jobs are discarded")
}

func (o Order) perSecond() float64 { return or(o.PerSecond, DefaultPerSecond) }
func (o Order) inFlight() int      { return or(o.InFlight, DefaultInFlight) }
func (o Order) stopAbove() float64 { return or(o.StopAbove, DefaultStopAbove) }
func (o Order) stopAfter() int     { return or(o.StopAfter, DefaultStopAfter) }

// most is how many jobs may be taken in all.
func (o Order) most() int { return or(o.Limit, math.MaxInt) }

// or is the number, or what is meant when it makes no sense.
func or[N int | float64](n, otherwise N) N {
	if !(n > 0) {
		return otherwise
	}
	return n
}

type problems []error

func (p *problems) refuse(bad bool, format string, args ...any) {
	if bad {
		*p = append(*p, &holdfast.Error{Kind: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)})
	}
}

// A State is where a redrive stands. Stopped is the governor's own doing, the others a person's or the end.
type State string

const (
	Running   State = "running"
	Paused    State = "paused"    // by a person; may be resumed
	Stopped   State = "stopped"   // too many failed again; may be resumed
	Cancelled State = "cancelled" // by a person, for good
	Done      State = "done"
)

// Ended reports whether nothing will follow.
func (s State) Ended() bool { return s == Cancelled || s == Done }

// Progress is all there is to know about a redrive. It is kept as JSON in a record of room "redrive" under its id.
type Progress struct {
	ID        holdfast.ID `json:"id"`
	Order     Order       `json:"order"`
	State     State       `json:"state"`
	Why       string      `json:"why,omitempty"` // what it waits for, or why it ended
	StartedAt time.Time   `json:"started_at"`
	StepAt    time.Time   `json:"step_at,omitzero"`
	EndedAt   time.Time   `json:"ended_at,omitzero"` // done, cancelled or stopped
	Actor     string      `json:"actor,omitempty"`   // who spoke last

	Cursor    string         `json:"cursor,omitempty"`    // of the next page of dead letters
	Exhausted bool           `json:"exhausted,omitempty"` // there is no next page
	Pending   []holdfast.ID  `json:"pending,omitempty"`   // planned, and perhaps taken already
	Tokens    float64        `json:"tokens"`
	Passed    bool           `json:"passed,omitempty"` // the canary has ended well enough
	Since     holdfast.Tally `json:"since"`            // what had become of them when it was last resumed: judged is what came after
	Tally     holdfast.Tally `json:"tally"`            // as the last step saw it

	RefusedJobs int       `json:"refused_jobs,omitempty"`
	Refused     []Refusal `json:"refused,omitempty"` // the first hundred
}

// A Refusal is a job that could not be taken, and why.
type Refusal struct {
	Job holdfast.ID `json:"job"`
	Why string      `json:"why"`
}

// Start begins a redrive. The order must have passed its check.
func Start(id holdfast.ID, o Order, now time.Time) Progress {
	return Progress{ID: id, Order: o, State: Running, StartedAt: now, StepAt: now, Tokens: burst(o.perSecond()), Actor: o.Actor, Why: "not begun yet"}
}

// Filter finds the next dead letters. The times of the order's filter stay where they were when it was given, so a job does
// not come into the selection by growing older.
func (p Progress) Filter(now time.Time) holdfast.Filter {
	f := p.Order.Filter
	passed := max(0, now.Sub(p.StartedAt))
	if f.OlderThan > 0 {
		f.OlderThan += passed
	}
	if f.YoungerThan > 0 {
		f.YoungerThan += passed
	}
	f.DeadLetters, f.Cursor = true, p.Cursor
	return f
}

// Step is what the store is asked to do with jobs.
func (p Progress) Step(jobs []holdfast.ID) holdfast.Redrive {
	o := p.Order
	return holdfast.Redrive{ID: p.ID, Jobs: jobs, Discard: o.Discard, Patch: o.Patch, Queue: o.Queue, Actor: o.Actor, Reason: o.Reason}
}

// Plan notes the jobs that are to be taken, the cursor behind them and whether they were the last, before they are taken.
func (p Progress) Plan(jobs []holdfast.ID, cursor string, last bool) Progress {
	p.Pending, p.Cursor, p.Exhausted = slices.Clone(jobs), cursor, last
	return p
}

// Stepped notes that the pending jobs were taken, but for those that were refused. A step that was repeated because its
// process was killed in between refuses the same jobs again: they are listed once.
func (p Progress) Stepped(refused []Refusal) Progress {
	p.Pending = nil
	p.Refused = slices.Clone(p.Refused)
	for _, r := range refused {
		if slices.ContainsFunc(p.Refused, func(known Refusal) bool { return known.Job == r.Job }) {
			continue
		}
		p.RefusedJobs++
		if len(p.Refused) < MaxRefused {
			p.Refused = append(p.Refused, r)
		}
	}
	return p
}
