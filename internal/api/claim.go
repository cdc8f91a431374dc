package api

import (
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
	"github.com/holdfastdev/holdfast/store"
)

// MostLeases is the maximum number of jobs in one claim, and of settlements, notes or outcomes in one call.
const MostLeases = 10_000

// MostWait is the longest time that one call waits for work, or for the end of a job.
const MostWait = 30 * time.Second

// WorkLimit is the maximum body size, in bytes, of calls that carry jobs or results.
const WorkLimit = 16 << 20

// A Claim is the JSON form of a request for due jobs.
type Claim struct {
	Worker string         `json:"worker" doc:"Name of the worker that will hold the leases. It must be unique to this process and this start of it, such as host-4711-1."`
	Queues []string       `json:"queues" required:"false" doc:"Queues to claim from. When left out: the queue default, or all queues if kinds is given."`
	Kinds  []string       `json:"kinds,omitempty" doc:"Kinds to claim. List the kinds the worker has handlers for, so that it receives no others. When left out: all kinds."`
	Limit  *int           `json:"limit,omitempty" doc:"Maximum number of jobs, up to 10000; 1 when left out."`
	Start  *int           `json:"start,omitempty" doc:"How many of the jobs start at once, in the order of the answer. The others count as not started until a renewal lists them as running. When left out: all."`
	Lease  *time.Duration `json:"lease,omitempty" doc:"Lease duration, 30s when left out. A job whose lease is not renewed within it is reclaimed and given to another worker."`
	Bytes  int            `json:"bytes,omitempty" doc:"Approximate maximum of bytes of arguments and checkpoints in the answer. At least one job is returned. The server also stops at about 8 MiB."`

	OwnerSlots int            `json:"owner_slots,omitempty" doc:"How many jobs of one owner the worker runs at the same time. The claim takes at most this many of each owner, less those in busy. No maximum when left out."`
	Busy       map[string]int `json:"busy,omitempty" doc:"With owner_slots: how many jobs of each owner the worker runs already. Jobs without an owner count under the empty name."`
}

// ClaimIn is the request to claim jobs.
type ClaimIn struct {
	Letter bool `query:"letter" doc:"Return arguments and checkpoints byte for byte: JSON that would change in transit is sent as {\"$text\": \"...\"}. Used by the Go client."`
	Body   Claim
}

// A Lease is a claimed job, in its JSON form.
type Lease struct {
	holdfast.Job
	Batch      holdfast.ID     `json:"batch" doc:"Id of the claim batch. All jobs of the batch are renewed together."`
	Attempt    int             `json:"attempt" doc:"Number of this attempt in the present generation, from 1."`
	Since      time.Time       `json:"since,omitzero" doc:"When this generation began: when the job was enqueued or last retried by a person."`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty" doc:"Value that an earlier attempt saved with a note, if any."`
	Lost       string          `json:"lost,omitempty" doc:"Name of the worker that ran the job before and stopped renewing."`
	Corrupt    string          `json:"corrupt,omitempty" doc:"What is wrong with the stored job. Do not run it: report the outcome unreadable."`
}

// LeaseOf returns the JSON form of a lease.
func LeaseOf(l store.Lease) Lease {
	return Lease{l.Job, l.Batch, l.Failures + l.Crashes + l.Releases + 1, l.Since, l.Checkpoint, l.Lost, l.Corrupt}
}

func (l *Lease) Lease() store.Lease {
	return store.Lease{Job: l.Job, Batch: l.Batch, Since: l.Since, Checkpoint: l.Checkpoint, Lost: l.Lost, Corrupt: l.Corrupt}
}

// ClaimOut is the answer to a claim.
type ClaimOut struct {
	Leases []Lease `json:"leases" doc:"Claimed jobs, in the order in which the worker starts them."`
}

// A Renewal extends the leases of one batch, in its JSON form.
type Renewal struct {
	Batch   holdfast.ID   `json:"batch" doc:"Id of the claim batch."`
	Running []holdfast.ID `json:"running" required:"false" doc:"Jobs of the batch that have started."`
	Waiting []holdfast.ID `json:"waiting" required:"false" doc:"Jobs of the batch that have not started yet."`
}

// RenewIn is the request to extend leases. It must list every job that is still running, so that the answer can say which of them to stop.
type RenewIn struct {
	Body struct {
		Renewals []Renewal      `json:"renewals" doc:"One entry for each batch."`
		Lease    *time.Duration `json:"lease,omitempty" doc:"New lease duration, counted from now; 30s when left out."`
	}
}

