package holdfast

import (
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast/internal/check"
)

// A GroupState is the state of a group. It follows from the states of the members.
type GroupState string

const (
	GroupOpen       GroupState = "open"       // takes members; existing members may already run
	GroupProcessing GroupState = "processing" // sealed, and at least one member has not ended
	GroupReady      GroupState = "ready"      // all members that were not skipped are complete, or at least the quorum
	GroupPartial    GroupState = "partial"    // some members are complete
	GroupFailed     GroupState = "failed"     // no member is complete
	GroupCancelled  GroupState = "cancelled"  // cancelled by a person
	GroupExpired    GroupState = "expired"    // reached its expiry before all members had ended
)

// Settled reports whether the group has an outcome in its current generation.
func (s GroupState) Settled() bool { return s != "" && s != GroupOpen && s != GroupProcessing }

// A Group is a set of jobs that end together. A program creates it (Enqueuer.CreateGroup), enqueues drafts that name it
// (Draft.Group) and seals it (Enqueuer.SealGroup); after that it takes no more members. When every member has ended,
// the store settles the outcome exactly once per generation, in one transaction with the event and the continuation jobs.
// A manual retry or redrive of a member starts a new generation: the group is processing again and settles again.
type Group struct {
	ID     ID     `json:"id"` // Prepare makes one when zero
	Name   string `json:"name,omitempty"`
	Owner  string `json:"owner,omitempty"`
	Parent ID     `json:"parent,omitzero"` // group of which this group is a member; there a ready group counts as complete and any other outcome as failed
	// Quorum is the number of complete members that makes the group ready even if others are not complete; 0: all of them. It
	// is evaluated after every member has ended.
	Quorum   int           `json:"quorum,omitempty"`
	ExpireIn time.Duration `json:"-"`                  // at creation: members that have not ended after this time are cancelled
	ExpireAt time.Time     `json:"expire_at,omitzero"` // the same as a point in time; at creation not together with ExpireIn
	Then     []Then        `json:"then,omitempty"`     // jobs to enqueue when the group settles

	// The store sets the following fields.

	State      GroupState `json:"state"`
	Generation int        `json:"generation"` // starts at 1; grows when a settled group is processing again
	CreatedAt  time.Time  `json:"created_at"`
	SealedAt   time.Time  `json:"sealed_at,omitzero"`
	SettledAt  time.Time  `json:"settled_at,omitzero"` // of this generation
	Members    Members    `json:"members"`
	AsOf       time.Time  `json:"as_of"`
}

// A Then is a continuation: a job that the store enqueues in the transaction that settles a group.
type Then struct {
	On    GroupState `json:"on,omitempty"` // outcome after which it is enqueued; empty: ready, partial and failed
	Draft Draft      `json:"draft"`        // without arguments it gets {"group", "state", "generation"}; without an owner it gets the group's
}

// Members counts the members of a group by state. Nested groups count as members.
type Members struct {
	Total      int `json:"total"`
	Waiting    int `json:"waiting"` // for other members to end
	Queued     int `json:"queued"`
	Processing int `json:"processing"` // includes nested groups that have not settled
	Complete   int `json:"complete"`
	Failed     int `json:"failed"`
	Cancelled  int `json:"cancelled"`
	Skipped    int `json:"skipped"` // not needed, because the outcome for which they waited did not come; the group's outcome does not depend on them
}

// Live returns the number of members that have not ended.
func (m Members) Live() int { return m.Waiting + m.Queued + m.Processing }

// Outcome returns the state of a group whose members have all ended. Nothing else computes it.
func (m Members) Outcome(quorum int) GroupState {
	switch {
	case m.Complete == m.Total-m.Skipped, quorum > 0 && m.Complete >= quorum:
		return GroupReady
	case m.Complete > 0:
		return GroupPartial
	}
	return GroupFailed
}

// Prepare sets the id if it is zero and validates the group. The error wraps ErrInvalid and names every problem. Stores
// call it first.
func (g *Group) Prepare() error {
	if g.ID.IsZero() {
		g.ID = NewID()
	}
	var p check.Problems
	p.Text("group name", g.Name)
	p.Text("owner", g.Owner)
	if err := (&Draft{Owner: g.Owner}).Reserved(); err != nil {
		p.Add("%v", err)
	}
	if g.Quorum < 0 || g.Quorum > 100_000_000 {
		p.Add("a quorum of %d: give the number of members that must complete, or 0 for all", g.Quorum)
	}
	if g.Parent == g.ID {
		p.Add("a group cannot be its own parent: name another parent")
	}
	times := Draft{ExpireIn: g.ExpireIn, ExpireAt: g.ExpireAt}
	times.checkTimes(&p)
	if len(g.Then) > check.MaxTags {
		p.Add("%d continuations: the limit is %d", len(g.Then), check.MaxTags)
	}
	for i := range g.Then {
		t := &g.Then[i]
		switch t.On {
		case "", GroupReady, GroupPartial, GroupFailed, GroupCancelled, GroupExpired:
		default:
			p.Add("a continuation on %.40q: use ready, partial, failed, cancelled or expired, or leave it empty", t.On)
		}
		if !t.Draft.Group.IsZero() || len(t.Draft.After)+len(t.Draft.When) > 0 || t.Draft.Step != "" || !t.Draft.ID.IsZero() {
			p.Add("a continuation with an id, a group, a step or jobs to wait for: remove them")
		}
		draft := t.Draft
		if err := draft.Prepare(); err != nil {
			p.Add("continuation %d: %v", i+1, err)
		}
	}
	if body, err := json.Marshal(g.Then); err != nil || len(body) > check.MaxArgs {
		p.Add("continuations of %d bytes: the limit is %d", len(body), check.MaxArgs)
	}
	return p.Err(invalid)
}

// Continuations returns the drafts to enqueue for the group's current state, with default arguments and owner filled in.
func (g *Group) Continuations() []Draft {
	var drafts []Draft
	for _, t := range g.Then {
		byDefault := t.On == "" && (g.State == GroupReady || g.State == GroupPartial || g.State == GroupFailed)
		if t.On != g.State && !byDefault {
			continue
		}
		d := t.Draft
		if len(d.Args) == 0 {
			d.Args, _ = json.Marshal(map[string]any{"group": g.ID, "state": g.State, "generation": g.Generation}) // these always marshal
		}
		if d.Owner == "" {
			d.Owner = g.Owner
		}
		drafts = append(drafts, d)
	}
	return drafts
}
