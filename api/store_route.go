package api

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/key"
)

// Asks is a question to a store's role.
type Asks[In any] struct{ Body Exact[In] }

// verb is the route of a store's verb. These are for engines and other Go programs that play on a store from afar, and are as many as a store has
// verbs; everybody else finds what they need among the resources.
func verb[In, Out any](name string, scope, also key.Scope, about string) Route[Asks[In], Exact[Out]] {
	return Route[Asks[In], Exact[Out]]{Name: "store-" + name, Method: "POST", Path: "/store/" + name, Scope: scope, Also: also, Tag: "store", Limit: WorkLimit, About: about}
}

func deed[In any](name string, scope key.Scope, about string) Route[Asks[In], Nothing] {
	return Route[Asks[In], Nothing]{Name: "store-" + name, Method: "POST", Path: "/store/" + name, Scope: scope, Tag: "store", Limit: WorkLimit, About: about}
}

// The filters of lists have one form in questions to a store.
type (
	// ErrorsWanted is a holdfast.ErrorFilter.
	ErrorsWanted struct {
		Fingerprint string          `json:"fingerprint,omitempty"`
		Status      holdfast.Status `json:"status,omitempty"`
		Code        string          `json:"code,omitempty"`
		Kind        string          `json:"kind,omitempty"`
		Limit       int             `json:"limit,omitempty"`
		Cursor      string          `json:"cursor,omitempty"`
	}
	// GroupsWanted is a holdfast.GroupFilter.
	GroupsWanted struct {
		State  holdfast.GroupState `json:"state,omitempty"`
		Owner  string              `json:"owner,omitempty"`
		Name   string              `json:"name,omitempty"`
		Parent holdfast.ID         `json:"parent,omitzero"`
		Limit  int                 `json:"limit,omitempty"`
		Cursor string              `json:"cursor,omitempty"`
	}
	// StonesWanted is a holdfast.TombstoneFilter.
	StonesWanted struct {
		Job    holdfast.ID `json:"job,omitzero"`
		Kind   string      `json:"kind,omitempty"`
		Limit  int         `json:"limit,omitempty"`
		Cursor string      `json:"cursor,omitempty"`
	}
	// ThingsWanted is a holdfast.ArtifactFilter.
	ThingsWanted struct {
		Job   holdfast.ID `json:"job,omitzero"`
		Due   bool        `json:"due,omitempty"`
		Limit int         `json:"limit,omitempty"`
	}
)

// The verbs of a store that engines need: moving what time moves, and keeping what they remember.
var (
	StoreGather     = verb[NewGroup, holdfast.Group]("gather", key.Worker, key.Operator, "Make a group.")
	StoreSeal       = deed[Which]("seal", key.Worker, "Seal a group.")
	StorePromote    = verb[Few, Counted]("promote", key.Worker, "", "Make jobs claimable whose time has come.")
	StoreReclaim    = verb[Take, ClaimOut]("reclaim", key.Worker, "", "Take over what workers that went silent held.")
	StoreExpire     = verb[Take, ClaimOut]("expire", key.Worker, "", "Take on jobs that could not start in time.")
	StoreBreach     = verb[Few, []holdfast.ID]("breach", key.Worker, "", "Find broken promises of a next attempt.")
	StoreRecords    = verb[ARoom, []holdfast.Record]("records", key.Worker, "", "Read a room.")
	StoreKeep       = deed[Change]("keep", key.Worker, "Make a change durable. Rooms that only people change ask for an admin.")
	StoreRedrive    = verb[Step, Answers]("redrive", key.Worker, "", "Take dead letters on their way.")
	StoreRedriven   = verb[Which, holdfast.Tally]("redriven", key.Worker, key.Viewer, "Count what has become of what a redrive took.")
	StoreConclude   = verb[Few, Counted]("conclude", key.Worker, "", "Do what the end of members brings with it.")
	StoreSequence   = verb[Few, Counted]("sequence", key.Worker, "", "Number what happened.")
	StorePurge      = verb[Sweep, holdfast.Purged]("purge", key.Worker, "", "Delete ended jobs whose time is up.")
	StoreForget     = verb[Aged, Counted]("forget", key.Worker, "", "Delete what is old.")
	StoreArtifacts  = verb[ThingsWanted, []holdfast.Artifact]("artifacts", key.Worker, key.Viewer, "List artifacts.")
	StoreExperience = verb[Lately, []holdfast.Experience]("experience", key.Worker, key.Viewer, "Sum up attempts.")
	StoreBehind     = verb[Placed, Counted]("behind", key.Viewer, "", "Count what a hold stands before.")
)

// The verbs of a store by which people intervene.
var (
	StoreRetry       = verb[Deed, Counted]("retry", key.Operator, "", "Send a job round again.")
	StoreCancel      = verb[Deed, holdfast.State]("cancel", key.Operator, "", "Cancel a job.")
	StoreDiscard     = deed[Deed]("discard", key.Operator, "Take a job off the dead letters.")
	StoreEdit        = verb[Alteration, holdfast.Job]("edit", key.Operator, "", "Change a job that waits.")
	StorePause       = deed[Placed]("pause", key.Operator, "Place a hold.")
	StoreResume      = deed[Placed]("resume", key.Operator, "Lift a hold.")
	StoreTriage      = deed[Judgement]("triage", key.Operator, "Judge an error group.")
	StoreRetryGroup  = verb[Deed, Counted]("retry-group", key.Operator, "", "Send round what failed in a group.")
	StoreCancelGroup = deed[Deed]("cancel-group", key.Operator, "Cancel a group.")
)

// The verbs of a store that only look.
var (
	StoreJob         = verb[Which, holdfast.Job]("job", key.Viewer, key.Worker, "One job, to the letter.")
	StoreJobs        = verb[holdfast.Filter, Page[holdfast.Job]]("jobs", key.Viewer, key.Worker, "Jobs, newest first.")
	StoreHistory     = verb[Which, holdfast.History]("history", key.Viewer, "", "What a store can prove about one job.")
	StoreAhead       = verb[Which, Counted]("ahead", key.Viewer, "", "Count what is claimed before a job.")
	StoreHolds       = verb[struct{}, []holdfast.Hold]("holds", key.Viewer, key.Worker, "List holds.")
	StoreWorkers     = verb[struct{}, []holdfast.Presence]("workers", key.Viewer, key.Worker, "List workers.")
	StoreCounts      = verb[struct{}, []holdfast.Count]("counts", key.Viewer, "", "Count jobs.")
	StoreAudit       = verb[struct{}, []holdfast.Finding]("audit", key.Operator, "", "Look for broken promises.")
	StoreErrors      = verb[ErrorsWanted, Page[holdfast.ErrorGroup]]("error-groups", key.Viewer, "", "List error groups.")
	StoreEvents      = verb[Stretch, []holdfast.Event]("events", key.Viewer, "", "The story of what is no job.")
	StoreGroup       = verb[Which, holdfast.Group]("group", key.Viewer, key.Worker, "One group.")
	StoreGroups      = verb[GroupsWanted, Page[holdfast.Group]]("groups", key.Viewer, "", "List groups.")
	StoreFeed        = verb[Stretch, holdfast.Feed]("feed", key.Viewer, "", "What happened after a number.")
	StoreTombstones  = verb[StonesWanted, Page[holdfast.Tombstone]]("tombstones", key.Viewer, "", "List what remains of purged jobs.")
	StorePurgeCounts = verb[struct{}, []holdfast.PurgeCount]("purge-counts", key.Viewer, "", "Count what was purged.")
)
