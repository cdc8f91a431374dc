// Package redrive controls how dead letters are sent to their queues again: first a canary of a few jobs, then the rest at
// a limited rate, with an automatic stop when too many fail again.
//
// The package is pure. [Progress] is the complete state of a redrive; callers store it as a record, and any process can
// continue from it. One step is
//
//	if p.Pending is not empty: take those jobs, p = p.Stepped(refused)
//	take, p, why := redrive.Next(p, counts, now)    how many to take now
//	p = p.Plan(jobs, cursor, last)                 at most that many, found by p.Filter(now)
//	store p by compare-and-set                     on a conflict, read p again and start over
//	take the jobs, p = p.Stepped(refused)          stored with the next step
//
// The plan is stored before it is carried out, and a store takes each job at most once per redrive. So a process may be
// killed at any point in between.
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
	"github.com/holdfastdev/holdfast/internal/check"
	"github.com/holdfastdev/holdfast/store"
)

// Defaults and limits of a Spec.
const (
	DefaultPerSecond = 10
	DefaultInFlight  = 100
	DefaultStopAbove = 0.5
	DefaultStopAfter = 10

	MaxPerSecond = 1000
	MaxStep      = 1000 // jobs in one step
	MaxRefused   = 100  // refusals that are kept with their text; all are counted
)

// A Spec selects dead letters and says how carefully to redrive them. Actor and Filter are required.
type Spec struct {
	// Filter selects among the dead letters. Its times count from the start of the redrive.
	Filter store.Filter `json:"filter"`
	// All allows a filter that selects every dead letter.
	All bool `json:"all,omitempty"`

	Canary    int     `json:"canary,omitempty"`     // jobs to take first; the others follow only if these end well; 0: none
	PerSecond float64 `json:"per_second,omitempty"` // 10 when zero
	InFlight  int     `json:"in_flight,omitempty"`  // jobs that may be queued or running at once; 100 when zero
	StopAbove float64 `json:"stop_above,omitempty"` // stop when more than this share fails again; 0.5 when zero, never at 1
	StopAfter int     `json:"stop_after,omitempty"` // evaluate that share after so many jobs have ended; 10 when zero
	Limit     int     `json:"limit,omitempty"`      // total number of jobs; 0: all that are selected

	Patch   json.RawMessage `json:"patch,omitempty"` // a JSON merge patch of each job's arguments
	Queue   string          `json:"queue,omitempty"` // destination; the job's own queue when empty
	Discard bool            `json:"discard,omitempty"`

	Actor   string `json:"actor"`
	Reason  string `json:"reason,omitempty"`
	Request string `json:"request,omitempty"`
	// Token identifies the order when it is sent again. A server sets it from the idempotency key and the order; a value
	// from the caller is ignored.
	Token string `json:"token,omitempty"`
}

// Check returns an error that wraps holdfast.ErrInvalid and names every problem, or nil.
func (o Spec) Check() error {
	var p problems
	o.checkFilter(&p)
	p.refuse(o.Canary < 0, "a canary of %d: give a positive number, or 0 for none", o.Canary)
	p.refuse(!(o.PerSecond >= 0 && o.PerSecond <= MaxPerSecond), "%v a second: give a rate up to %d, or 0 for %d", o.PerSecond, MaxPerSecond, DefaultPerSecond)
	p.refuse(o.InFlight < 0, "at most %d in flight: give a positive number, or 0 for %d", o.InFlight, DefaultInFlight)
	p.refuse(!(o.StopAbove >= 0 && o.StopAbove <= 1), "stop above %v: give a share between 0 and 1, such as 0.2", o.StopAbove)
	p.refuse(o.StopAfter < 0, "stop after %d have ended: give a positive number, or 0 for %d", o.StopAfter, DefaultStopAfter)
	p.refuse(o.Limit < 0, "a limit of %d: give a positive number, or 0 for no limit", o.Limit)
	o.checkChange(&p)
	p.refuse(strings.TrimSpace(o.Actor) == "" || len(o.Actor) > check.MaxKey, "no actor, or a long one: name the person or program that redrives, in at most %d bytes", check.MaxKey)
	p.refuse(len(o.Reason) > 900, "a reason of %d bytes: the limit is 900", len(o.Reason))
	if len(p) == 0 { // a step that the store refuses would be tried again for ever
		step := Progress{ID: holdfast.ID{1}, Spec: o}.Step(nil)
		return step.Check()
	}
	return errors.Join(p...)
}

func (o Spec) checkFilter(p *problems) {
	f := o.Filter
	p.refuse(f.State != "" && f.State != holdfast.Failed, "a filter for %s jobs: only dead letters can be redriven", f.State)
	p.refuse(f.Cursor != "" || f.Limit != 0, "a filter with a cursor or a limit: remove them; use the limit of the redrive")
	p.refuse(f.OlderThan < 0 || f.NewerThan < 0, "a filter with a negative age: give a positive duration")
	f.State, f.DeadLetters, f.Cursor, f.Limit, f.MaxScan = "", false, "", 0, 0
	p.refuse(f == store.Filter{} && !o.All, "a redrive of every dead letter: name a code, kind, queue, owner or error group, or set all")
	p.refuse(f != store.Filter{} && o.All, "both all and a filter: give one of them")
}

