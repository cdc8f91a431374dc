package api

import (
	"encoding/json"
	"time"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/apikey"
)

// MostLeases is how many jobs one claim may ask for, and how many settlements, notes or outcomes one call may bring.
const MostLeases = 10_000

// MostWait is how long one call waits for work.
const MostWait = 30 * time.Second

// WorkLimit is how many bytes the body of a call may have that brings work or results.
const WorkLimit = 16 << 20

// A Claim asks for due jobs, as it travels.
type Claim struct {
	Worker string         `json:"worker" doc:"who will hold the leases: a name of this process and start alone, such as host-4711-1"`
	Queues []string       `json:"queues" required:"false" doc:"from which queues; when left out, the queue default, or all queues if kinds are named"`
	Kinds  []string       `json:"kinds,omitempty" doc:"of which kinds: name those that the worker handles, so that it gets no others. All when left out"`
	Limit  *int           `json:"limit,omitempty" doc:"at most so many jobs, up to 10000; 1 when left out"`
	Start  *int           `json:"start,omitempty" doc:"so many of them start at once, in their order; the others count as not started until a renewal names them as running. All when left out"`
	Lease  *time.Duration `json:"lease,omitempty" doc:"how long until others may take the jobs over unless they are renewed, such as 30s, which it is when left out"`
	Bytes  int            `json:"bytes,omitempty" doc:"at most about so many bytes of arguments and checkpoints together, but at least one job. The server has a bound of its own, of 8 MiB"`

	OwnerSlots int            `json:"owner_slots,omitempty" doc:"how many jobs of one owner the worker runs at once: the claim takes at most so many of each, less those in busy. No bound when left out"`
	Busy       map[string]int `json:"busy,omitempty" doc:"with owner_slots: how many jobs of each owner the worker runs already; jobs without an owner count under the empty name"`
}

// ClaimIn asks for jobs.
type ClaimIn struct {
	Letter bool `query:"letter" doc:"write JSON that would not keep its letters as {\"$text\": ...}; for Go programs"`
	Body   Claim
}

// A Lease is a job in a worker's hands, as it travels.
type Lease struct {
	holdfast.Job
	Batch      holdfast.ID     `json:"batch" doc:"what is renewed, together with its other jobs"`
	Attempt    int             `json:"attempt" doc:"the number of this attempt in the present generation, from 1"`
	Since      time.Time       `json:"since,omitzero" doc:"when this generation began: enqueued, or retried by a person"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty" doc:"what an earlier attempt noted, if any"`
	Lost       string          `json:"lost,omitempty" doc:"the worker that went silent while it ran the job"`
	Corrupt    string          `json:"corrupt,omitempty" doc:"what is wrong with the job's row: such a job is reported as unreadable, never run"`
}

// LeaseOf is a lease as it travels.
func LeaseOf(l holdfast.Lease) Lease {
	return Lease{l.Job, l.Batch, l.Failures + l.Crashes + l.Interrupts + 1, l.Since, l.Checkpoint, l.Lost, l.Corrupt}
}

func (l *Lease) lease() holdfast.Lease {
	return holdfast.Lease{Job: l.Job, Batch: l.Batch, Since: l.Since, Checkpoint: l.Checkpoint, Lost: l.Lost, Corrupt: l.Corrupt}
}

// ClaimOut is what was claimed.
type ClaimOut struct {
	Leases []Lease `json:"leases" doc:"the jobs, in the order in which to start them"`
}

// A Renewal extends a batch, as it travels.
type Renewal struct {
	Batch   holdfast.ID   `json:"batch" doc:"of the leases"`
	Running []holdfast.ID `json:"running" required:"false" doc:"jobs of it that have started by now"`
	Waiting []holdfast.ID `json:"waiting" required:"false" doc:"jobs of it that have not started yet"`
}

// RenewIn extends leases. Name every job that is still at work, so that the answer can say which of them to stop.
type RenewIn struct {
	Body struct {
		Renewals []Renewal      `json:"renewals" doc:"batch by batch"`
		Lease    *time.Duration `json:"lease,omitempty" doc:"how long from now; 30s when left out"`
	}
}

// RenewOut tells bad news only.
type RenewOut struct {
	Lost       []holdfast.ID `json:"lost" doc:"jobs that are in other hands by now: stop them, what they do is void"`
	Cancelling []holdfast.ID `json:"cancelling" doc:"jobs that a person asked to stop: stop them, and report them as cancelled"`
}

// A Settlement ends a lease, as it travels. It is for engines, which decide by themselves; others report outcomes.
type Settlement struct {
	Batch   holdfast.ID       `json:"batch" doc:"of the lease"`
	Job     holdfast.ID       `json:"job" doc:"the job"`
	Token   int               `json:"token" doc:"of the lease"`
	To      holdfast.State    `json:"to" doc:"complete, failed, cancelled, or queued for another attempt"`
	Delay   time.Duration     `json:"delay,omitempty" doc:"with queued: not before this has passed"`
	Charge  holdfast.Charge   `json:"charge,omitempty" doc:"which count the attempt adds to: failure, crash or interrupt"`
	Limit   int               `json:"limit,omitempty" doc:"the cap that the charge was judged by"`
	Within  time.Duration     `json:"within,omitempty" doc:"with queued: a promise that the next attempt starts within this time"`
	Version string            `json:"version,omitempty" doc:"of the application"`
	Queue   string            `json:"queue,omitempty" doc:"of the job, as its lease says: trends are told by it"`
	Took    time.Duration     `json:"took,omitempty" doc:"how long the attempt ran"`
	Result  json.RawMessage   `json:"result,omitempty" doc:"with complete: any JSON"`
	Failure *holdfast.Failure `json:"failure,omitempty" doc:"what went wrong"`
	Why     string            `json:"why,omitempty" doc:"a sentence for the story"`
}

