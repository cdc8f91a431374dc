package api

import (
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/store"
)

// The JSON bodies of the store routes. Each has the fields of the type that its comment names.

// Few is the maximum number of entries to process.
type Few struct {
	Limit int `json:"limit" doc:"Maximum number of entries."`
}

// Counted is a number of entries.
type Counted struct {
	Count int `json:"count" doc:"Number of entries."`
}

// Which has the id of a job, a group or a redrive.
type Which struct {
	ID holdfast.ID `json:"id" doc:"Id of the job, group or redrive."`
}

// InNamespace has the name of a namespace: the group of records that one part of the system keeps.
type InNamespace struct {
	Namespace string `json:"namespace" doc:"Name of the namespace."`
}

// A Stretch is a part of the feed or of the events of a subject.
type Stretch struct {
	Subject string `json:"subject,omitempty" doc:"Subject of the events."`
	After   int64  `json:"after,omitempty" doc:"Return events after this number."`
	Limit   int    `json:"limit" doc:"Maximum number of events."`
}

// Lately is how far back to look.
type Lately struct {
	Within time.Duration `json:"within" doc:"How far back."`
}

// Aged says which entries to delete.
type Aged struct {
	History string        `json:"history" doc:"History: the kind of entries."`
	Older   time.Duration `json:"older" doc:"Minimum age of the entries."`
	Limit   int           `json:"limit" doc:"Maximum number of entries."`
}

// A Page is one page of a list.
type Page[T any] struct {
	Items []T `json:"items" doc:"Entries of the page."`
	Paged
}

// A Take is the JSON form of a store.Claim for Reclaim and Expire.
type Take struct {
	Worker string        `json:"worker" doc:"Name of the worker that will hold the leases."`
	Queues []string      `json:"queues" doc:"Queues to claim from."`
	Kinds  []string      `json:"kinds,omitempty" doc:"Kinds to claim; all when left out."`
	Limit  int           `json:"limit" doc:"Maximum number of jobs."`
	Start  int           `json:"start" doc:"How many of the jobs start at once."`
	Lease  time.Duration `json:"lease" doc:"Lease duration."`
	Bytes  int           `json:"bytes,omitempty" doc:"Approximate maximum of bytes of arguments and checkpoints."`

	OwnerSlots int            `json:"owner_slots,omitempty" doc:"How many jobs of one owner the worker runs at the same time."`
	Busy       map[string]int `json:"busy,omitempty" doc:"How many jobs of each owner the worker runs already."`
}

// A Deed is the JSON form of a store.Intervention.
type Deed struct {
	Job        holdfast.ID   `json:"job,omitzero" doc:"Id of the job."`
	Owner      string        `json:"owner,omitempty" doc:"Act only if it belongs to this owner."`
	Actor      string        `json:"actor,omitempty" doc:"Person who does this."`
	Reason     string        `json:"reason,omitempty" doc:"Why it is done."`
	Request    string        `json:"request,omitempty" doc:"Id of the request."`
	Group      holdfast.ID   `json:"group,omitzero" doc:"Id of the group."`
	StuckAfter time.Duration `json:"stuck_after,omitempty" doc:"Also take the job from a worker that has held it for longer than this."`

	Compensated bool `json:"compensated,omitempty" doc:"Has no effect here: a store retries members whose compensation is complete too."`
}

// An Alteration is the JSON form of a store.Edit.
type Alteration struct {
	Deed
	Seen        string          `json:"seen,omitempty" doc:"Digest of the job as the caller read it."`
	Patch       json.RawMessage `json:"patch,omitempty" doc:"JSON merge patch of the arguments."`
	Args        json.RawMessage `json:"args,omitempty" doc:"Complete new arguments."`
	Queue       *string         `json:"queue,omitempty" doc:"New queue."`
	Priority    *int16          `json:"priority,omitempty" doc:"New priority."`
	Tags        *[]string       `json:"tags,omitempty" doc:"New tags."`
	MaxAttempts *int            `json:"max_attempts,omitempty" doc:"New maximum of attempts."`
	Delay       *time.Duration  `json:"delay,omitempty" doc:"Time until the job may start."`
}

// A Placed is the JSON form of a store.Hold, with its duration.
type Placed struct {
	store.Hold
	For time.Duration `json:"for,omitempty" doc:"How long the hold lasts; until it is lifted when left out."`
}

// PlacedOf returns the JSON form of a hold.
func PlacedOf(h store.Hold) Placed { return Placed{h, h.For} }

// Placement returns the hold.
func (p Placed) Placement() store.Hold {
	p.Hold.For = p.For
	return p.Hold
}

// A Judgement is the JSON form of a store.Triage.
type Judgement struct {
	Fingerprint string        `json:"fingerprint" doc:"Fingerprint of the error group."`
	Status      store.Status  `json:"status,omitempty" doc:"New status; a note when left out."`
	For         time.Duration `json:"for,omitempty" doc:"With ignored: for this long."`
	Count       int           `json:"count,omitempty" doc:"With ignored: until this many further failures."`
	Version     string        `json:"version,omitempty" doc:"With resolved: the application version that has the fix."`
	Actor       string        `json:"actor,omitempty" doc:"Person who does this."`
	Reason      string        `json:"reason,omitempty" doc:"Why it is done."`
}

