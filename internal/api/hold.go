package api

import (
	"time"

	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/ops"
	"github.com/holdfastdev/holdfast/store"
)

// HoldsOut lists the holds in force.
type HoldsOut struct {
	Holds []ops.HoldStatus `json:"holds" doc:"Holds in force."`
}

// HeldLinesOut lists the lines of order keys that dead letters hold.
type HeldLinesOut struct {
	Lines []store.HeldLine `json:"lines" doc:"The first 100 lines, the oldest dead letter first."`
	More  bool             `json:"more" doc:"There are more lines than these."`
}

// PauseIn is the request to place a hold.
type PauseIn struct {
	Asked
	Body HoldBody
}

// HoldBody is the hold to place.
type HoldBody struct {
	HoldName
	Word
	Retries  bool          `json:"retries,omitempty" doc:"Hold only jobs that have failed before."`
	AtMost   int           `json:"at_most,omitempty" doc:"How many of the held jobs may run at the same time; 0 for none."`
	Rate     *store.Rate   `json:"rate,omitempty" doc:"Rate at which held jobs may start (a token bucket)."`
	For      time.Duration `json:"for,omitempty" doc:"How long the hold lasts; until it is lifted when left out."`
	Expected time.Time     `json:"expected,omitzero" doc:"When the hold is expected to change. For information: it does not end the hold."`
}

// LiftIn is the request to lift a hold.
type LiftIn struct {
	Asked
	Body LiftBody
}

// LiftBody names the hold to lift.
type LiftBody struct {
	HoldName
	Word
}

// A HoldName identifies a hold: exactly one of queue, kind, owner, dependency and tag, and the source. A name that ends in * matches every name with that
// prefix.
type HoldName struct {
	Queue      string `json:"queue,omitempty" doc:"Queue whose jobs are held."`
	Kind       string `json:"kind,omitempty" doc:"Kind whose jobs are held."`
	Owner      string `json:"owner,omitempty" doc:"Owner whose jobs are held."`
	Dependency string `json:"dependency,omitempty" doc:"Dependency whose jobs are held."`
	Tag        string `json:"tag,omitempty" doc:"Tag whose jobs are held."`
	Source     string `json:"source,omitempty" doc:"Source of the hold; operator when left out."`
}

// Hold returns the hold with this name.
func (n HoldName) Hold() store.Hold {
	return store.Hold{Queue: n.Queue, Kind: n.Kind, Owner: n.Owner, Dependency: n.Dependency, Tag: n.Tag, Source: n.Source}
}

// HoldNameOf returns the name and the source of a hold.
func HoldNameOf(h store.Hold) HoldName {
	return HoldName{h.Queue, h.Kind, h.Owner, h.Dependency, h.Tag, h.Source}
}

// QueuesOut lists the queues.
type QueuesOut struct {
	Queues []ops.QueueStats `json:"queues" doc:"Number of jobs of each queue, by state."`
}

// PauseNamed is the request to pause something that has a name.
type PauseNamed struct {
	ByName
	Asked
	Body PauseBody
}

// PauseBody is the duration of a pause.
type PauseBody struct {
	Word
	For time.Duration `json:"for,omitempty" doc:"How long the pause lasts; until it is resumed when left out."`
}

// SharesOut lists the weights that were set.
type SharesOut struct {
	Shares []ops.Share `json:"shares" doc:"Owners whose weight was set."`
}

// ShareIn is the request to set the weight of an owner.
type ShareIn struct {
	Owner string `path:"owner" doc:"Owner. Percent-encode everything that is not a letter or a digit, also a slash (%2F)."`
	Asked
	Body ShareBody
}

// ShareBody is the weight of an owner.
type ShareBody struct {
	Word
	Weight float64 `json:"weight" doc:"An owner of weight 3 gets three jobs for each job of an owner of weight 1. 1 is the default."`
}

// The routes of holds, queues and shares.
var (
	ListHeldLines = Route[struct{}, HeldLinesOut]{Name: "list-held-lines", Method: "GET", Path: "/holds/lines", Scope: apikey.Viewer, Tag: "holds", About: "List held lines. The lines of order keys in which jobs wait because a dead letter holds them. A line continues when the dead letter is retried and completes, or is discarded."}
	ListHolds     = Route[struct{}, HoldsOut]{Name: "list-holds", Method: "GET", Path: "/holds", Scope: apikey.Viewer, Tag: "holds", About: "List holds. The holds in force, and how many jobs wait behind each."}
	PlaceHold     = Route[PauseIn, Nothing]{Name: "place-hold", Method: "POST", Path: "/holds", Scope: apikey.Operator, Tag: "holds", About: "Place a hold. Jobs of a queue, a kind, an owner, a dependency or a tag stay queued at no cost. Errors: conflict (the source is a breaker; open or close the breaker instead)."}
	LiftHold      = Route[LiftIn, Nothing]{Name: "lift-hold", Method: "POST", Path: "/holds/lift", Scope: apikey.Operator, Tag: "holds", About: "Lift a hold. Lifting a hold that does not exist is not an error. Errors: conflict (the source is a breaker; open or close the breaker instead)."}
	ListQueues    = Route[struct{}, QueuesOut]{Name: "list-queues", Method: "GET", Path: "/queues", Scope: apikey.Viewer, Tag: "holds", About: "List queues. Number of jobs in each, by state."}
	PauseQueue    = Route[PauseNamed, Nothing]{Name: "pause-queue", Method: "POST", Path: "/queues/{name}/pause", Scope: apikey.Operator, Tag: "holds", About: "Pause a queue. Places an operator's hold on it."}
	ResumeQueue   = Route[OnNamed, Nothing]{Name: "resume-queue", Method: "POST", Path: "/queues/{name}/resume", Scope: apikey.Operator, Tag: "holds", About: "Resume a queue. Lifts the operator's hold on it."}
	ListShares    = Route[struct{}, SharesOut]{Name: "list-shares", Method: "GET", Path: "/shares", Scope: apikey.Viewer, Tag: "holds", About: "List shares. The owners whose weight was set."}
	SetShare      = Route[ShareIn, Nothing]{Name: "set-share", Method: "PUT", Path: "/shares/{owner}", Scope: apikey.Operator, Tag: "holds", About: "Set the weight of an owner. It decides how owners share workers when they compete; 1 removes the setting."}
)
