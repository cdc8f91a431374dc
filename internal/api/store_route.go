package api

import (
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

// Asks is the request of a store route: the JSON of In, byte for byte.
type Asks[In any] struct{ Body Exact[In] }

// AsksJob is the request for a job as a store returns it.
type AsksJob struct {
	Wait time.Duration `query:"wait" doc:"Wait until the job has ended, at most this long and at most 30s."`
	Body Exact[Which]
}

// storeRoute makes the route of a store method. These routes are for engines and other Go programs that use a store through a server; there is one for each
// method of a store. Other clients find what they need in the other sections.
func storeRoute[In, Out any](name string, scope, also apikey.Scope, about string) Route[Asks[In], Exact[Out]] {
	return Route[Asks[In], Exact[Out]]{Name: "store-" + name, Method: "POST", Path: "/store/" + name, Scope: scope, Also: also, Tag: "store", Limit: WorkLimit, About: about}
}

// storeAction is verb for a method without an answer.
func storeAction[In any](name string, scope apikey.Scope, about string) Route[Asks[In], Nothing] {
	return Route[Asks[In], Nothing]{Name: "store-" + name, Method: "POST", Path: "/store/" + name, Scope: scope, Tag: "store", Limit: WorkLimit, About: about}
}

// The filters of lists, as JSON bodies.
type (
	// ErrorsWanted is the JSON form of a store.ErrorFilter.
	ErrorsWanted struct {
		Fingerprint string       `json:"fingerprint,omitempty" doc:"Only this error group."`
		Status      store.Status `json:"status,omitempty" doc:"Only error groups with this status."`
		Code        string       `json:"code,omitempty" doc:"Only error groups with this code."`
		Kind        string       `json:"kind,omitempty" doc:"Only error groups seen in jobs of this kind."`
		Limit       int          `json:"limit,omitempty" doc:"Page size."`
		Cursor      string       `json:"cursor,omitempty" doc:"Cursor of the previous page."`
	}
	// GroupsWanted is the JSON form of a store.GroupFilter.
	GroupsWanted struct {
		State  holdfast.GroupState `json:"state,omitempty" doc:"Only groups in this state."`
		Owner  string              `json:"owner,omitempty" doc:"Only groups of this owner."`
		Name   string              `json:"name,omitempty" doc:"Only groups with this name."`
		Parent holdfast.ID         `json:"parent,omitzero" doc:"Only groups that are members of this group."`
		Limit  int                 `json:"limit,omitempty" doc:"Page size."`
		Cursor string              `json:"cursor,omitempty" doc:"Cursor of the previous page."`
	}
	// StonesWanted is the JSON form of a store.TombstoneFilter.
	StonesWanted struct {
		Job    holdfast.ID `json:"job,omitzero" doc:"Only the tombstone of this job."`
		Kind   string      `json:"kind,omitempty" doc:"Only tombstones of jobs of this kind."`
		Limit  int         `json:"limit,omitempty" doc:"Page size."`
		Cursor string      `json:"cursor,omitempty" doc:"Cursor of the previous page."`
	}
	// ThingsWanted is the JSON form of a store.ArtifactFilter.
	ThingsWanted struct {
		Job   holdfast.ID `json:"job,omitzero" doc:"Only artifacts of this job."`
		Due   bool        `json:"due,omitempty" doc:"Only artifacts that are due for deletion."`
		Limit int         `json:"limit,omitempty" doc:"Maximum number of artifacts."`
	}
)

// The store routes that engines need: duties, and the records in which engines keep state.
var (
	StoreCreateGroup     = storeRoute[NewGroup, holdfast.Group]("create-group", apikey.Worker, apikey.Operator, "Create a group.")
	StoreSealGroup       = storeAction[Which]("seal-group", apikey.Worker, "Seal a group.")
	StorePromote         = storeRoute[Few, Counted]("promote", apikey.Worker, "", "Make jobs claimable whose start time has come.")
	StoreReclaim         = storeRoute[Take, ClaimOut]("reclaim", apikey.Worker, "", "Take over jobs whose leases have expired.")
	StoreExpire          = storeRoute[Take, ClaimOut]("expire", apikey.Worker, "", "Claim jobs that have expired before they could start.")
	StoreMissedDeadlines = storeRoute[Few, []holdfast.ID]("missed-deadlines", apikey.Worker, "", "Find jobs whose promised next attempt is late.")
	StoreRecords         = storeRoute[InNamespace, []store.Record]("records", apikey.Worker, "", "Read the records of a namespace.")
	StoreApply           = storeAction[Change]("apply", apikey.Worker, "Store a change. Records that only people change need a key of scope admin. Errors: conflict (a record has changed since it was read).")
	StoreRedrive         = storeRoute[Step, Answers]("redrive", apikey.Worker, "", "Take dead letters for a redrive.")
	StoreRedriven        = storeRoute[Which, store.RedriveCounts]("redriven", apikey.Worker, apikey.Viewer, "Count the jobs of a redrive by their current state.")
	StoreAdvanceGroups   = storeRoute[Few, Counted]("advance-groups", apikey.Worker, "", "Settle groups whose members have ended. Starts or cancels members that waited for others.")
	StoreSequence        = storeRoute[Few, Counted]("sequence", apikey.Worker, "", "Number new events for the feed.")
	StorePurge           = storeRoute[Sweep, store.PurgeResult]("purge", apikey.Worker, "", "Delete ended jobs whose retention time is over.")
	StoreDeleteHistory   = storeRoute[Aged, Counted]("delete-history", apikey.Worker, "", "Delete old history.")
	StoreArtifacts       = storeRoute[ThingsWanted, []store.Artifact]("artifacts", apikey.Worker, apikey.Viewer, "List artifacts.")
	StoreRetryStats      = storeRoute[Lately, []store.RetryStats]("retry-stats", apikey.Worker, apikey.Viewer, "Summarise attempts by kind.")
	StoreCountHeld       = storeRoute[Placed, Counted]("count-held", apikey.Viewer, "", "Count the due jobs that a hold keeps back.")
)

// The store routes by which people act on jobs.
var (
	StoreRetry       = storeRoute[Deed, Counted]("retry", apikey.Operator, "", "Retry a job.")
	StoreCancel      = storeRoute[Deed, holdfast.State]("cancel", apikey.Operator, "", "Cancel a job.")
	StoreDiscard     = storeAction[Deed]("discard", apikey.Operator, "Discard a dead letter.")
	StoreEdit        = storeRoute[Alteration, holdfast.Job]("edit", apikey.Operator, "", "Edit a job.")
	StorePause       = storeAction[Placed]("pause", apikey.Operator, "Place a hold.")
	StoreResume      = storeAction[Placed]("resume", apikey.Operator, "Lift a hold.")
	StoreTriage      = storeAction[Judgement]("triage", apikey.Operator, "Triage an error group.")
	StoreRetryGroup  = storeRoute[Deed, Counted]("retry-group", apikey.Operator, "", "Retry a group.")
	StoreCancelGroup = storeAction[Deed]("cancel-group", apikey.Operator, "Cancel a group.")
)

// The store routes that only read.
var (
	StoreJob            = Route[AsksJob, Exact[holdfast.Job]]{Name: "store-job", Method: "POST", Path: "/store/job", Scope: apikey.Viewer, Also: apikey.Worker, Tag: "store", Limit: WorkLimit, Waits: true, About: "Get a job. Its JSON is returned byte for byte. With wait, the answer comes when the job has ended, or when the time is over."}
	StoreJobs           = storeRoute[store.Filter, Page[holdfast.Job]]("jobs", apikey.Viewer, apikey.Worker, "List jobs. Newest first.")
	StoreHistory        = storeRoute[Which, store.History]("history", apikey.Viewer, "", "Get the history of a job.")
	StoreAhead          = storeRoute[Which, Counted]("ahead", apikey.Viewer, "", "Count the jobs that are claimed before a job.")
	StoreHolds          = storeRoute[struct{}, []store.Hold]("holds", apikey.Viewer, apikey.Worker, "List holds.")
	StoreHeldLines      = storeRoute[Few, []store.HeldLine]("held-lines", apikey.Viewer, "", "List lines of order keys that a dead letter holds.")
	StoreWorkers        = storeRoute[struct{}, []store.WorkerInfo]("workers", apikey.Viewer, apikey.Worker, "List workers.")
	StoreCounts         = storeRoute[struct{}, []store.Count]("counts", apikey.Viewer, "", "Count jobs.")
	StoreCheckIntegrity = storeRoute[struct{}, []store.Finding]("check-integrity", apikey.Operator, "", "Run the integrity check.")
	StoreErrors         = storeRoute[ErrorsWanted, Page[store.ErrorGroup]]("error-groups", apikey.Viewer, "", "List error groups.")
	StoreEvents         = storeRoute[Stretch, []store.Event]("events", apikey.Viewer, "", "List the events of a subject that is not a job.")
	StoreGroup          = storeRoute[Which, holdfast.Group]("group", apikey.Viewer, apikey.Worker, "Get a group.")
	StoreGroupGraph     = storeRoute[Which, store.GroupGraph]("group-graph", apikey.Viewer, "", "Get the first members of a group and what they wait for.")
	StoreGroups         = storeRoute[GroupsWanted, Page[holdfast.Group]]("groups", apikey.Viewer, "", "List groups.")
	StoreFeed           = storeRoute[Stretch, store.Feed]("feed", apikey.Viewer, "", "List events after a number.")
	StoreTombstones     = storeRoute[StonesWanted, Page[store.Tombstone]]("tombstones", apikey.Viewer, "", "List tombstones.")
	StorePurgeCounts    = storeRoute[struct{}, []store.PurgeCount]("purge-counts", apikey.Viewer, "", "Count purged jobs.")
)