// A Step is the JSON form of a store.Redrive: the next jobs that a redrive takes.
type Step struct {
	ID      holdfast.ID     `json:"id" doc:"Id of the redrive."`
	Jobs    []holdfast.ID   `json:"jobs" doc:"Jobs to take."`
	Discard bool            `json:"discard,omitempty" doc:"Discard the jobs instead of queueing them again."`
	Patch   json.RawMessage `json:"patch,omitempty" doc:"JSON merge patch of their arguments."`
	Queue   string          `json:"queue,omitempty" doc:"New queue of the jobs."`
	Actor   string          `json:"actor,omitempty" doc:"Person who started the redrive."`
	Reason  string          `json:"reason,omitempty" doc:"Why it was started."`
}

// A Sweep is the JSON form of a store.Purge.
type Sweep struct {
	Rules            []store.RetentionRule `json:"rules" doc:"Retention rules, in order."`
	After            holdfast.ID           `json:"after,omitzero" doc:"Continue after the job with this id."`
	Scan             int                   `json:"scan" doc:"Maximum number of jobs to examine."`
	SpareDeadLetters bool                  `json:"spare_dead_letters,omitempty" doc:"Do not purge dead letters."`
}

// A Deposit is the JSON form of a store.Deposit.
type Deposit struct {
	Hold   Placed  `json:"hold" doc:"Hold with a rate."`
	Tokens float64 `json:"tokens" doc:"Tokens to add to its bucket."`
}

// A Listener is the JSON form of a store.Listener.
type Listener struct {
	Name   string   `json:"name" doc:"Name of the listener."`
	Events []string `json:"events" doc:"Events of jobs that are written to the feed for it."`
}

// A Thing is the JSON form of a store.Artifact.
type Thing struct {
	store.Artifact
	ExpireIn time.Duration `json:"expire_in,omitempty" doc:"Time until the artifact expires; it does not expire when left out."`
	Expired  bool          `json:"expired,omitempty" doc:"The artifact was deleted."`
}

// A Change is the JSON form of a store.Change: everything in it is stored in one transaction.
type Change struct {
	Records   []store.Record   `json:"records,omitempty" doc:"Records to write or delete."`
	Place     []Placed         `json:"place,omitempty" doc:"Holds to place."`
	Lift      []Placed         `json:"lift,omitempty" doc:"Holds to lift."`
	Deposits  []Deposit        `json:"deposits,omitempty" doc:"Tokens to add to the buckets of holds."`
	Events    []store.Event    `json:"events,omitempty" doc:"Events to write."`
	Enqueue   []holdfast.Draft `json:"enqueue,omitempty" doc:"Jobs to enqueue."`
	Deliver   []holdfast.Draft `json:"deliver,omitempty" doc:"Deliveries to enqueue."`
	Listen    []Listener       `json:"listen,omitempty" doc:"Listeners to set."`
	Artifacts []Thing          `json:"artifacts,omitempty" doc:"Artifacts to write."`
}

// MapSlice converts every element of a slice. nil stays nil.
func MapSlice[From, To any](of []From, make func(From) To) []To {
	if of == nil {
		return nil
	}
	all := []To{}
	for _, one := range of {
		all = append(all, make(one))
	}
	return all
}

// ChangeOf returns a change as a request has it.
func ChangeOf(c store.Change) Change {
	return Change{
		Records: c.Records, Events: c.Events, Enqueue: c.Enqueue, Deliver: c.Deliver, Place: MapSlice(c.Place, PlacedOf), Lift: MapSlice(c.Lift, PlacedOf),
		Deposits:  MapSlice(c.Deposits, func(d store.Deposit) Deposit { return Deposit{PlacedOf(d.Hold), d.Tokens} }),
		Listen:    MapSlice(c.Listen, func(l store.Listener) Listener { return Listener(l) }),
		Artifacts: MapSlice(c.Artifacts, func(a store.Artifact) Thing { return Thing{a, a.ExpireIn, a.Expired} }),
	}
}

// Change returns the change.
func (c Change) Change() store.Change {
	return store.Change{
		Records: c.Records, Events: c.Events, Enqueue: c.Enqueue, Deliver: c.Deliver, Place: MapSlice(c.Place, Placed.Placement), Lift: MapSlice(c.Lift, Placed.Placement),
		Deposits: MapSlice(c.Deposits, func(d Deposit) store.Deposit { return store.Deposit{Hold: d.Hold.Placement(), Tokens: d.Tokens} }),
		Listen:   MapSlice(c.Listen, func(l Listener) store.Listener { return store.Listener(l) }),
		Artifacts: MapSlice(c.Artifacts, func(t Thing) store.Artifact {
			t.Artifact.ExpireIn, t.Artifact.Expired = t.ExpireIn, t.Expired
			return t.Artifact
		}),
	}
}

// AlterationOf returns an edit as a request has it.
func AlterationOf(e store.Edit) Alteration {
	return Alteration{Deed(e.Intervention), e.IfDigest, e.Patch, e.Args, e.Queue, e.Priority, e.Tags, e.MaxAttempts, e.Delay}
}

// Edit returns the edit.
func (a Alteration) Edit() store.Edit {
	return store.Edit{Intervention: store.Intervention(a.Deed), IfDigest: a.Seen, Patch: a.Patch, Args: a.Args, Queue: a.Queue, Priority: a.Priority, Tags: a.Tags, MaxAttempts: a.MaxAttempts, Delay: a.Delay}
}