// RenewOut lists the jobs that the worker must stop. Jobs that are not listed are renewed.
type RenewOut struct {
	Lost       []holdfast.ID `json:"lost" doc:"Jobs that this worker no longer holds. Stop them: their results are not accepted."`
	Cancelling []holdfast.ID `json:"cancelling" doc:"Jobs that a person has cancelled. Stop them and report the outcome cancelled."`
}

// A Settlement ends a lease with a decision, in its JSON form. It is for engines, which apply the policy themselves. Other workers report outcomes.
type Settlement struct {
	Batch       holdfast.ID       `json:"batch" doc:"Id of the claim batch."`
	Job         holdfast.ID       `json:"job" doc:"Id of the job."`
	Token       int               `json:"token" doc:"Token of the lease."`
	To          holdfast.State    `json:"to" doc:"New state: complete, failed, cancelled, or queued for another attempt."`
	Delay       time.Duration     `json:"delay,omitempty" doc:"With queued: time until the next attempt."`
	Charge      store.Charge      `json:"charge,omitempty" doc:"Counter that the attempt adds to: failure, crash or release."`
	Limit       int               `json:"limit,omitempty" doc:"Maximum that the charge was compared with."`
	StartWithin time.Duration     `json:"start_within,omitempty" doc:"With queued: the next attempt must start within this time; a later start is recorded as a missed deadline."`
	Version     string            `json:"version,omitempty" doc:"Version of the application."`
	Queue       string            `json:"queue,omitempty" doc:"Queue of the job, as in its lease. Trends are counted by it."`
	Confirm     bool              `json:"confirm,omitempty" doc:"With complete: asks whether a transaction of the worker has completed the job, and changes nothing. The answer is conflict while the lease is held."`
	Enqueue     []holdfast.Draft  `json:"enqueue,omitempty" doc:"With complete: jobs to enqueue in the transaction that completes this one, at most 1000 with 8 MiB of arguments. They may be members of its group, also when that is sealed."`
	Took        time.Duration     `json:"took,omitempty" doc:"How long the attempt ran."`
	Result      json.RawMessage   `json:"result,omitempty" doc:"With complete: any JSON value."`
	Failure     *holdfast.Failure `json:"failure,omitempty" doc:"What went wrong."`
	Why         string            `json:"why,omitempty" doc:"One sentence for the job's story."`
}

// SettleIn is the request to end leases.
type SettleIn struct {
	Letter bool `query:"letter" doc:"Results may have the form {\"$text\": \"...\"}, which is JSON stored byte for byte. Used by the Go client."`
	Body   settlements
}

// Answers has one entry for each thing that was sent, in the same order.
type Answers struct {
	Answers []*Problem `json:"answers" doc:"Null where the entry was stored, otherwise the problem. lease_lost means that the worker no longer holds the job: the entry is kept in the job's story and changes nothing."`
}

// A Note is progress or a checkpoint of a running job, in its JSON form.
type Note struct {
	Batch      holdfast.ID     `json:"batch" doc:"Id of the claim batch."`
	Job        holdfast.ID     `json:"job" doc:"Id of the job."`
	Token      int             `json:"token" doc:"Token of the lease."`
	Progress   *Progress       `json:"progress,omitempty" doc:"How far the attempt is."`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty" doc:"A small JSON value that the next attempt receives, if there is one."`
}

// Progress is how far an attempt is, in its JSON form.
type Progress struct {
	Percent float64 `json:"percent" doc:"From 0 to 100."`
	Note    string  `json:"note,omitempty" doc:"Text for people."`
}

// NoteIn is the request to save notes.
type NoteIn struct {
	Letter bool `query:"letter" doc:"Checkpoints may have the form {\"$text\": \"...\"}, which is JSON stored byte for byte. Used by the Go client."`
	Body   struct {
		Notes []Note `json:"notes" doc:"At most 10000 notes."`
	}
}

// UpstreamsIn is the request for the members of its group for which a leased job waited.
type UpstreamsIn struct {
	Letter bool `query:"letter" doc:"Return results byte for byte: JSON that would change in transit is sent as {\"$text\": \"...\"}. Used by the Go client."`
	Body   UpstreamsWanted
}

// UpstreamsWanted names a lease, and which of the members to return.
type UpstreamsWanted struct {
	Batch  holdfast.ID `json:"batch" doc:"Id of the claim batch."`
	Job    holdfast.ID `json:"job" doc:"Id of the job."`
	Token  int         `json:"token" doc:"Token of the lease."`
	Step   string      `json:"step,omitempty" doc:"Only the member with this step name. When left out: all."`
	Cursor string      `json:"cursor,omitempty" doc:"Cursor of the previous page; leave it out for the first."`
}

// UpstreamsOut is one page of members.
type UpstreamsOut struct {
	Upstreams []store.Upstream `json:"upstreams" doc:"Members for which the job waited, sorted by id. A page ends after about 8 MiB of results."`
	Paged
}

