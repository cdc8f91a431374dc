package api

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
)

// HoldsOut are the holds in force.
type HoldsOut struct {
	Holds []ops.Held `json:"holds"`
}

// PauseIn places a hold.
type PauseIn struct {
	Asked
	Body HoldBody
}

// HoldBody is a hold as it is placed.
type HoldBody struct {
	HoldName
	Word
	Retries  bool           `json:"retries,omitempty" doc:"keep back only jobs that have failed before"`
	AtMost   int            `json:"at_most,omitempty" doc:"let so many through at once; 0: none"`
	Rate     *holdfast.Rate `json:"rate,omitempty" doc:"let jobs through as from a bucket"`
	For      time.Duration  `json:"for,omitempty" doc:"how long; until it is lifted when it is left out"`
	Expected time.Time      `json:"expected,omitzero" doc:"when whoever keeps it expects to change it; it does not end by itself"`
}

// LiftIn lifts a hold.
type LiftIn struct {
	Asked
	Body LiftBody
}

// LiftBody says which hold is lifted.
type LiftBody struct {
	HoldName
	Word
}

// A HoldName is what is held, and by whom: exactly one of queue, kind, owner, dependency and tag. A name that ends in * stands for every name that
// begins so.
type HoldName struct {
	Queue      string `json:"queue,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Owner      string `json:"owner,omitempty"`
	Dependency string `json:"dependency,omitempty"`
	Tag        string `json:"tag,omitempty"`
	Source     string `json:"source,omitempty" doc:"who keeps it: operator when it is left out"`
}

// Hold is a hold of that name.
func (n HoldName) Hold() holdfast.Hold {
	return holdfast.Hold{Queue: n.Queue, Kind: n.Kind, Owner: n.Owner, Dependency: n.Dependency, Tag: n.Tag, Source: n.Source}
}

func holdName(h holdfast.Hold) HoldName {
	return HoldName{h.Queue, h.Kind, h.Owner, h.Dependency, h.Tag, h.Source}
}

// QueuesOut is where the jobs of each queue stand.
type QueuesOut struct {
	Queues []ops.QueueStats `json:"queues"`
}

// PauseNamed pauses something that has a name.
type PauseNamed struct {
	ByName
	Asked
	Body PauseBody
}

// PauseBody says for how long.
type PauseBody struct {
	Word
	For time.Duration `json:"for,omitempty" doc:"how long; until it is resumed when it is left out"`
}

// SharesOut are the weights that somebody has set.
type SharesOut struct {
	Shares []ops.Share `json:"shares"`
}

// ShareIn sets the weight of an owner.
type ShareIn struct {
	Owner string `path:"owner" doc:"whose weight; escape what is not a letter or digit, a slash too"`
	Asked
	Body ShareBody
}

// ShareBody says how much an owner weighs.
type ShareBody struct {
	Word
	Weight float64 `json:"weight" doc:"an owner of weight 3 is given three jobs where another is given one; 1 is ordinary"`
}

// The routes of holds, and of what is divided.
var (
	ListHolds   = Route[struct{}, HoldsOut]{Name: "list-holds", Method: "GET", Path: "/holds", Scope: apikey.Viewer, Tag: "holds", About: "The holds in force, and how many jobs wait behind each."}
	PlaceHold   = Route[PauseIn, Nothing]{Name: "place-hold", Method: "POST", Path: "/holds", Scope: apikey.Operator, Tag: "holds", About: "Hold a queue, a kind, an owner, a dependency or a tag: its jobs stay queued and spend nothing."}
	LiftHold    = Route[LiftIn, Nothing]{Name: "lift-hold", Method: "POST", Path: "/holds/lift", Scope: apikey.Operator, Tag: "holds", About: "Lift a hold. Lifting one that is not there is no error."}
	ListQueues  = Route[struct{}, QueuesOut]{Name: "list-queues", Method: "GET", Path: "/queues", Scope: apikey.Viewer, Tag: "holds", About: "Where the jobs of each queue stand."}
	PauseQueue  = Route[PauseNamed, Nothing]{Name: "pause-queue", Method: "POST", Path: "/queues/{name}/pause", Scope: apikey.Operator, Tag: "holds", About: "Hold a queue."}
	ResumeQueue = Route[OnNamed, Nothing]{Name: "resume-queue", Method: "POST", Path: "/queues/{name}/resume", Scope: apikey.Operator, Tag: "holds", About: "Lift the hold that an operator placed on a queue."}
	ListShares  = Route[struct{}, SharesOut]{Name: "list-shares", Method: "GET", Path: "/shares", Scope: apikey.Viewer, Tag: "holds", About: "The owners whose weight somebody has set."}
	SetShare    = Route[ShareIn, Nothing]{Name: "set-share", Method: "PUT", Path: "/shares/{owner}", Scope: apikey.Operator, Tag: "holds", About: "Set the weight of an owner where owners compete; 1 forgets it."}
)
