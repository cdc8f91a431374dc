package api

import (
	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// Asks is a question to a store's role.
type Asks[In any] struct{ Body Exact[In] }

// verb is the route of a store's verb. These are for engines and other Go programs that play on a store from afar, and are as many as a store has
// verbs; everybody else finds what they need among the resources.
func verb[In, Out any](name string, scope, also apikey.Scope, about string) Route[Asks[In], Exact[Out]] {
	return Route[Asks[In], Exact[Out]]{Name: "store-" + name, Method: "POST", Path: "/store/" + name, Scope: scope, Also: also, Tag: "store", Limit: WorkLimit, About: about}
}

func deed[In any](name string, scope apikey.Scope, about string) Route[Asks[In], Nothing] {
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
	StoreGather     = verb[NewGroup, holdfast.Group]("gather", apikey.Worker, apikey.Operator, "Make a group.")
	StoreSeal       = deed[Which]("seal", apikey.Worker, "Seal a group.")
	StorePromote    = verb[Few, Counted]("promote", apikey.Worker, "", "Make jobs claimable whose time has come.")
	StoreReclaim    = verb[Take, ClaimOut]("reclaim", apikey.Worker, "", "Take over what workers that went silent held.")
	StoreExpire     = verb[Take, ClaimOut]("expire", apikey.Worker, "", "Take on jobs that could not start in time.")
	StoreBreach     = verb[Few, []holdfast.ID]("breach", apikey.Worker, "", "Find broken promises of a next attempt.")
	StoreRecords    = verb[ARoom, []holdfast.Record]("records", apikey.Worker, "", "Read a room.")
	StoreKeep       = deed[Change]("keep", apikey.Worker, "Make a change durable. Rooms that only people change ask for an admin.")
	StoreRedrive    = verb[Step, Answers]("redrive", apikey.Worker, "", "Take dead letters on their way.")
	StoreRedriven   = verb[Which, holdfast.Tally]("redriven", apikey.Worker, apikey.Viewer, "Count what has become of what a redrive took.")
	StoreConclude   = verb[Few, Counted]("conclude", apikey.Worker, "", "Do what the end of members brings with it.")
	StoreSequence   = verb[Few, Counted]("sequence", apikey.Worker, "", "Number what happened.")
	StorePurge      = verb[Sweep, holdfast.Purged]("purge", apikey.Worker, "", "Delete ended jobs whose time is up.")
	StoreForget     = verb[Aged, Counted]("forget", apikey.Worker, "", "Delete what is old.")
	StoreArtifacts  = verb[ThingsWanted, []holdfast.Artifact]("artifacts", apikey.Worker, apikey.Viewer, "List artifacts.")
	StoreExperience = verb[Lately, []holdfast.Experience]("experience", apikey.Worker, apikey.Viewer, "Sum up attempts.")
	StoreBehind     = verb[Placed, Counted]("behind", apikey.Viewer, "", "Count what a hold stands before.")
)

// The verbs of a store by which people intervene.
var (
	StoreRetry       = verb[Deed, Counted]("retry", apikey.Operator, "", "Send a job round again.")
	StoreCancel      = verb[Deed, holdfast.State]("cancel", apikey.Operator, "", "Cancel a job.")
	StoreDiscard     = deed[Deed]("discard", apikey.Operator, "Take a job off the dead letters.")
	StoreEdit        = verb[Alteration, holdfast.Job]("edit", apikey.Operator, "", "Change a job that waits.")
	StorePause       = deed[Placed]("pause", apikey.Operator, "Place a hold.")
	StoreResume      = deed[Placed]("resume", apikey.Operator, "Lift a hold.")
	StoreTriage      = deed[Judgement]("triage", apikey.Operator, "Judge an error group.")
	StoreRetryGroup  = verb[Deed, Counted]("retry-group", apikey.Operator, "", "Send round what failed in a group.")
	StoreCancelGroup = deed[Deed]("cancel-group", apikey.Operator, "Cancel a group.")
)

// The verbs of a store that only look.
var (
	StoreJob         = verb[Which, holdfast.Job]("job", apikey.Viewer, apikey.Worker, "One job, to the letter.")
	StoreJobs        = verb[holdfast.Filter, Page[holdfast.Job]]("jobs", apikey.Viewer, apikey.Worker, "Jobs, newest first.")
	StoreHistory     = verb[Which, holdfast.History]("history", apikey.Viewer, "", "What a store can prove about one job.")
	StoreAhead       = verb[Which, Counted]("ahead", apikey.Viewer, "", "Count what is claimed before a job.")
	StoreHolds       = verb[struct{}, []holdfast.Hold]("holds", apikey.Viewer, apikey.Worker, "List holds.")
	StoreWorkers     = verb[struct{}, []holdfast.Presence]("workers", apikey.Viewer, apikey.Worker, "List workers.")
	StoreCounts      = verb[struct{}, []holdfast.Count]("counts", apikey.Viewer, "", "Count jobs.")
	StoreAudit       = verb[struct{}, []holdfast.Finding]("audit", apikey.Operator, "", "Look for broken promises.")
	StoreErrors      = verb[ErrorsWanted, Page[holdfast.ErrorGroup]]("error-groups", apikey.Viewer, "", "List error groups.")
	StoreEvents      = verb[Stretch, []holdfast.Event]("events", apikey.Viewer, "", "The story of what is no job.")
	StoreGroup       = verb[Which, holdfast.Group]("group", apikey.Viewer, apikey.Worker, "One group.")
	StoreGroups      = verb[GroupsWanted, Page[holdfast.Group]]("groups", apikey.Viewer, "", "List groups.")
	StoreFeed        = verb[Stretch, holdfast.Feed]("feed", apikey.Viewer, "", "What happened after a number.")
	StoreTombstones  = verb[StonesWanted, Page[holdfast.Tombstone]]("tombstones", apikey.Viewer, "", "List what remains of purged jobs.")
	StorePurgeCounts = verb[struct{}, []holdfast.PurgeCount]("purge-counts", apikey.Viewer, "", "Count what was purged.")
)
