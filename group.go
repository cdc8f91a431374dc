package holdfast

import (
	"encoding/json"
	"errors"
	"time"
)

// A GroupState is where a group stands. It is a function of its members, never of a counter.
type GroupState string

const (
	GroupOpen       GroupState = "open"       // takes members; those it has may be at work already
	GroupProcessing GroupState = "processing" // sealed, and some member has not ended
	GroupReady      GroupState = "ready"      // all members are complete, or as many as the quorum asks for
	GroupPartial    GroupState = "partial"    // some are complete
	GroupFailed     GroupState = "failed"     // none is
	GroupCancelled  GroupState = "cancelled"  // ended by a person
	GroupExpired    GroupState = "expired"    // its time was up before its members had ended
)

// Settled reports whether the group has an outcome in its present generation.
func (s GroupState) Settled() bool { return s != "" && s != GroupOpen && s != GroupProcessing }

// A Group is work that belongs together. It is made (Enqueuer.Gather), drafts name it (Draft.Group), and it is sealed: no
// members come after that. When every member has ended, Grouper.Conclude settles its outcome, exactly once per generation, in one
// transaction with the event that says so and the jobs that continue it. A manual retry or redrive of a member opens a new
// generation: the group is processing again, and will be settled again.
type Group struct {
	ID     ID     `json:"id"` // made by Prepare when zero
	Name   string `json:"name,omitempty"`
	Owner  string `json:"owner,omitempty"`
	Parent ID     `json:"parent,omitzero"` // the group it is a member of; a ready group counts there as complete, any other outcome as failed
	// Quorum is how many complete members make the group ready although others are not; 0: all of them. It is judged when
	// every member has ended, not before.
	Quorum   int           `json:"quorum,omitempty"`
	ExpireIn time.Duration `json:"-"`                  // when it is made: members that have not ended by then are cancelled
	ExpireAt time.Time     `json:"expire_at,omitzero"` // or by this instant; at most one of the two
	Then     []Then        `json:"then,omitempty"`     // what follows an outcome

	// What the store says.
	State      GroupState `json:"state"`
	Generation int        `json:"generation"` // starts at 1 and grows when a settled group is opened again
	CreatedAt  time.Time  `json:"created_at"`
	SealedAt   time.Time  `json:"sealed_at,omitzero"`
	SettledAt  time.Time  `json:"settled_at,omitzero"` // of this generation
	Members    Members    `json:"members"`
	AsOf       time.Time  `json:"as_of"`
}

// Then is a job that continues a group. It is enqueued in the transaction that settles the outcome.
type Then struct {
	On    GroupState `json:"on,omitempty"` // which outcome; empty: any of ready, partial and failed
	Draft Draft      `json:"draft"`        // without arguments it gets {"group", "state", "generation"}; its owner is the group's unless it names one
}

// Members counts the members of a group by where they stand. Groups inside a group are members too.
type Members struct {
	Total      int `json:"total"`
	Waiting    int `json:"waiting"` // for other members
	Queued     int `json:"queued"`
	Processing int `json:"processing"` // a group that has not settled is processing
	Complete   int `json:"complete"`
	Failed     int `json:"failed"`
	Cancelled  int `json:"cancelled"`
}

// Live counts the members that have not ended.
func (m Members) Live() int { return m.Waiting + m.Queued + m.Processing }

// Outcome is what the members make of a group once none of them is live. It is the one place where that is decided.
func (m Members) Outcome(quorum int) GroupState {
	switch {
	case m.Complete == m.Total, quorum > 0 && m.Complete >= quorum:
		return GroupReady
	case m.Complete > 0:
		return GroupPartial
	}
	return GroupFailed
}

// Prepare fills in the id and refuses a group that makes no sense, naming every problem at once. Stores call it first.
func (g *Group) Prepare() error {
	if g.ID.IsZero() {
		g.ID = NewID()
	}
	var p problems
	p.text("group name", g.Name)
	p.text("owner", g.Owner)
	if err := (&Draft{Owner: g.Owner}).Reserved(); err != nil {
		p = append(p, err)
	}
	if g.Quorum < 0 || g.Quorum > 100_000_000 {
		p.add("a quorum of %d: give the number of members that must complete, or 0 for all", g.Quorum)
	}
	if g.Parent == g.ID {
		p.add("a group inside itself: name another parent")
	}
	times := Draft{ExpireIn: g.ExpireIn, ExpireAt: g.ExpireAt}
	times.checkTimes(&p)
	if len(g.Then) > MaxTags {
		p.add("%d continuations: the limit is %d", len(g.Then), MaxTags)
	}
	for i := range g.Then {
		t := &g.Then[i]
		switch t.On {
		case "", GroupReady, GroupPartial, GroupFailed, GroupCancelled, GroupExpired:
		default:
			p.add("a continuation on %.40q: use ready, partial, failed, cancelled, expired or nothing", t.On)
		}
		if !t.Draft.Group.IsZero() || len(t.Draft.After) > 0 || !t.Draft.ID.IsZero() {
			p.add("a continuation with an id, a group or something to wait for: leave them out")
		}
		draft := t.Draft
		if err := draft.Prepare(); err != nil {
			p.add("continuation %d: %v", i+1, err)
		}
	}
	if body, err := json.Marshal(g.Then); err != nil || len(body) > MaxArgs {
		p.add("continuations of %d bytes: the limit is %d", len(body), MaxArgs)
	}
	return errors.Join(p...)
}

// Continuations are the drafts that follow an outcome, ready to be enqueued.
func (g *Group) Continuations() []Draft {
	var drafts []Draft
	for _, t := range g.Then {
		whichever := t.On == "" && (g.State == GroupReady || g.State == GroupPartial || g.State == GroupFailed)
		if t.On != g.State && !whichever {
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

// A GroupFilter narrows a list of groups. Empty fields do not narrow.
type GroupFilter struct {
	State  GroupState
	Owner  string
	Name   string
	Parent ID
	Limit  int    // at most 200; 50 when zero
	Cursor string // from the page before
}