func (o Spec) checkChange(p *problems) {
	patch := bytes.TrimSpace(o.Patch)
	p.refuse(len(patch) > 0 && (patch[0] != '{' || !json.Valid(patch)), "the patch is not a JSON object: give one such as {\"size\": \"small\"}")
	p.refuse(len(patch) > check.MaxArgs, "a patch of %d bytes: the limit is %d", len(patch), check.MaxArgs)
	if o.Queue != "" {
		to := store.Hold{Queue: o.Queue, Actor: "x"}
		p.refuse(to.Check() != nil || strings.HasSuffix(o.Queue, "*"), "queue %.140q: use 1 to %d letters, digits and _ - . : /", o.Queue, check.MaxName)
	}
	p.refuse(o.Discard && (len(patch) > 0 || o.Queue != ""), "a patch or a queue for jobs that are discarded: remove it")
	p.refuse(o.Discard && o.Canary > 0, "a canary of jobs that are discarded: they do not run, remove it")
	p.refuse(o.Discard && strings.TrimSpace(o.Reason) == "", "no reason: say why the jobs are discarded")
}

func (o Spec) perSecond() float64 { return or(o.PerSecond, DefaultPerSecond) }
func (o Spec) inFlight() int      { return or(o.InFlight, DefaultInFlight) }
func (o Spec) stopAbove() float64 { return or(o.StopAbove, DefaultStopAbove) }
func (o Spec) stopAfter() int     { return or(o.StopAfter, DefaultStopAfter) }

// most returns how many jobs may be taken in total.
func (o Spec) most() int { return or(o.Limit, math.MaxInt) }

// or returns n, or the default if n is not positive.
func or[N int | float64](n, otherwise N) N {
	if !(n > 0) {
		return otherwise
	}
	return n
}

type problems []error

func (p *problems) refuse(bad bool, format string, args ...any) {
	if bad {
		*p = append(*p, &holdfast.Error{Err: holdfast.ErrInvalid, Message: fmt.Sprintf(format, args...)})
	}
}

// A State is the state of a redrive. The automatic stop sets Stopped and Next sets Done; people set the others.
type State string

const (
	Running   State = "running"
	Paused    State = "paused"    // by a person; may be resumed
	Stopped   State = "stopped"   // too many failed again; may be resumed
	Cancelled State = "cancelled" // by a person, for good
	Done      State = "done"
)

// Ended reports whether the redrive cannot continue.
func (s State) Ended() bool { return s == Cancelled || s == Done }

// Progress is the complete state of a redrive. It is stored as JSON in a record of namespace "redrive" under its id.
type Progress struct {
	ID        holdfast.ID `json:"id"`
	Spec      Spec        `json:"spec"`
	State     State       `json:"state"`
	Why       string      `json:"why,omitempty"` // what it waits for, or why it ended
	StartedAt time.Time   `json:"started_at"`
	StepAt    time.Time   `json:"step_at,omitzero"`
	EndedAt   time.Time   `json:"ended_at,omitzero"` // done, cancelled or stopped
	Actor     string      `json:"actor,omitempty"`   // who last changed it

	Cursor    string              `json:"cursor,omitempty"`    // of the next page of dead letters
	Exhausted bool                `json:"exhausted,omitempty"` // there is no next page
	Pending   []holdfast.ID       `json:"pending,omitempty"`   // planned jobs, which may have been taken already
	Tokens    float64             `json:"tokens"`
	Passed    bool                `json:"passed,omitempty"` // the canary ended well
	Since     store.RedriveCounts `json:"since"`            // the counts when it was last resumed; only later results count for the automatic stop
	Counts    store.RedriveCounts `json:"counts"`           // the counts at the last step

	RefusedJobs int       `json:"refused_jobs,omitempty"`
	Refused     []Refusal `json:"refused,omitempty"` // the first hundred
}

// A Refusal is a job that could not be taken, with the reason.
type Refusal struct {
	Job holdfast.ID `json:"job"`
	Why string      `json:"why"`
}

// Start returns the progress of a new redrive. The order must have passed Check.
func Start(id holdfast.ID, o Spec, now time.Time) Progress {
	return Progress{ID: id, Spec: o, State: Running, StartedAt: now, StepAt: now, Tokens: burst(o.perSecond()), Actor: o.Actor, Why: "not started yet"}
}

// Filter returns the filter for the next dead letters. Ages in the order's filter count from the start of the redrive, so a
// job does not become selected by growing older.
func (p Progress) Filter(now time.Time) store.Filter {
	f := p.Spec.Filter
	passed := max(0, now.Sub(p.StartedAt))
	if f.OlderThan > 0 {
		f.OlderThan += passed
	}
	if f.NewerThan > 0 {
		f.NewerThan += passed
	}
	f.DeadLetters, f.Cursor = true, p.Cursor
	return f
}

// Step returns the request to the store for some jobs.
func (p Progress) Step(jobs []holdfast.ID) store.Redrive {
	o := p.Spec
	return store.Redrive{ID: p.ID, Jobs: jobs, Discard: o.Discard, Patch: o.Patch, Queue: o.Queue, Actor: o.Actor, Reason: o.Reason}
}

// Plan records the jobs that are to be taken, the cursor after them and whether they were the last. Store the result before
// taking the jobs.
func (p Progress) Plan(jobs []holdfast.ID, cursor string, last bool) Progress {
	p.Pending, p.Cursor, p.Exhausted = slices.Clone(jobs), cursor, last
	return p
}

// AfterStep records that the pending jobs were taken, except those that were refused. A step that is repeated after a crash
// refuses the same jobs again: they are listed once.
func (p Progress) AfterStep(refused []Refusal) Progress {
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
