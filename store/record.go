package store

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/holdfastdev/holdfast"
	"github.com/holdfastdev/holdfast/internal/check"
)

// A Record is state that all processes on a store share: a breaker, a retry budget, the progress of a redrive, a policy.
// The store saves it by compare-and-set on Version and does not interpret Body.
type Record struct {
	Namespace string          `json:"namespace"` // namespace: breaker, budget, redrive, policy, share, ...
	Name      string          `json:"name"`
	Version   int             `json:"version"` // 1 when new; grows by one with each write
	Body      json.RawMessage `json:"body"`
	KeptAt    time.Time       `json:"kept_at"`
	AsOf      time.Time       `json:"as_of"` // the store's clock when it was read
}

// A Change is a set of writes that Maintainer.Apply applies in one transaction, all or none. Apply fails with ErrConflict, naming
// the record, when the version of a record is not the one in the store. The caller then reads the records again and decides
// again. So the events and jobs of a change are written exactly once.
type Change struct {
	Records  []Record  // Version as it was read, 0 for a new record; a nil Body deletes the record
	Place    []Hold    // each replaces the hold of the same source on the same name; a token bucket keeps its level, up to the new burst
	Lift     []Hold    // identified by name and source; lifting a hold that does not exist is no error
	Deposits []Deposit // tokens for buckets; ignored where there is no such bucket
	Events   []Event   // with Job or Subject, Name, Actor, Reason and Request; the store sets the other fields

	Enqueue   []holdfast.Draft // jobs to add, without receipts; a draft whose idempotency key was used before is skipped, whatever else it contains
	Deliver   []holdfast.Draft // deliveries of subscriptions; only the notifier makes them, and their names are reserved (see Draft.Reserved)
	Listen    []Listener       // each replaces the listener of the same name
	Artifacts []Artifact       // each replaces the artifact of the same job and name
}

// A Deposit adds tokens to the bucket of a hold, up to its burst.
type Deposit struct {
	Hold   Hold // identified by name and source
	Tokens float64
}

// A Redrive is one step of a redrive: it sends dead letters to their queues again, or discards them. A redrive takes each
// job at most once, even if a step is repeated with the same ID.
type Redrive struct {
	ID      holdfast.ID
	Jobs    []holdfast.ID
	Discard bool            // discard the jobs instead
	Patch   json.RawMessage // a JSON merge patch (RFC 7396) of each job's arguments
	Queue   string          // destination; the job's own queue when empty
	Actor   string          // required
	Reason  string
}

// Check validates the step. The error wraps ErrInvalid and names every problem. Stores call it first.
func (r *Redrive) Check() error {
	var p check.Problems
	p.Actor(r.Actor, r.Reason)
	if r.ID.IsZero() {
		p.Add("a redrive without an id: give it one, the same for every step")
	}
	if r.Discard && (r.Patch != nil || r.Queue != "") {
		p.Add("a redrive that both discards and changes jobs: do one of them")
	}
	if r.Discard && r.Reason == "" {
		p.Add("a discard without a reason: say why the jobs are no longer needed")
	}
	if r.Patch != nil && !(json.Valid(r.Patch) && utf8.Valid(r.Patch) && len(r.Patch) <= check.MaxArgs) {
		p.Add("a patch of the arguments that is not valid JSON of at most %d bytes", check.MaxArgs)
	}
	if r.Queue != "" {
		p.Name("queue", r.Queue)
		if err := (&holdfast.Draft{Queue: r.Queue}).Reserved(); err != nil {
			p.Add("%v", err)
		}
	}
	return p.Err(invalid)
}

// RedriveCounts counts the jobs of a redrive by their state, in the generation that the redrive started.
type RedriveCounts struct {
	Taken     int `json:"taken"`
	InFlight  int `json:"in_flight"` // queued or processing
	Complete  int `json:"complete"`
	Failed    int `json:"failed"` // failed for good again
	Cancelled int `json:"cancelled"`
	Discarded int `json:"discarded"`
}