// ReportWorkerIn is a worker's report that it is alive.
type ReportWorkerIn struct {
	Name string `path:"name" doc:"Name of the worker, the same as in its claims."`
	Body WorkerReport
}

// WorkerReport is what a worker reports about itself.
type WorkerReport struct {
	Queues  []string          `json:"queues" required:"false" doc:"Queues the worker claims from."`
	Kinds   []string          `json:"kinds" required:"false" doc:"Kinds the worker has handlers for."`
	Depends map[string]string `json:"depends,omitempty" doc:"The dependency that each kind calls. Breakers and limits use it."`
	Version string            `json:"version,omitempty" doc:"Version of the application."`
	Slots   int               `json:"slots,omitempty" doc:"How many jobs the worker runs at the same time."`
	Codes   string            `json:"codes,omitempty" doc:"Name of the record, in the namespace code, that holds the worker's own failure codes."`
	Policy  int               `json:"policy,omitempty" doc:"Version of the applied policy that the worker follows; 0 when it follows none."`
	Misses  string            `json:"misses,omitempty" doc:"Parts of the applied policy that the worker does not follow or does not know, and why."`
	For     time.Duration     `json:"for,omitempty" doc:"How long the worker counts as alive after this report. Leave it out when the worker stops."`
}

// WakeIn is the request to wait for work.
type WakeIn struct {
	Body struct {
		Queues   []string      `json:"queues" required:"false" doc:"Queues to wait for; all queues when left out."`
		Patience time.Duration `json:"patience,omitempty" doc:"Maximum waiting time, up to 30s."`
	}
}

// A Wake says why waiting ended. It is a hint: either flag may be set although nothing is to be done. Both are false when the time is over.
type Wake struct {
	Work   bool `json:"work" doc:"There may be jobs to claim."`
	Cancel bool `json:"cancel" doc:"A person may have cancelled a job that is running. Renew to learn which."`
}

// The routes of workers. Every call names a lease by batch, job and token. A call with a lease that the worker no longer holds changes nothing.
var (
	ClaimJobs  = Route[ClaimIn, ClaimOut]{Name: "claim", Method: "POST", Path: "/claims", Scope: apikey.Worker, Tag: "workers", About: "Claim due jobs. If the answer is lost, the claimed jobs stay leased until their leases expire; a repeated call claims others, so do not repeat it without a pause."}
	RenewJobs  = Route[RenewIn, RenewOut]{Name: "renew", Method: "POST", Path: "/claims/renew", Scope: apikey.Worker, Tag: "workers", About: "Renew leases. Call it about every third of the lease duration. It may be repeated."}
	SettleJobs = Route[SettleIn, Answers]{Name: "settle", Method: "POST", Path: "/claims/settle", Scope: apikey.Worker, Tag: "workers", Limit: WorkLimit, About: "Settle jobs with your own decisions. For engines, which apply the policy themselves; other workers report outcomes. It may be repeated."}
	NoteJobs   = Route[NoteIn, Answers]{Name: "note", Method: "POST", Path: "/claims/note", Scope: apikey.Worker, Tag: "workers", Limit: WorkLimit, About: "Save progress and checkpoints. It may be repeated. An entry is answered with lease_lost if the worker no longer holds the job."}
	Upstreams  = Route[UpstreamsIn, UpstreamsOut]{Name: "upstreams", Method: "POST", Path: "/claims/upstreams", Scope: apikey.Worker, Tag: "workers", About: "Get results of upstream members. Returns the members of its group for which a leased job waited, how they ended, and their results. Errors: lease_lost (the worker does not hold the job), not_found (the job did not wait for a member with this step name), purged (retention deleted that member)."}
	PutWorker  = Route[ReportWorkerIn, Nothing]{Name: "report-worker", Method: "PUT", Path: "/workers/{name}", Scope: apikey.Worker, Tag: "workers", About: "Report that a worker is alive. Includes what it works on and which dependencies its kinds call, for breakers and limits."}
	AwaitWork  = Route[WakeIn, Wake]{Name: "await", Method: "POST", Path: "/wakes", Scope: apikey.Worker, Tag: "workers", Long: true, About: "Wait for work. Returns when there may be jobs to claim or a job to stop, or when the time is over."}
	JobOutcome = Route[OutcomesIn, Answers]{Name: "report", Method: "POST", Path: "/claims/outcomes", Scope: apikey.Worker, Tag: "workers", Limit: WorkLimit, About: "Report outcomes of jobs. The server applies the policy: it decides whether and when a job is retried and what the result means for the breaker. It may be repeated. Errors: unavailable (this server runs no engine; use /v1/claims/settle)."}
)
