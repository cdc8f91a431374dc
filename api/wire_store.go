package api

import (
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
)

// What travels to a store's roles. Each says the same as its namesake in the vocabulary, which its comment names.

// Few says how many at most.
type Few struct {
	Limit int `json:"limit"`
}

// Counted says how many it were.
type Counted struct {
	Count int `json:"count"`
}

// Which names something by its id.
type Which struct {
	ID holdfast.ID `json:"id"`
}

// ARoom names where records are kept.
type ARoom struct {
	Room string `json:"room"`
}

// A Stretch is a part of a story or of the feed.
type Stretch struct {
	Subject string `json:"subject,omitempty"`
	After   int64  `json:"after,omitempty"`
	Limit   int    `json:"limit"`
}

// Lately says how far back to look.
type Lately struct {
	Within time.Duration `json:"within"`
}

// Aged says what to forget, and how old it is.
type Aged struct {
	Shelf string        `json:"shelf"`
	Older time.Duration `json:"older"`
	Limit int           `json:"limit"`
}

// A Page is part of a list.
type Page[T any] struct {
	Items []T `json:"items"`
	Paged
}

// A Take is a claim by a keeper: holdfast.Claim.
type Take struct {
	Worker string        `json:"worker"`
	Queues []string      `json:"queues"`
	Kinds  []string      `json:"kinds,omitempty"`
	Limit  int           `json:"limit"`
	Start  int           `json:"start"`
	Lease  time.Duration `json:"lease"`
	Bytes  int           `json:"bytes,omitempty"`

	OwnerSlots int            `json:"owner_slots,omitempty"`
	Busy       map[string]int `json:"busy,omitempty"`
}