// SettleIn ends leases.
type SettleIn struct {
	Letter bool `query:"letter" doc:"results of the form {\"$text\": ...} are JSON to the letter; for Go programs"`
	Body   settlements
}

// Answers tell what became of each thing that was sent, in order.
type Answers struct {
	Answers []*Problem `json:"answers" doc:"null where it was written down; lease_lost where the job is in other hands: what was sent is kept as evidence and changes nothing"`
}

// A Note is progress or a checkpoint, as it travels.
type Note struct {
	Batch      holdfast.ID     `json:"batch" doc:"of the lease"`
	Job        holdfast.ID     `json:"job" doc:"the job"`
	Token      int             `json:"token" doc:"of the lease"`
	Progress   *Progress       `json:"progress,omitempty" doc:"how far it is"`
	Checkpoint json.RawMessage `json:"checkpoint,omitempty" doc:"a small value that the next attempt gets, if there is one"`
}

// Progress is how far an attempt is, as it travels.
type Progress struct {
	Percent float64 `json:"percent" doc:"0 to 100"`
	Note    string  `json:"note,omitempty" doc:"for people"`
}

// NoteIn brings notes.
type NoteIn struct {
	Letter bool `query:"letter" doc:"checkpoints of the form {\"$text\": ...} are JSON to the letter; for Go programs"`
	Body   struct {
		Notes []Note `json:"notes" doc:"at most 10000"`
	}
}

// PresentIn says that a worker is alive.
type PresentIn struct {
	Name string `path:"name" doc:"the worker, as it names itself in claims"`
	Body Present
}

// Present is what a worker says about itself.
type Present struct {
	Queues  []string          `json:"queues" required:"false" doc:"that it claims from"`
	Kinds   []string          `json:"kinds" required:"false" doc:"that it can run"`
	Depends map[string]string `json:"depends,omitempty" doc:"for kinds that call something: what they call. Breakers and limits act on it"`
	Version string            `json:"version,omitempty" doc:"of the application"`
	Slots   int               `json:"slots,omitempty" doc:"how many jobs it runs at once"`
	Codes   string            `json:"codes,omitempty" doc:"the name of the record of room code with its own failure codes"`
	Policy  int               `json:"policy,omitempty" doc:"the version of the applied policy that it follows; 0: none"`
	Misses  string            `json:"misses,omitempty" doc:"what of the applied policy it does not follow or know, and why"`
	For     time.Duration     `json:"for,omitempty" doc:"how long to believe this; nothing when the worker is leaving"`
}

// WakeIn waits for work.
type WakeIn struct {
	Body struct {
		Queues   []string      `json:"queues" required:"false" doc:"which ones; all when left out"`
		Patience time.Duration `json:"patience,omitempty" doc:"how long at most, up to 30s"`
	}
}

// A Wake says why waiting ended. It is a hint: both may be false alarms, and both are false when the time was up.
type Wake struct {
	Work   bool `json:"work" doc:"there may be something to claim"`
	Cancel bool `json:"cancel" doc:"somebody may have asked a job to stop: renew to learn which"`
}

// The routes of workers. The same fences hold for everybody: a lease is named by batch, job and token, and who no longer holds it changes nothing.
var (
	ClaimJobs  = Route[ClaimIn, ClaimOut]{Name: "claim", Method: "POST", Path: "/claims", Scope: apikey.Worker, Tag: "workers", About: "Take due jobs on. A call whose answer is lost leaves its jobs with nobody until their leases end: do not repeat it blindly."}
	RenewJobs  = Route[RenewIn, RenewOut]{Name: "renew", Method: "POST", Path: "/claims/renew", Scope: apikey.Worker, Tag: "workers", About: "Keep leases, about every third of their time."}
	SettleJobs = Route[SettleIn, Answers]{Name: "settle", Method: "POST", Path: "/claims/settle", Scope: apikey.Worker, Tag: "workers", Limit: WorkLimit, About: "End leases with verdicts of one's own; for engines. It may be repeated."}
	NoteJobs   = Route[NoteIn, Answers]{Name: "note", Method: "POST", Path: "/claims/note", Scope: apikey.Worker, Tag: "workers", Limit: WorkLimit, About: "Keep progress and checkpoints. It may be repeated."}
	PutWorker  = Route[PresentIn, Nothing]{Name: "present", Method: "PUT", Path: "/workers/{name}", Scope: apikey.Worker, Tag: "workers", About: "Say that a worker is alive, and what it works on."}
	AwaitWork  = Route[WakeIn, Wake]{Name: "await", Method: "POST", Path: "/wakes", Scope: apikey.Worker, Tag: "workers", Long: true, About: "Wait until there may be something to do."}
	JobOutcome = Route[OutcomesIn, Answers]{Name: "report", Method: "POST", Path: "/claims/outcomes", Scope: apikey.Worker, Tag: "workers", Limit: WorkLimit, About: "Say what became of jobs. The server decides what follows: retry or not, when, what it means for the breaker. It may be repeated."}
)