// A Deed is a holdfast.Intervention.
type Deed struct {
	Job        holdfast.ID   `json:"job,omitzero"`
	Owner      string        `json:"owner,omitempty"`
	Actor      string        `json:"actor,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	Request    string        `json:"request,omitempty"`
	Group      holdfast.ID   `json:"group,omitzero"`
	StuckAfter time.Duration `json:"stuck_after,omitempty"`
}

// An Alteration is a holdfast.Edit.
type Alteration struct {
	Deed
	Seen        string          `json:"seen,omitempty"`
	Patch       json.RawMessage `json:"patch,omitempty"`
	Args        json.RawMessage `json:"args,omitempty"`
	Queue       *string         `json:"queue,omitempty"`
	Priority    *int16          `json:"priority,omitempty"`
	Tags        *[]string       `json:"tags,omitempty"`
	MaxAttempts *int            `json:"max_attempts,omitempty"`
	Delay       *time.Duration  `json:"delay,omitempty"`
}

// A Placed hold says for how long: holdfast.Hold.
type Placed struct {
	holdfast.Hold
	For time.Duration `json:"for,omitempty"`
}

// PlacedOf is a hold as it travels.
func PlacedOf(h holdfast.Hold) Placed { return Placed{h, h.For} }

// Placement is the hold again.
func (p Placed) Placement() holdfast.Hold {
	p.Hold.For = p.For
	return p.Hold
}

// A Judgement is a holdfast.Triage.
type Judgement struct {
	Fingerprint string          `json:"fingerprint"`
	Status      holdfast.Status `json:"status,omitempty"`
	For         time.Duration   `json:"for,omitempty"`
	Count       int             `json:"count,omitempty"`
	Version     string          `json:"version,omitempty"`
	Actor       string          `json:"actor,omitempty"`
	Reason      string          `json:"reason,omitempty"`
}

// A Step is a holdfast.Redrive.
type Step struct {
	ID      holdfast.ID     `json:"id"`
	Jobs    []holdfast.ID   `json:"jobs"`
	Discard bool            `json:"discard,omitempty"`
	Patch   json.RawMessage `json:"patch,omitempty"`
	Queue   string          `json:"queue,omitempty"`
	Actor   string          `json:"actor,omitempty"`
	Reason  string          `json:"reason,omitempty"`
}

// A Sweep is a holdfast.Purge.
type Sweep struct {
	Rules            []holdfast.Retain `json:"rules"`
	After            holdfast.ID       `json:"after,omitzero"`
	Scan             int               `json:"scan"`
	SpareDeadLetters bool              `json:"spare_dead_letters,omitempty"`
}

// A Deposit is a holdfast.Deposit.
type Deposit struct {
	Hold   Placed  `json:"hold"`
	Tokens float64 `json:"tokens"`
}

// A Listener is a holdfast.Listener.
type Listener struct {
	Name   string   `json:"name"`
	Events []string `json:"events"`
}

// A Thing is a holdfast.Artifact that is kept.
type Thing struct {
	holdfast.Artifact
	ExpireIn time.Duration `json:"expire_in,omitempty"`
	Expired  bool          `json:"expired,omitempty"`
}

// A Change is a holdfast.Change.
type Change struct {
	Records   []holdfast.Record `json:"records,omitempty"`
	Place     []Placed          `json:"place,omitempty"`
	Lift      []Placed          `json:"lift,omitempty"`
	Deposits  []Deposit         `json:"deposits,omitempty"`
	Events    []holdfast.Event  `json:"events,omitempty"`
	Enqueue   []holdfast.Draft  `json:"enqueue,omitempty"`
	Deliver   []holdfast.Draft  `json:"deliver,omitempty"`
	Listen    []Listener        `json:"listen,omitempty"`
	Artifacts []Thing           `json:"artifacts,omitempty"`
}

// each makes values of one sort into values of another.
func each[From, To any](of []From, make func(From) To) []To {
	if of == nil {
		return nil
	}
	all := []To{}
	for _, one := range of {
		all = append(all, make(one))
	}
	return all
}

func changeOf(c holdfast.Change) Change {
	return Change{
		Records: c.Records, Events: c.Events, Enqueue: c.Enqueue, Deliver: c.Deliver, Place: each(c.Place, PlacedOf), Lift: each(c.Lift, PlacedOf),
		Deposits:  each(c.Deposits, func(d holdfast.Deposit) Deposit { return Deposit{PlacedOf(d.Hold), d.Tokens} }),
		Listen:    each(c.Listen, func(l holdfast.Listener) Listener { return Listener(l) }),
		Artifacts: each(c.Artifacts, func(a holdfast.Artifact) Thing { return Thing{a, a.ExpireIn, a.Expired} }),
	}
}

// Change is the change again.
func (c Change) Change() holdfast.Change {
	return holdfast.Change{
		Records: c.Records, Events: c.Events, Enqueue: c.Enqueue, Deliver: c.Deliver, Place: each(c.Place, Placed.Placement), Lift: each(c.Lift, Placed.Placement),
		Deposits: each(c.Deposits, func(d Deposit) holdfast.Deposit { return holdfast.Deposit{Hold: d.Hold.Placement(), Tokens: d.Tokens} }),
		Listen:   each(c.Listen, func(l Listener) holdfast.Listener { return holdfast.Listener(l) }),
		Artifacts: each(c.Artifacts, func(t Thing) holdfast.Artifact {
			t.Artifact.ExpireIn, t.Artifact.Expired = t.ExpireIn, t.Expired
			return t.Artifact
		}),
	}
}

func alterationOf(e holdfast.Edit) Alteration {
	return Alteration{Deed(e.Intervention), e.Seen, e.Patch, e.Args, e.Queue, e.Priority, e.Tags, e.MaxAttempts, e.Delay}
}

// Edit is the edit again.
func (a Alteration) Edit() holdfast.Edit {
	return holdfast.Edit{Intervention: holdfast.Intervention(a.Deed), Seen: a.Seen, Patch: a.Patch, Args: a.Args, Queue: a.Queue, Priority: a.Priority, Tags: a.Tags, MaxAttempts: a.MaxAttempts, Delay: a.Delay}
}
